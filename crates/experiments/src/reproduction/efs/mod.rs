//! EFS: energy and time of programs that share one memory bus (its sections 3 and 5).
//!
//! `power` is the calibration of P_k; `bus` Figure 4; `estimate` Figure 6; `only_misses` Figure 7 and Table 1; `programs`
//! Figures 8 to 10; `streams` and `left_alone` show what the differences come from.

mod bus;
mod estimate;
mod left_alone;
mod only_misses;
mod power;
mod programs;
mod streams;

use crate::reproduction::engine::{
    Candidate, Chapter, Grid, Lab, Mix, Result, in_words, machine, spec_programs,
};
use cosched_sim::{MachineSpec, ProgramSpec};
use std::sync::Arc;

/// What energies rest on.
const POWER: &str = "on fitted power";

/// What times of several copies rest on: what further streams cost was chosen so that four get EFS's 150 lines per us.
const STREAMS: &str = "on chosen cost of streams";

/// Cores of the machine.
const CORES: usize = 4;

/// Positions of `linux` and `efs` among candidates.
const LINUX: usize = 0;
const EFS: usize = 1;

fn linux_and_efs() -> [Candidate; 2] {
    ["linux", "efs"].map(Candidate::new)
}

/// One job after the other.
fn serial() -> Candidate {
    Candidate {
        at_once: 1,
        ..Candidate::new("linux")
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
    fn copies(&self, number: usize) -> Vec<Mix> {
        let programs = self.programs.iter();
        programs
            .map(|program| Mix::of_copies(program, number, self.lab.work()))
            .collect()
    }

    /// Runs mixes at the full clock under `linux` and `efs`, with all seeds.
    fn linux_against_efs(&self, what: &str, mixes: &[Mix]) -> Result<Grid> {
        let (lab, both) = (self.lab, linux_and_efs());
        Grid::simulate(lab, what, &self.full, mixes, &both, &lab.seeds)
    }

    /// A copy of a program for each core.
    fn four_of(&self, program: &Arc<ProgramSpec>) -> Mix {
        Mix::of_copies(program, CORES, self.lab.work())
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
    let mut chapter = Chapter::new("efs", "EFS: energy by leaving cores idle");
    chapter.text(format!(
        "Four cores that share one channel of memory (`i5-2500`), {}, with {} (Figures 8 and 10; all others with {}). Energy is \
         that of the whole system. EFS's scheduler is part of a kernel with periods of 18 ms; here it decides every 200 ms, and \
         its other times are scaled alike. It judges 29 programs, the paper 25 that it does not name. The mixes of Figure 10 are \
         drawn from programs of high demand. The power of the machine is fitted to the paper's calibration. The cost of further \
         streams was chosen, within what is published for others, so that four of them get the paper's 150 lines per us. Figures \
         that follow from these are marked.",
        lab.work_in_words(),
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ));
    power::calibration(&mut chapter, &bench)?;
    bus::figure_4(&mut chapter, &bench)?;
    estimate::figure_6(&mut chapter, &bench)?;
    only_misses::figure_7(&mut chapter, &bench)?;
    only_misses::table_1(&mut chapter, &bench)?;
    let effects = programs::figure_8(&mut chapter, &bench)?;
    let fixed = programs::figure_9(&mut chapter, &bench)?;
    programs::figure_10(&mut chapter, &bench)?;
    chapter.causes(lab.of_causes());
    streams::causes(&mut chapter, &bench)?;
    bus::causes(&mut chapter, &bench)?;
    estimate::causes(&mut chapter, &bench)?;
    left_alone::causes(&mut chapter, &bench, &effects, &fixed);
    Ok(chapter)
}
