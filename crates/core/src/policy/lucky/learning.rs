//! The coefficients from the run itself: a task that changes its type of core was measured on both, in two quanta in a
//! row.

use super::super::core_types::Split;
use super::super::prelude::*;
use super::types::{CoreTypes, measured};
use crate::model::cross_core::{BothWays, CoreSample};
use std::collections::BTreeMap;

/// How much the earlier pairs count with each new one: as much as 200 do together.
const KEEP: f64 = 0.995;
/// The fading count of pairs from which coefficients are learnt: that of 13 pairs.
const LEAST_PAIRS: f64 = 12.0;

/// The pairs, and the last measurement of each task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Learning {
    pairs: BothWays,
    last: BTreeMap<TaskId, Last>,
}

/// The last measurement of a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Last {
    sample: CoreSample,
    on_big: bool,
    /// Number of intervals that it had run.
    executed: u32,
}

impl Learning {
    /// Adds what the tasks did in the last quantum.
    pub(super) fn see(&mut self, split: &Split<'_>) {
        let before = std::mem::take(&mut self.last);
        for &ix in &split.free {
            let task = split.task(ix);
            let Some(sample) = measured(task) else {
                continue;
            };
            let now = Last {
                sample,
                on_big: split.is_big(ix),
                executed: task.estimates.executed,
            };
            if let Some(before) = before.get(&task.id) {
                self.add(before, &now);
            }
            self.last.insert(task.id, now);
        }
    }

    fn add(&mut self, before: &Last, now: &Last) {
        if before.on_big == now.on_big || before.executed == now.executed {
            return;
        }
        let (big, small) = if now.on_big {
            (now.sample, before.sample)
        } else {
            (before.sample, now.sample)
        };
        // Rates are counts, which are neither negative nor infinite.
        _ = self.pairs.add(big, small, KEEP);
    }

    /// The types of core with the learnt coefficients, as far as pairs determine them.
    pub(super) fn improved(&self, mut types: CoreTypes) -> CoreTypes {
        for (sums, coefficients) in [
            (&self.pairs.to_big, &mut types.to_big),
            (&self.pairs.to_small, &mut types.to_small),
        ] {
            if sums.count() >= LEAST_PAIRS
                && let Ok(fit) = sums.fit()
            {
                *coefficients = fit.regression;
            }
        }
        types
    }
}
