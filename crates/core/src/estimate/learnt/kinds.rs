//! The kinds of work that were measured in this run, whichever job did them.
//!
//! Jobs of a batch often run the same program. Its phases have the same cache accesses per instruction in each of them. So
//! what the measurement of one job showed stands for a weak measurement of the others, as an earlier run of them would.

use super::phase::{IntervalFigures, LearntPhase};
use super::{KEPT, ROUGH};
use crate::model::contention::Contention;
use std::collections::VecDeque;

/// Distance below which two phases are of one kind: much less than for two samples of a job, since these are other jobs.
const SAME_KIND: f64 = 0.03;
/// A sample whose logarithm of the cycles is off by more than this is of another kind.
const LIKE: f64 = 3.0 * ROUGH;

/// The kinds of work, as many as are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    /// Phases as they were measured, the oldest first.
    measured: VecDeque<LearntPhase>,
}

impl Kinds {
    /// Keeps a phase that was measured, in place of those like it.
    pub(super) fn note(&mut self, phase: &LearntPhase) {
        let is_like = |known: &LearntPhase| {
            known.core_type == phase.core_type && known.apart(phase) < SAME_KIND
        };
        self.measured.retain(|known| !is_like(known));
        if self.measured.len() == KEPT {
            self.measured.pop_front();
        }
        self.measured.push_back(phase.as_kind());
    }

    /// The kind of work of a sample on a core type, if it is known. It takes both counts of accesses to tell it.
    pub(super) fn of(
        &self,
        shared: &Contention,
        row: &IntervalFigures,
        core_type: usize,
        counts_llc: bool,
    ) -> Option<&LearntPhase> {
        if row.l1 == 0.0 || !counts_llc {
            return None;
        }
        let here = self
            .measured
            .iter()
            .filter(|known| known.core_type == core_type);
        let near = here.map(|known| (known.distance(row, counts_llc, 1.0), known));
        let (distance, nearest) = near.min_by(|x, y| x.0.total_cmp(&y.0))?;
        let off = libm::log(row.cpi / nearest.expected_cpi(shared, row));
        (distance < SAME_KIND && off.abs() < LIKE).then_some(nearest)
    }
}
