//! Who had which CPU at a time, as a scheduler in the kernel saw it, and for how long the job had one.

use crate::holders::{Holder, Holders};
use cosched_core::{CpuId, CpuSet, Nanos, Switched, TaskId};
use serde::Serialize;
use std::collections::VecDeque;

/// How far back it is told for how long the job had a CPU.
const SPAN: Nanos = Nanos(1_000_000_000);

/// Who had which CPU of the run at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The job's CPUs; empty if it had none.
    pub cpus: CpuSet,
    /// Since when it had one, or had none.
    pub since: Nanos,
    /// For how long it had a CPU, one or several, of the last `span`.
    pub had: Nanos,
    /// A second, or the time since it is told who has which CPU, if that is less.
    pub span: Nanos,
    /// The CPUs that others had, in their order.
    pub others: Vec<Held>,
    /// The CPUs that no job of the run had: idle, or with other programs.
    pub free: CpuSet,
}

/// A CPU that a job had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// The CPU.
    pub cpu: CpuId,
    /// The job's number.
    pub task: u32,
    /// Since when.
    pub since: Nanos,
}

/// What is known while the series is read.
pub(super) struct Watch {
    own: TaskId,
    holders: Holders,
    cpus: CpuSet,
    /// Since when it has one, or has none; `None` if it has had none so far.
    since: Option<Nanos>,
    /// When it had CPUs, and no longer has.
    stays: VecDeque<(Nanos, Nanos)>,
}

impl Watch {
    pub(super) fn new(own: TaskId) -> Watch {
        let (holders, cpus, stays) = Default::default();
        Watch {
            own,
            holders,
            cpus,
            since: None,
            stays,
        }
    }

    /// Takes in a line.
    pub(super) fn switched(&mut self, at: Nanos, switched: Switched) {
        let before = self.holders.switched(at, switched);
        match switched {
            Switched::To { cpu, task } => self.change(at, |own, cpus| {
                if before == Some(own) {
                    cpus.remove(cpu);
                }
                if task == Some(own) {
                    cpus.insert(cpu);
                }
            }),
            Switched::Untold => *self = Watch::new(self.own),
        }
    }

    pub(super) fn ended(&mut self, at: Nanos, task: TaskId) {
        self.holders.ended(task);
        if task == self.own {
            self.change(at, |_, cpus| *cpus = CpuSet::new());
        }
    }

    /// The job's CPUs change.
    fn change(&mut self, at: Nanos, change: impl FnOnce(TaskId, &mut CpuSet)) {
        let had_one = !self.cpus.is_empty();
        change(self.own, &mut self.cpus);
        if had_one != self.cpus.is_empty() {
            return;
        }
        let began = self.since.replace(at);
        if let (true, Some(began)) = (had_one, began) {
            self.stays.push_back((began, at));
        }
        while self.stays.front().is_some_and(|(_, end)| *end + SPAN < at) {
            self.stays.pop_front();
        }
    }

    /// What was seen by then, on these CPUs; `None` while it is not told, or if the job has had none so far.
    pub(super) fn seen(&self, at: Nanos, all: &CpuSet) -> Option<Seen> {
        let since = self.since?;
        let span = (at - self.holders.told()?).min(SPAN);
        let from = at - span;
        let now = (!self.cpus.is_empty()).then_some((since, at));
        let stays = self.stays.iter().copied().chain(now);
        let had = stays.fold(Nanos::ZERO, |sum, (began, end)| {
            sum + (end - began.max(from))
        });
        let mut free = all.clone();
        self.holders
            .iter()
            .for_each(|(cpu, _)| _ = free.remove(cpu));
        let others = self
            .holders
            .iter()
            .filter(|(_, holder)| holder.task != self.own);
        let others = others
            .map(|(cpu, Holder { task, since })| Held {
                cpu,
                task: task.0,
                since,
            })
            .collect();
        Some(Seen {
            cpus: self.cpus.clone(),
            since,
            had,
            span,
            others,
            free,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    fn to(cpu: u32, task: Option<u32>) -> Switched {
        Switched::To {
            cpu: CpuId(cpu),
            task: task.map(TaskId),
        }
    }

    fn set(cpus: &str) -> CpuSet {
        cpus.parse().unwrap()
    }

    #[test]
    fn who_had_which_cpu_and_for_how_long_the_job_had_one() {
        let mut watch = Watch::new(TaskId(1));
        let all = set("0-2");
        assert_eq!(watch.seen(ms(1), &all), None);
        watch.switched(ms(100), to(0, Some(0)));
        // A job that was never seen may be one that the scheduler does not have.
        assert_eq!(watch.seen(ms(200), &all), None);
        // Two CPUs at once, and a moment on each alone, are one stay.
        watch.switched(ms(300), to(1, Some(1)));
        watch.switched(ms(350), to(2, Some(1)));
        watch.switched(ms(400), to(1, None));
        let seen = watch.seen(ms(420), &all).unwrap();
        assert_eq!(
            (seen.cpus, seen.since, seen.had, seen.free),
            (set("2"), ms(300), ms(120), set("1"))
        );
        watch.switched(ms(450), to(2, Some(0)));
        let seen = watch.seen(ms(600), &all).unwrap();
        assert_eq!(
            (seen.cpus, seen.since, seen.had, seen.span),
            (set(""), ms(450), ms(150), ms(500))
        );
        assert_eq!(
            seen.others[1],
            Held {
                cpu: CpuId(2),
                task: 0,
                since: ms(450)
            }
        );
        // Of what lies a second back only a part counts, and then nothing.
        assert_eq!(watch.seen(ms(1_400), &all).unwrap().had, ms(50));
        assert_eq!(watch.seen(ms(1_500), &all).unwrap().had, ms(0));
        watch.switched(ms(2_000), Switched::Untold);
        assert_eq!(watch.seen(ms(2_000), &all), None);
    }

    #[test]
    fn who_has_ended_has_no_cpu() {
        let mut watch = Watch::new(TaskId(1));
        watch.switched(ms(0), to(0, Some(0)));
        watch.switched(ms(0), to(1, Some(1)));
        watch.ended(ms(10), TaskId(0));
        let seen = watch.seen(ms(30), &set("0-2")).unwrap();
        assert_eq!(
            (seen.cpus, seen.had, seen.others, seen.free),
            (set("1"), ms(30), vec![], set("0,2"))
        );
        watch.ended(ms(40), TaskId(1));
        let seen = watch.seen(ms(50), &set("0-2")).unwrap();
        assert_eq!((seen.cpus, seen.since, seen.had), (set(""), ms(40), ms(40)));
    }
}
