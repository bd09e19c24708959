//! A task on either type of core.

use super::super::core_types::Split;
use super::super::params::core_power;
use super::super::prelude::*;
use crate::model::cross_core::{CoreSample, CoreType, Regression, benefit};

/// The two types of core, and the coefficients that predict the performance on one from the other.
#[derive(Clone, Copy)]
pub(super) struct CoreTypes {
    pub(super) big: CoreType,
    pub(super) small: CoreType,
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
