//! What a policy or fewer cores change against `linux`: energy and time of the same jobs with the same seeds.

use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, bars};
use crate::reproduction::findings::Part;
use crate::reproduction::grid;
use crate::reproduction::lab::Lab;
use crate::reproduction::trial::{Measured, Trial};
use crate::statistics::Estimate;
use cosched_sim::{MachineSpec, SimJob};
use std::sync::Arc;

/// What energies rest on.
pub(super) const POWER: &str = "on fitted power";

/// What times of several copies rest on: what further streams cost was chosen so that four get EFS's 150 lines per us.
pub(super) const STREAMS: &str = "on chosen cost of streams";

/// Cores of the machine.
pub(super) const CORES: usize = 4;

/// How a trial under `linux` is changed.
pub(super) type Change<'a> = dyn Fn(Trial) -> Trial + Sync + 'a;

/// As it is.
pub(super) fn linux(trial: Trial) -> Trial {
    trial
}

/// Under EFS.
pub(super) fn efs(trial: Trial) -> Trial {
    Trial {
        policy: "efs",
        ..trial
    }
}

/// One job after the other.
pub(super) fn serial(trial: Trial) -> Trial {
    Trial {
        at_once: 1,
        ..trial
    }
}

/// Trials of several lists of jobs with several changes, for all seeds: by list, then by change, then by seed.
pub(super) fn runs(
    lab: &Lab<'_>,
    what: &str,
    machine: &Arc<MachineSpec>,
    lists: &[Vec<SimJob>],
    changes: &[&Change<'_>],
    seeds: &[u64],
) -> Result<Vec<Vec<Vec<Measured>>>, ReproduceError> {
    grid::simulate(&lab.pool, what, lists.len(), seeds, |list, seed| {
        changes
            .iter()
            .map(|change| change(Trial::new(machine, &lists[list], "linux", seed)))
            .collect()
    })
}

/// Energy of the system in J.
pub(super) fn energy(run: &Measured) -> Option<f64> {
    run.energy_j
}

/// Energy of the chip in J, beyond that of the idle machine.
pub(super) fn chip_energy(run: &Measured) -> Option<f64> {
    Some(run.chip_energy_j)
}

/// Turnaround in s.
pub(super) fn time(run: &Measured) -> Option<f64> {
    Some(run.turnaround_s)
}

/// Energy-delay product in J s.
fn energy_delay(run: &Measured) -> Option<f64> {
    run.energy_j.map(|energy| energy * run.turnaround_s)
}

/// By how many per cent ours has less than the base, by seed.
fn saved(base: &[Measured], ours: &[Measured], of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
    base.iter()
        .zip(ours)
        .filter_map(|(base, ours)| Some(100.0 * (1.0 - of(ours)? / of(base)?)))
        .collect()
}

/// By how many per cent ours takes longer than the base, by seed.
fn slower(base: &[Measured], ours: &[Measured]) -> Vec<f64> {
    base.iter()
        .zip(ours)
        .map(|(base, ours)| 100.0 * (ours.turnaround_s / base.turnaround_s - 1.0))
        .collect()
}

/// Several lists of jobs under `linux` on all cores, and otherwise: by list, then by seed.
pub(crate) struct Effects {
    pub(super) base: Vec<Vec<Measured>>,
    pub(super) ours: Vec<Vec<Measured>>,
}

impl Effects {
    /// Simulates them under `linux` and `efs`.
    pub(crate) fn simulate(
        lab: &Lab<'_>,
        what: &str,
        machine: &Arc<MachineSpec>,
        lists: &[Vec<SimJob>],
        seeds: &[u64],
    ) -> Result<Effects, ReproduceError> {
        let mut both = runs(lab, what, machine, lists, &[&linux, &efs], seeds)?;
        let ours = both.iter_mut().filter_map(Vec::pop).collect();
        Ok(Effects {
            base: both.into_iter().flatten().collect(),
            ours,
        })
    }

    /// The same with the first seeds alone.
    pub(super) fn first(&self, seeds: usize) -> Effects {
        let of = |lists: &[Vec<Measured>]| {
            lists
                .iter()
                .map(|runs| runs[..seeds.min(runs.len())].to_vec())
                .collect()
        };
        Effects {
            base: of(&self.base),
            ours: of(&self.ours),
        }
    }

    fn each(&self, of: impl Fn(&[Measured], &[Measured]) -> Vec<f64>) -> Vec<Vec<f64>> {
        self.base
            .iter()
            .zip(&self.ours)
            .map(|(base, ours)| of(base, ours))
            .collect()
    }

    /// Energy saved in per cent.
    pub(crate) fn energy_saved(&self) -> Vec<Vec<f64>> {
        self.each(|base, ours| saved(base, ours, energy))
    }

    /// Energy of the chip saved in per cent.
    pub(super) fn chip_energy_saved(&self) -> Vec<Vec<f64>> {
        self.each(|base, ours| saved(base, ours, chip_energy))
    }

    /// Energy-delay product saved in per cent.
    pub(super) fn product_saved(&self) -> Vec<Vec<f64>> {
        self.each(|base, ours| saved(base, ours, energy_delay))
    }

    /// Time lost in per cent.
    pub(crate) fn time_lost(&self) -> Vec<Vec<f64>> {
        self.each(slower)
    }

    /// Energy saved and time lost of each list, as a figure.
    pub(super) fn figure(
        &self,
        id: &str,
        caption: &str,
        x: &'static str,
        names: Vec<String>,
    ) -> Part {
        let bar = |name: &str, values: &[Vec<f64>]| {
            (
                name.to_owned(),
                values.iter().map(|values| Estimate::of(values)).collect(),
            )
        };
        let axes = Axes {
            x,
            y: "%",
            decimals: 1,
        };
        let series = vec![
            bar("energy saved", &self.energy_saved()),
            bar("time lost", &self.time_lost()),
        ];
        bars(id.to_owned(), caption.to_owned(), axes, names, series, None)
    }
}
