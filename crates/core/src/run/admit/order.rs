//! The order of admission of tasks that have arrived.
//!
//! The longest first: a batch ends with its last task, and a long task that starts last leaves all other CPUs idle.
//! Started in descending order of length, tasks take at most 4/3 - 1/(3 m) of the minimum time on m CPUs, whatever
//! their lengths; in any other order up to 2 - 1/m (Graham, SIAM J. Appl. Math. 17(2), 1969). Where tasks arrive over time,
//! the next one is chosen in [`response`](super::response) instead.

use crate::expected::Expected;
use crate::rng::Rng;
use crate::run::config::{Order, RunConfig};
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The class of a task, if it is known: higher classes are admitted first, and tasks of one class in the order of
/// submission. It follows from the expected length, or is drawn if the order is random.
pub(super) fn class(task: &TaskSpec, config: &RunConfig, lots: &mut Rng) -> Option<u32> {
    match config.order {
        Order::Random => Some(lots.next_u64() as u32),
        Order::Auto => task.expected.as_ref().map(Expected::class),
        Order::Given => None,
    }
}

/// Whether a batch takes equally long in any order, because one task runs at a time. It keeps the order of submission.
pub(super) fn is_all_the_same(config: &RunConfig) -> bool {
    config.order == Order::Auto && config.jobs <= 1
}

/// Sorts tasks in the order of admission, stably. Returns the class of those of unknown class.
///
/// A task of unknown class gets the median class of the known ones. If it came first, many short unknown tasks would
/// delay a long known one; if it came last, a long unknown task would end the batch alone. So the order is unchanged if
/// no length is known, or if all known lengths are alike.
pub(super) fn sort(tasks: &mut [TaskId], class_of: impl Fn(TaskId) -> Option<u32>) -> u32 {
    let mut known: Vec<u32> = tasks.iter().filter_map(|&id| class_of(id)).collect();
    known.sort_unstable();
    let median = known.get(known.len() / 2).copied().unwrap_or(0);
    tasks.sort_by_key(|&id| Reverse(class_of(id).unwrap_or(median)));
    median
}

/// The tasks that arrive at the start, in the order of admission.
pub fn first_in_order(tasks: &[TaskSpec], config: &RunConfig) -> Vec<TaskId> {
    let mut lots = Rng::new(config.seed);
    let mut classes = BTreeMap::new();
    let mut first = Vec::new();
    for task in tasks {
        let class = class(task, config, &mut lots);
        if task.arrives == Nanos::ZERO {
            first.push(task.id);
            classes.insert(task.id, class);
        }
    }
    let arrive_over_time = config.order == Order::Auto && first.len() < tasks.len();
    if arrive_over_time || !is_all_the_same(config) {
        let median = sort(&mut first, |id| classes[&id]);
        if arrive_over_time {
            first.sort_by_key(|id| classes[id].unwrap_or(median));
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::ExpectedFrom;

    fn order_of(times: &[Option<f64>], order: Order, jobs: usize) -> Vec<u32> {
        let task = |(id, time): (usize, &Option<f64>)| {
            let mut spec = TaskSpec::new(id as u32, "t");
            spec.expected = time.map(|s| Expected::of(Nanos::from_s(s), ExpectedFrom::Same));
            spec
        };
        let tasks: Vec<TaskSpec> = times.iter().enumerate().map(task).collect();
        let config = RunConfig {
            order,
            jobs,
            ..RunConfig::default()
        };
        first_in_order(&tasks, &config)
            .into_iter()
            .map(|id| id.0)
            .collect()
    }

    fn order(times: &[Option<f64>], order: Order) -> Vec<u32> {
        order_of(times, order, 4)
    }

    #[test]
    fn the_longest_first_and_what_is_alike_as_given() {
        let times = [Some(1.0), Some(60.0), Some(61.0), Some(10.0)];
        assert_eq!(order(&times, Order::Auto), [1, 2, 3, 0]);
        assert_eq!(order(&times, Order::Given), [0, 1, 2, 3]);
        assert_eq!(
            order_of(&times, Order::Auto, 1),
            [0, 1, 2, 3],
            "one at a time takes as long in any order"
        );
        assert_eq!(order(&[None; 4], Order::Auto), [0, 1, 2, 3]);
        assert_eq!(
            order(&[None, None, Some(60.0), None], Order::Auto),
            [0, 1, 2, 3],
            "one alone says nothing"
        );
        assert_eq!(
            order(&[Some(0.001), Some(0.05), Some(0.02)], Order::Auto),
            [0, 1, 2]
        );
    }

    #[test]
    fn while_more_may_come_the_shortest_first() {
        let task = |(id, s): (u32, f64)| {
            let mut spec = TaskSpec::new(id, "t");
            spec.expected = Some(Expected::of(Nanos::from_s(s), ExpectedFrom::Same));
            spec
        };
        let mut tasks: Vec<TaskSpec> = (0..).zip([60.0, 1.0, 10.0, 5.0]).map(task).collect();
        tasks[3].arrives = Nanos::from_s(1.0);
        let first = first_in_order(&tasks, &RunConfig::default());
        assert_eq!(first, [1, 2, 0].map(TaskId));
    }

    #[test]
    fn the_seed_shuffles() {
        let shuffled = order(&[None; 8], Order::Random);
        assert_ne!(shuffled, order(&[None; 8], Order::Given));
        assert_eq!(shuffled, order(&[None; 8], Order::Random));
        let mut sorted = shuffled;
        sorted.sort_unstable();
        assert_eq!(sorted, order(&[None; 8], Order::Given));
    }

    #[test]
    fn what_nobody_knows_is_in_the_middle() {
        let times = [Some(1.0), None, Some(10.0), Some(100.0), None];
        assert_eq!(order(&times, Order::Auto), [3, 1, 2, 4, 0]);
    }
}
