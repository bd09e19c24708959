//! The next task to admit: the first in order, or a preferred one, that may start.

use super::hold::{AdmissionHold, lack_of_cpus};
use super::order::is_all_the_same;
use super::{Admission, AdmissionInput, AdmissionNews};
use crate::run::config::Order;
use crate::run::fact::Warning;

/// Maximum number of queued tasks to try when those at the front need too much memory.
const MOST_ASKED: usize = 64;

impl Admission<'_> {
    /// Sorts the tasks that have arrived.
    pub(super) fn put_in_order(&mut self, run: &AdmissionInput<'_>) {
        let by_response = self.goes_by_response(run.is_open);
        let by_class = by_response || !is_all_the_same(self.config);
        self.queue.put_in_order(run.now, by_response, by_class);
    }

    /// The queue position of the next task to admit: that of the preferred one if it may start. If not, it keeps its place,
    /// and the others are tried.
    pub(super) fn place_of_next(
        &mut self,
        run: &mut AdmissionInput<'_>,
        news: &mut Vec<AdmissionNews>,
    ) -> Option<usize> {
        let preferred = self.preferred(run).filter(|&place| place > 0);
        let Some(place) = preferred else {
            return self.place_that_may_start(run, news);
        };
        let id = self.queue.at(place);
        self.queue.shift(place, 0);
        let found = self.place_that_may_start(run, news);
        if found == Some(0) || self.queue.first() != Some(id) {
            return found;
        }
        let back = place.min(self.queue.arrived() - 1);
        self.queue.shift(0, back);
        found.map(|found| found - usize::from(found <= back))
    }

    /// The queue position of the task that comes next by its length or its co-runners; `None` if the first does, for
    /// another reason.
    fn preferred(&mut self, run: &AdmissionInput<'_>) -> Option<usize> {
        let first = self.queue.first()?;
        let is_bound =
            self.queue[first].is_bound() || lack_of_cpus(run.spec(first), run.machine).is_some();
        if self.config.order != Order::Auto || is_bound {
            None
        } else if self.goes_by_response(run.is_open) {
            Some(self.queue.best_response(run.now))
        } else {
            self.who_may_pass(run)
        }
    }

    /// The queue position of the first task that may start. A task without room in memory lets others pass. If nothing else
    /// can run, it is admitted anyway.
    fn place_that_may_start(
        &mut self,
        run: &mut AdmissionInput<'_>,
        news: &mut Vec<AdmissionNews>,
    ) -> Option<usize> {
        let mut place = 0;
        while place < self.queue.arrived().min(MOST_ASKED) {
            let id = self.queue.at(place);
            let Some(hold) = self.hold_of(id, run) else {
                return Some(place);
            };
            self.note_hold(id, hold, run, news);
            match hold {
                AdmissionHold::Never(_) => {
                    self.queue.take(place);
                }
                AdmissionHold::Memory => place += 1,
                _ => return None,
            }
        }
        if run.some_live() || self.queue.arrived() == 0 {
            return None;
        }
        let first = self.queue.first()?;
        if !std::mem::replace(&mut self.told_short, true) {
            news.push(AdmissionNews::Warned(Warning::ShortOfMemory(first)));
        }
        Some(0)
    }
}
