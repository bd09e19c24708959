//! A task on either type of core, and on which cores all tasks are most efficient.

use super::super::core_types::Split;
use super::super::params::core_power;
use super::super::prelude::*;
use super::shared_memory::SharedMemory;
use crate::model::cross_core::{CoreSample, CoreType, Regression, benefit};

/// The two types of core, and the coefficients that predict the performance on one from the other.
#[derive(Clone, Copy)]
pub(super) struct CoreTypes {
    big: CoreType,
    small: CoreType,
    pub(super) to_big: Regression,
    pub(super) to_small: Regression,
}

/// The performance of a task on both types of core, in MIPS.
#[derive(Clone, Copy)]
pub(super) struct Speeds {
    /// The one that was measured.
    pub(super) here: f64,
    pub(super) big: f64,
    pub(super) small: f64,
}

/// The measurements of a task in its last quantum; `None` before that.
pub(super) fn measured(task: &TaskView) -> Option<CoreSample> {
    let instructions = task.estimates.cpu_instructions.value();
    let instructions = instructions.filter(|&rate| rate > 0)?;
    let reads = task.estimates.cpu_mm_reads.value()?.0;
    Some(CoreSample {
        mips: instructions as f64 / 1e3,
        llcms: reads as f64 / 1e3,
    })
}

impl CoreTypes {
    pub(super) fn new(params: &Params) -> CoreTypes {
        let [big, small] = core_power(params);
        CoreTypes {
            big,
            small,
            to_big: regression(params, "to_big"),
            to_small: regression(params, "to_small"),
        }
    }

    /// The performance of a task, measured on its present side; `None` before that.
    pub(super) fn speeds(&self, split: &Split<'_>, ix: u32) -> Option<Speeds> {
        let sample = measured(split.task(ix))?;
        let here = sample.mips;
        let ratio = self.big.capacity_mips() / self.small.capacity_mips();
        let (big, small) = if split.is_big(ix) {
            let small = predict_between(&self.to_small, sample, here / ratio);
            (here, small)
        } else {
            let big = predict_between(&self.to_big, sample, here * ratio);
            (big, here)
        };
        Some(Speeds { here, big, small })
    }

    pub(super) fn benefit(&self, speeds: &Speeds) -> Option<f64> {
        benefit(&self.big, speeds.big, &self.small, speeds.small).ok()
    }

    /// The numbers of big and small CPUs, at most one for each CPU that tasks need, on which all tasks together are most
    /// efficient (MIPS^2 / W) if these CPUs are busy and the others need no power. `None` before measurements.
    pub(super) fn most_efficient(
        &self,
        split: &Split<'_>,
        memory: &SharedMemory,
    ) -> Option<(usize, usize)> {
        let known = split.free.iter().filter_map(|&ix| {
            let speeds = self.speeds(split, ix)?;
            let demand = memory.demand(ix) / speeds.here;
            Some([
                speeds.big,
                speeds.small,
                demand * speeds.big,
                demand * speeds.small,
            ])
        });
        let [big, small, big_demand, small_demand] = means(known)?;
        let needed = split.free.iter().map(|&ix| split.task(ix).cpus as usize);
        let needed: usize = needed.sum();
        let sizes = split.sizes();
        let (mut best, mut most) = (None, 0.0);
        for bigs in (0..=sizes.0.min(needed)).rev() {
            let least = usize::from(bigs == 0);
            for smalls in (least..=sizes.1.min(needed - bigs)).rev() {
                let slowed = memory.slowed(&[(bigs, big_demand), (smalls, small_demand)]);
                let (on_big, on_small) = (big * slowed, small * slowed);
                let mips = bigs as f64 * on_big + smalls as f64 * on_small;
                let watts = bigs as f64 * self.big.power_w(on_big).ok()?
                    + smalls as f64 * self.small.power_w(on_small).ok()?;
                if mips * mips / watts > most {
                    (best, most) = (Some((bigs, smalls)), mips * mips / watts);
                }
            }
        }
        best
    }
}

/// The mean of each of four quantities; `None` of nothing.
fn means(all: impl Iterator<Item = [f64; 4]>) -> Option<[f64; 4]> {
    let (mut sums, mut count) = ([0.0; 4], 0.0);
    for values in all {
        count += 1.0;
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    (count > 0.0).then(|| sums.map(|sum| sum / count))
}

fn regression(params: &Params, name: &str) -> Regression {
    Regression {
        alpha: params.number(&format!("{name}_alpha")),
        beta: params.number(&format!("{name}_beta")),
        gamma: params.number(&format!("{name}_gamma_mips")),
    }
}

/// The performance on the other type of core in MIPS, between `here` and `bound`.
fn predict_between(to_other: &Regression, here: CoreSample, bound: f64) -> f64 {
    let mips = to_other.predict(here);
    mips.clamp(here.mips.min(bound), here.mips.max(bound))
}
