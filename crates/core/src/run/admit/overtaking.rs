//! Tasks that may come before longer ones.
//!
//! Only the last tasks of a batch must be short. Until then the longest need not come first, and better do not: measured
//! times hold what others took, so tasks that disturb each other look long. Side by side they become longer still, and
//! each batch would be slower than the one before.
//!
//! A task may be passed while its time is at most a third of what is left per CPU. That keeps the bound of
//! [`order`](super::order): a task that ends last and is no longer than a third of the minimum adds at most that third
//! (1 - 1/m), in whatever order it came. A longer one was never passed.

use super::order::is_all_the_same;
use super::{Admission, AdmissionInput};
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;

/// Parts of the remaining time per CPU; a longer task may not be passed.
const PARTS: u64 = 3;

impl Admission<'_> {
    /// If the longest may be passed: the place of a task that clearly fits better beside the running ones than the one that was
    /// submitted first, else of that, if it is not there again.
    pub(super) fn who_may_pass(&self, run: &AdmissionInput<'_>) -> Option<usize> {
        let longest = self.queue.first()?;
        if !is_all_the_same(self.config) && !self.may_be_passed(longest, run) {
            return None;
        }
        let waiting = self.queue.in_order().enumerate();
        let (place, submitted) = waiting.min_by_key(|&(_, id)| id)?;
        if self.queue[submitted].is_again {
            return None;
        }
        self.better_beside(place, run).or(Some(place))
    }

    /// Whether others may come before this task, the longest. What is admitted must also run at once.
    fn may_be_passed(&self, longest: TaskId, run: &AdmissionInput<'_>) -> bool {
        let cpus = run.machine.cpus.len();
        let spec = run.spec(longest);
        if self.most_live(run.machine) > cpus || spec.cpus > 1 {
            return false;
        }
        let Some(known) = &spec.expected else {
            return false;
        };
        let enough = known.time.0.saturating_mul(PARTS * cpus as u64);
        let mut left = 0;
        for &id in &run.live {
            let started = run.records[id].started;
            let ran = started.map_or(Nanos::ZERO, |started| run.now - started);
            left += (expected(run.spec(id)) - ran).0;
        }
        for id in self.queue.in_order() {
            left += expected(run.spec(id)).0;
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
