//! The order of admission of tasks that have arrived.
//!
//! The longest first: a batch ends with its last task, and a long task that starts last leaves all other CPUs idle.
//! Started in descending order of length, tasks take at most 4/3 - 1/(3 m) of the minimum time on m CPUs, whatever
//! their lengths; in any other order up to 2 - 1/m (Graham, SIAM J. Appl. Math. 17(2), 1969).

use super::config::{Order, RunConfig};
use crate::expected::Expected;
use crate::rng::Rng;
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;
use std::cmp::Reverse;

/// The class of each task: higher classes are admitted first, and tasks of one class in the order of submission.
///
/// A task of unknown length gets the median class of the known ones. If it came first, many short unknown tasks would
/// delay a long known one; if it came last, a long unknown task would end the batch alone. So the order is unchanged if
/// no length is known, or if all known lengths are alike. It is also unchanged if only one task runs at a time, because
/// the batch then takes equally long in any order.
pub(super) fn classes(tasks: &[TaskSpec], config: &RunConfig) -> Vec<u32> {
    if config.order == Order::Random {
        let mut rng = Rng::new(config.seed);
        return tasks.iter().map(|_| rng.next_u64() as u32).collect();
    }
    let by_length = config.order == Order::Longest && config.jobs > 1;
    let known = tasks.iter().map(|task| {
        let expected = task.expected.as_ref().filter(|_| by_length);
        expected.map(Expected::class)
    });
    let known: Vec<Option<u32>> = known.collect();
    let mut sorted: Vec<u32> = known.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    known
        .into_iter()
        .map(|class| class.unwrap_or(median))
        .collect()
}

/// The tasks that arrive at the start, in the order of admission.
pub fn first_in_order(tasks: &[TaskSpec], config: &RunConfig) -> Vec<TaskId> {
    let classes = classes(tasks, config);
    let mut first: Vec<TaskId> = tasks
        .iter()
        .filter(|task| task.arrives == Nanos::ZERO)
        .map(|task| task.id)
        .collect();
    first.sort_by_key(|id| Reverse(classes[id.0 as usize]));
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
        assert_eq!(order(&times, Order::Longest), [1, 2, 3, 0]);
        assert_eq!(order(&times, Order::Given), [0, 1, 2, 3]);
        assert_eq!(
            order_of(&times, Order::Longest, 1),
            [0, 1, 2, 3],
            "one at a time takes as long in any order"
        );
        assert_eq!(order(&[None; 4], Order::Longest), [0, 1, 2, 3]);
        assert_eq!(
            order(&[None, None, Some(60.0), None], Order::Longest),
            [0, 1, 2, 3],
            "one alone says nothing"
        );
        assert_eq!(
            order(&[Some(0.001), Some(0.05), Some(0.02)], Order::Longest),
            [0, 1, 2]
        );
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
        assert_eq!(order(&times, Order::Longest), [3, 1, 2, 4, 0]);
    }
}
