//! How a task's time was really spent, as observed by a backend.

use crate::task::TaskId;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// How a task's time was spent since its start: cumulative, like counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Time with at least one thread on a CPU.
    pub on_cpu: Nanos,
    /// The part of `on_cpu` in which no other task of the run was on the same cores.
    pub alone: Nanos,
    /// Time awake with no thread on a CPU.
    pub waiting: Nanos,
    /// Last time on a CPU; `None` if it has never run.
    pub last_on_cpu: Option<Nanos>,
    /// For each co-runner: the part of `on_cpu` in which it was on a CPU too. In ascending order of the tasks.
    pub beside: Vec<(TaskId, Nanos)>,
}

impl Residency {
    /// The time added since `earlier`.
    pub fn since(&self, earlier: &Residency) -> Residency {
        let before = |task: TaskId| {
            let found = earlier
                .beside
                .binary_search_by_key(&task, |(other, _)| *other);
            found.map_or(Nanos::ZERO, |ix| earlier.beside[ix].1)
        };
        let beside = self
            .beside
            .iter()
            .map(|&(task, time)| (task, time - before(task)));
        Residency {
            on_cpu: self.on_cpu - earlier.on_cpu,
            alone: self.alone - earlier.alone,
            waiting: self.waiting - earlier.waiting,
            last_on_cpu: self.last_on_cpu,
            beside: beside.filter(|(_, time)| *time > Nanos::ZERO).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_leaves_out_whom_it_did_not_meet() {
        let ms = Nanos::from_ms;
        let at = |on_cpu, beside: &[(u32, u64)]| Residency {
            on_cpu: ms(on_cpu),
            alone: ms(on_cpu / 2),
            waiting: ms(1),
            last_on_cpu: Some(ms(on_cpu)),
            beside: beside
                .iter()
                .map(|&(task, time)| (TaskId(task), ms(time)))
                .collect(),
        };
        let news = at(50, &[(1, 30), (3, 7), (4, 5)]).since(&at(20, &[(1, 10), (3, 7)]));
        assert_eq!(
            (news.on_cpu, news.alone, news.waiting, news.last_on_cpu),
            (ms(30), ms(15), ms(0), Some(ms(50)))
        );
        assert_eq!(news.beside, [(TaskId(1), ms(20)), (TaskId(4), ms(5))]);
    }
}
