//! How far the model is trusted: by its errors as they are measured.
//!
//! The next cycles per instruction of a job are predicted from those of its last interval, `last`, and from the model: its
//! value for the last interval, `before`, and for the next, `next`.
//!
//! ```text
//! ln predicted = ln last + trust (ln next - ln before) + pull (ln before - ln last)
//! ```
//!
//! With `trust` and `pull` 0 that is "as in the last interval"; with both 1 it is the model alone. Least squares over the
//! intervals so far find both. So a model that is worse than the last interval fades out.

use super::MEMORY;
use super::sums::WeightedSums;
use crate::model::contention::{Contention, PULL, TRUST};
use serde::{Deserialize, Serialize};

/// Standard errors of the trust and the pull that are assumed, as a multiple of the error of an interval.
const DOUBT: f64 = 0.5 / 0.05;
/// An error of a prediction that halves the weight of its interval.
const USUAL: f64 = 0.02;
/// Weight of the intervals that count.
const KEPT: f64 = 100.0 * MEMORY;
/// Larger changes have other causes: a new phase that was not noticed yet.
const MOST_CHANGE: f64 = 0.7;
/// Bins of the errors, and how many cover an error of 1.
const BINS: usize = 1000;
const PER_UNIT: f64 = 1000.0;

/// A job's cycles per instruction in its last interval: as counted, and by the model; logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LastInterval {
    pub(super) counted: f64,
    pub(super) modelled: f64,
    /// The number of its phase.
    pub(super) phase: u32,
    pub(super) core_type: usize,
}

impl LastInterval {
    /// The same interval on another type of core, by the logarithm of the ratio of the job's cycles alone.
    pub(super) fn on_type(self, core_type: usize, ln_ratio: f64) -> LastInterval {
        LastInterval {
            counted: self.counted + ln_ratio,
            modelled: self.modelled + ln_ratio,
            core_type,
            ..self
        }
    }
}

/// How well the next cycles per instruction of jobs beside others were predicted in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionErrors {
    /// Median relative error of the predictions by which policies decide.
    pub median: f64,
    /// Median relative error if each interval were as the job's last one.
    pub median_as_last: f64,
    /// Number of intervals predicted.
    pub intervals: u32,
}

/// What the intervals so far show of the model.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelTrust {
    sums: WeightedSums,
    errors: Errors,
    of_last: Errors,
}

/// The logarithm of the predicted cycles per instruction.
fn predict(shared: &Contention, last: &LastInterval, next: f64) -> f64 {
    last.counted
        + shared.trust * (next - last.modelled)
        + shared.pull * (last.modelled - last.counted)
}

impl ModelTrust {
    /// Learns how far to trust the model from an interval that followed another.
    pub(super) fn learn(
        &mut self,
        shared: &mut Contention,
        last: &LastInterval,
        now: &LastInterval,
    ) {
        let change = now.counted - last.counted;
        let error = predict(shared, last, now.modelled) - now.counted;
        self.errors.add(error);
        self.of_last.add(change);
        if change.abs() > MOST_CHANGE || now.phase != last.phase {
            return;
        }
        let row = [
            now.modelled - last.modelled,
            last.modelled - last.counted,
            change,
        ];
        // Large errors have many causes. Without these weights they would decide alone.
        self.sums.add(row, USUAL / (USUAL + error.abs()));
        self.sums.fade(KEPT);
        let with_assumed = self.sums.assume(Some((TRUST, DOUBT)), (PULL, DOUBT));
        if let Some(found) = with_assumed.solve([0.0, 0.0]) {
            shared.trust = found.a.min(1.0);
            shared.pull = found.b.min(1.0);
        }
    }

    /// The errors so far; `None` before any prediction.
    pub(super) fn errors(&self) -> Option<PredictionErrors> {
        Some(PredictionErrors {
            median: self.errors.median()?,
            median_as_last: self.of_last.median()?,
            intervals: self.errors.count,
        })
    }
}

/// The distribution of errors.
#[derive(Clone, Debug)]
struct Errors {
    bins: Vec<u32>,
    count: u32,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors {
            bins: vec![0; BINS],
            count: 0,
        }
    }
}

impl Errors {
    /// Adds an error of a logarithm.
    fn add(&mut self, error: f64) {
        let relative = (libm::exp(error) - 1.0).abs();
        let bin = ((relative * PER_UNIT) as usize).min(BINS - 1);
        self.bins[bin] += 1;
        self.count += 1;
    }

    fn median(&self) -> Option<f64> {
        let mut seen = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            seen += count;
            if 2 * seen >= self.count && self.count > 0 {
                return Some((bin as f64 + 0.5) / PER_UNIT);
            }
        }
        None
    }
}
