//! The next task where tasks arrive over time: the mean turnaround counts there, not the end of a batch.
//!
//! The waiting task with the highest response ratio comes next, that of (wait + time) / time: short tasks before long
//! ones, but none waits for ever (Brinch Hansen, An Analysis of Response Ratio Scheduling, IFIP Congress 1971). Times are
//! those of the classes of [`order`](super::order), so that similar tasks keep their order of submission.

use super::Admission;
use super::queue::AdmissionQueue;
use crate::expected::Expected;
use crate::run::config::Order;
use crate::units::Nanos;

impl Admission<'_> {
    /// Whether the response ratio decides who comes next: more tasks may come, or tasks were given with times of arrival.
    /// A pipe that has ended leaves a batch; the last of known arrivals does not.
    pub(super) fn goes_by_response(&self, is_open: bool) -> bool {
        self.config.order == Order::Auto && (is_open || self.arrive_over_time)
    }
}

impl AdmissionQueue {
    /// The place of the task with the highest response ratio. The queue is sorted by class, and the first task of a class has
    /// waited longest of it.
    pub(super) fn best_response(&mut self, now: Nanos) -> usize {
        let (mut best, mut highest) = (0, 0.0);
        let mut place = 0;
        while place < self.arrived() {
            let first = self.at(place);
            let class = self.class_of(first);
            let ratio = response(now - self[first].since, class);
            // Of equal ones the shorter.
            if ratio >= highest {
                (best, highest) = (place, ratio);
            }
            place += self.run_of_class(place, class).max(1);
        }
        best
    }
}

/// The response ratio of a task of this class.
fn response(wait: Nanos, class: u32) -> f64 {
    let time = Expected::least_of(class);
    1.0 + wait.0 as f64 / time.0 as f64
}
