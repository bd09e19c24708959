//! EFS: energy and time of programs that share one memory bus (its sections 3 and 5).
//!
//! `power` is the calibration of P_k; `bus` Figure 4; `estimate` Figure 6; `only_misses` Figure 7 and Table 1; `programs`
//! Figures 8 to 10; `streams` and `left_alone` show what the differences come from; `disk` tries what the
//! paper hopes for.

mod bus;
mod disk;
mod estimate;
mod left_alone;
mod only_misses;
mod power;
mod programs;
mod streams;

use crate::reproduction::engine::{
    Chapter, Draft, ExperimentMix, Grid, Lab, Result, TrialCandidate, machine, spec_programs,
};
use cosched_sim::{MachineSpec, ProgramSpec};
use std::sync::Arc;

/// Cores of the machine.
const CORES: usize = 4;

/// Positions of `linux` and `efs` among candidates.
const LINUX: usize = 0;
const EFS: usize = 1;

fn linux_and_efs() -> [TrialCandidate; 2] {
    ["linux", "efs"].map(TrialCandidate::new)
}

/// One job after the other.
fn serial() -> TrialCandidate {
    TrialCandidate {
        at_once: Some(1),
        ..TrialCandidate::new("linux")
    }
}

/// The machine at its full clock and at a lower one, and the programs that run on it.
struct Bench<'a> {
    lab: &'a Lab<'a>,
    full: Arc<MachineSpec>,
    slow: Arc<MachineSpec>,
    programs: Vec<Arc<ProgramSpec>>,
}

impl Bench<'_> {
    /// So many copies of each program.
    fn copies(&self, number: usize) -> Vec<ExperimentMix> {
        let programs = self.programs.iter();
        programs
            .map(|program| ExperimentMix::of_copies(program, number, self.lab.work()))
            .collect()
    }

    /// Runs mixes at the full clock under `linux` and `efs`, with all seeds.
    fn linux_against_efs(&self, mixes: &[ExperimentMix]) -> Result<Grid> {
        let (lab, both) = (self.lab, linux_and_efs());
        Grid::simulate(lab, &self.full, mixes, &both, &lab.seeds)
    }

    /// A copy of a program for each core.
    fn four_of(&self, program: &Arc<ProgramSpec>) -> ExperimentMix {
        ExperimentMix::of_copies(program, CORES, self.lab.work())
    }
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter> {
    let bench = Bench {
        lab,
        full: machine("i5-2500"),
        slow: machine("i5-2500-1.6ghz"),
        programs: spec_programs(),
    };
    let mut draft = Draft::new("efs", include_str!("chapter.toml"), lab);
    power::calibration(&mut draft, &bench)?;
    bus::figure_4(&mut draft, &bench)?;
    estimate::figure_6(&mut draft, &bench)?;
    only_misses::figure_7(&mut draft, &bench)?;
    only_misses::table_1(&mut draft, &bench)?;
    let effects = programs::figure_8(&mut draft, &bench)?;
    let fixed = programs::figure_9(&mut draft, &bench)?;
    programs::figure_10(&mut draft, &bench)?;
    draft.causes();
    streams::causes(&mut draft, &bench)?;
    bus::causes(&mut draft, &bench)?;
    estimate::causes(&mut draft, &bench)?;
    left_alone::causes(&mut draft, &bench, &effects, &fixed);
    disk::hopes(&mut draft, &bench)?;
    Ok(draft.finish())
}
