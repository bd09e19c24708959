//! The queue of the tasks that wait for admission, and which of them comes next.

use super::backend::{Backend, MayStart};
use super::config::Order;
use super::fact::{Fact, Warning};
use super::order::{is_all_the_same, sort};
use super::state::Loop;
use crate::task::TaskId;
use crate::units::Nanos;

/// Delay before asking the backend again whether a task may start.
const ROOM_RETRY: Nanos = Nanos::from_ms(1_000);

/// Maximum number of queued tasks to try when those at the front need too much memory.
const MOST_ASKED: usize = 64;

impl<B: Backend> Loop<'_, B> {
    /// Sorts the queued tasks that have arrived. In a batch a restarted task keeps its place: tasks that arrived before it
    /// stay before it, and later ones come after it.
    pub(super) fn put_in_order(&mut self, now: Nanos) {
        let records = &self.records;
        let has_arrived = |id: &TaskId| records[*id].spec.arrives <= now;
        let arrived = self.pending.partition_point(has_arrived);
        let before = std::mem::replace(&mut self.ordered, arrived);
        if arrived <= before {
            return;
        }
        let by_response = self.goes_by_response();
        let records = &self.records;
        let mut waiting = &mut self.pending.make_contiguous()[..arrived];
        let again = waiting.iter().rposition(|id| records[*id].is_again);
        if let Some(again) = again.filter(|_| !by_response) {
            waiting = &mut waiting[again + 1..];
        }
        if by_response || !is_all_the_same(self.config) {
            self.median_class = sort(waiting, |id| records[id].class);
        }
        // What waits frozen holds its memory.
        waiting.sort_by_key(|&id| !records[id].has_begun());
    }

    /// The queue position of the task that comes next by its length or its neighbours; `None` if the first does, for
    /// another reason.
    fn preferred(&mut self, now: Nanos) -> Option<usize> {
        let first = *self.pending.front()?;
        let record = &self.records[first];
        let is_bound =
            record.has_begun() || record.turn.is_some() || self.lack_of_cpus(first).is_some();
        if self.config.order != Order::Auto || is_bound {
            None
        } else if self.goes_by_response() {
            Some(self.best_response(now))
        } else {
            self.who_may_pass()
        }
    }

    /// The queue position of the next task to admit: that of the preferred one if it may start. If not, it keeps its place,
    /// and the others are tried.
    pub(super) fn place_of_next(&mut self, now: Nanos) -> Option<usize> {
        let preferred = self.preferred(now).filter(|&place| place > 0);
        let Some(place) = preferred else {
            return self.place_that_may_start(now);
        };
        let id = self.pending.remove(place)?;
        self.pending.push_front(id);
        let found = self.place_that_may_start(now);
        if found == Some(0) || self.pending.front() != Some(&id) {
            return found;
        }
        self.pending.pop_front();
        let back = place.min(self.ordered - 1);
        self.pending.insert(back, id);
        found.map(|found| found - usize::from(found <= back))
    }

    /// The queue position of the first task that may start. A task without room in memory lets others pass. If nothing else
    /// can run, it is admitted anyway.
    fn place_that_may_start(&mut self, now: Nanos) -> Option<usize> {
        let any_live = !self.snap.tasks.is_empty() || !self.dying.is_empty();
        // A task beyond these would only wait for a CPU instead.
        let has_cpu = self.snap.tasks.len() < self.snap.machine.cpus.len();
        let mut place = 0;
        while place < self.ordered.min(MOST_ASKED) {
            if self.leave_out(now, place) {
                continue;
            }
            let spec = &self.records[self.pending[place]].spec;
            match self.backend.may_start(spec) {
                MayStart::Later if any_live => {
                    self.room_retry = Some(now + ROOM_RETRY);
                    return None;
                }
                MayStart::Yes | MayStart::Later => return Some(place),
                MayStart::NeedsMemory => {
                    self.room_retry = Some(now + ROOM_RETRY);
                    let warns = any_live && has_cpu;
                    if warns && !std::mem::replace(&mut self.told_memory, true) {
                        self.recorder
                            .emit(now, Fact::Warned(&Warning::WaitsForMemory(spec.id)));
                    }
                }
            }
            place += 1;
        }
        if any_live || self.ordered == 0 {
            return None;
        }
        let first = *self.pending.front()?;
        if !std::mem::replace(&mut self.told_short, true) {
            self.recorder
                .emit(now, Fact::Warned(&Warning::ShortOfMemory(first)));
        }
        Some(0)
    }

    /// Queues a task for another run, behind the tasks that have arrived and before those that have not.
    pub(super) fn queue_again(&mut self, now: Nanos, id: TaskId) {
        let by_response = self.goes_by_response();
        let record = &mut self.records[id];
        record.begin_anew(self.config.quantum);
        record.queued = now;
        let records = &self.records;
        let has_arrived = |other: &TaskId| records[*other].spec.arrives <= now;
        let place = self.pending.partition_point(has_arrived);
        self.pending.insert(place, id);
        if !by_response && place == self.ordered {
            // It is already in its sorted position.
            self.ordered += 1;
        }
    }
}
