//! What programs do alone on each type of core.

use crate::reproduction::engine::{
    ExperimentMix, Lab, Result, TrialCandidate, TrialMeasurements, simulate, spec_programs,
};
use crate::statistics::mean;
use cosched_core::Nanos;
use cosched_core::model::cross_core::CoreSample;
use cosched_sim::{JobWork, MachineSpec, ProgramSpec};
use std::sync::Arc;

/// Work of a program alone.
const WORK: JobWork = JobWork::SoloTime(Nanos::from_ms(20_000));

/// A program alone on each type of core, by seed.
pub(super) struct Alone {
    pub(super) program: Arc<ProgramSpec>,
    pub(super) big: Vec<TrialMeasurements>,
    pub(super) small: Vec<TrialMeasurements>,
}

impl Alone {
    /// The program alone with these seeds.
    pub(super) fn simulate(
        spec: &Arc<MachineSpec>,
        program: &Arc<ProgramSpec>,
        seeds: &[u64],
    ) -> Result<Alone> {
        Ok(Alone {
            program: program.clone(),
            big: on_core_type(spec, program, seeds, 0)?,
            small: on_core_type(spec, program, seeds, 1)?,
        })
    }

    /// Million lines read a second on the big core, by seed.
    pub(super) fn misses_by_seed(&self) -> Vec<f64> {
        self.big.iter().map(|run| run.reads_per_us).collect()
    }

    /// The same, mean over the seeds.
    pub(super) fn misses(&self) -> f64 {
        mean(&self.misses_by_seed()).unwrap_or(0.0)
    }

    /// Million instructions a second on the small core, mean over the seeds.
    pub(super) fn small_mips(&self) -> f64 {
        let mips = self.small.iter().map(|run| run.mips);
        mean(&mips.collect::<Vec<_>>()).unwrap_or(0.0)
    }
}

/// What the regression knows of these runs, means over the seeds.
pub(super) fn sample(runs: &[TrialMeasurements]) -> CoreSample {
    let mips: Vec<f64> = runs.iter().map(|run| run.mips).collect();
    let llcms: Vec<f64> = runs.iter().map(|run| run.reads_per_us).collect();
    CoreSample {
        mips: mean(&mips).unwrap_or(f64::NAN),
        llcms: mean(&llcms).unwrap_or(f64::NAN),
    }
}

/// Every program alone.
pub(super) fn all(lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<Vec<Alone>> {
    let seeds = lab.few_seeds();
    lab.map(&spec_programs(), |program| {
        Alone::simulate(spec, program, seeds)
    })
}

fn on_core_type(
    spec: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
    seeds: &[u64],
    core_type: usize,
) -> Result<Vec<TrialMeasurements>> {
    let machine = spec.machine();
    let mut cpus = machine.cpus.iter();
    let cpu = cpus.find(|cpu| cpu.core_type == core_type);
    let candidate = TrialCandidate {
        usable: Some(cpu.map(|cpu| cpu.id).into_iter().collect()),
        ..TrialCandidate::new("linux")
    };
    let mix = ExperimentMix::of_copies(program, 1, WORK);
    let mut runs = Vec::new();
    for &seed in seeds {
        runs.extend(simulate(
            spec,
            &mix,
            std::slice::from_ref(&candidate),
            seed,
        )?);
    }
    Ok(runs)
}
