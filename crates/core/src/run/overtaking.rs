//! Tasks that may come before longer ones.
//!
//! Only the last tasks of a batch must be short. Until then the longest need not come first, and better do not: measured
//! times hold what others took, so tasks that disturb each other look long. Side by side they become longer still, and
//! each batch would be slower than the one before.
//!
//! A task may be passed while its time is at most a third of what is left per CPU. That keeps the bound of
//! [`order`](super::order): a task that ends last and is no longer than a third of the minimum adds at most that third
//! (1 - 1/m), in whatever order it came. A longer one was never passed.

use super::backend::Backend;
use super::order::is_all_the_same;
use super::state::Loop;
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;

/// Parts of the remaining time per CPU; a longer task may not be passed.
const PARTS: u64 = 3;

impl<B: Backend> Loop<'_, B> {
    /// If the longest may be passed: the place of a task that clearly fits better beside the running ones than the one that was
    /// submitted first, else of that, if it is not there again.
    pub(super) fn who_may_pass(&self) -> Option<usize> {
        let longest = *self.pending.front()?;
        if !is_all_the_same(self.config) && !self.may_pass(longest) {
            return None;
        }
        let waiting = self.pending.iter().take(self.ordered);
        let submitted = waiting.enumerate().min_by_key(|(_, id)| **id);
        let (place, first) = submitted?;
        if self.records[*first].is_again {
            return None;
        }
        self.better_beside(place).or(Some(place))
    }

    /// Whether others may come before this task, the longest. What is admitted must also run at once.
    fn may_pass(&self, longest: TaskId) -> bool {
        let cpus = self.snap.machine.cpus.len();
        let spec = &self.records[longest].spec;
        if self.most_live() > cpus || spec.cpus > 1 {
            return false;
        }
        let Some(known) = &spec.expected else {
            return false;
        };
        let enough = known.time.0.saturating_mul(PARTS * cpus as u64);
        let mut left = 0;
        for task in &self.snap.tasks {
            let record = &self.records[task.id];
            let ran = record
                .started
                .map_or(Nanos::ZERO, |started| self.snap.now - started);
            left += (expected(&record.spec) - ran).0;
        }
        for &id in self.pending.iter().take(self.ordered) {
            left += expected(&self.records[id].spec).0;
            if left >= enough {
                return true;
            }
        }
        false
    }
}

/// The time that a task is expected to take; none if it is unknown, so that it promises no room.
fn expected(spec: &TaskSpec) -> Nanos {
    spec.expected.map_or(Nanos::ZERO, |known| known.time)
}
