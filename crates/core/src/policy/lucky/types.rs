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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_between_no_gain_and_the_ratio_of_the_capacities() {
        let here = CoreSample {
            mips: 100.0,
            llcms: 1.0,
        };
        let predicted = |alpha: f64, bound: f64| {
            let to_other = Regression {
                alpha,
                beta: 0.0,
                gamma: 0.0,
            };
            predict_between(&to_other, here, bound)
        };
        let to_big = [-1.0, 0.5, 3.0, 5.0].map(|alpha| predicted(alpha, 400.0));
        assert_eq!(to_big, [100.0, 100.0, 300.0, 400.0]);
        let to_small = [-1.0, 0.1, 0.5, 2.0].map(|alpha| predicted(alpha, 25.0));
        assert_eq!(to_small, [25.0, 25.0, 50.0, 100.0]);
    }
}
