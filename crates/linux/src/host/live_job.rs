//! A job from its start to the end of its last process, and what the kernel counts for it.

use crate::cgroup::{CpuTimes, JobGroup};
use crate::hold::tree::ProcessTree;
use crate::meminfo::RSS_ERROR;
use crate::process::Process;
use crate::sys::ProcessUsage;
use cosched_core::{Absence, Exit, Nanos, Reading, Resources, TaskId};
use std::cell::Cell;
use std::os::fd::OwnedFd;

/// A job that has started and has not ended.
pub(super) struct LiveJob {
    pub(super) tree: ProcessTree,
    /// The lowest number, from 1, that no other live job had when it started.
    pub(super) slot: usize,
    /// How the job's own process ended, and the usage of it and its waited-for descendants, if that is known.
    pub(super) main_end: Option<(Exit, Option<ProcessUsage>)>,
    /// That is what its reaper noted, of all its processes and without itself.
    pub(super) is_noted: bool,
    /// The job itself if its own process is a reaper; `None` until it was seen.
    pub(super) reaped: Option<Process>,
    /// Time since which it has been stopped by itself or others, but not by cosched.
    pub(super) stopped_itself: Option<Nanos>,
    pub(super) told_to_end: bool,
    /// What is known of it if it ran before the run.
    pub(super) adopted: Option<AdoptedJob>,
    /// Peak memory of this process when it started the job.
    own_max_rss: u64,
}

/// What is known of a job that ran before the run.
pub(super) struct AdoptedJob {
    /// Tells the end of its own process; `None` if that had ended before.
    pub(super) handle: Option<OwnedFd>,
    /// CPU time of its processes when it was adopted.
    pub(super) before: Nanos,
    /// The greatest CPU time so far: a process that is being waited for is missed for a moment.
    pub(super) greatest: Cell<Nanos>,
}

impl AdoptedJob {
    /// CPU time since the adoption.
    fn cpu_time(&self, tree: &ProcessTree) -> Nanos {
        let now = tree.cpu_time().max(self.greatest.get());
        self.greatest.set(now);
        now - self.before
    }
}

/// A job whose last process has ended.
pub(super) struct EndedJob {
    pub task: TaskId,
    pub exit: Exit,
    pub cpu_time: Option<CpuAccount>,
    pub resources: Resources,
}

/// CPU time by the kernel's own accounts.
#[derive(Clone, Copy)]
pub(crate) struct CpuAccount {
    pub time: Nanos,
    /// Whether it covers all processes of the job, and not only those that were waited for.
    pub is_whole: bool,
}

impl CpuAccount {
    /// Whether it has more than the counters' clock, by more than ticks explain. The kernel closes the events of a process
    /// that executes a set-user-ID program, and the accounts go on.
    pub(crate) fn is_ahead_of(self, clock: Nanos) -> bool {
        const TICKS: Nanos = Nanos::from_ms(200);
        self.time > clock + TICKS
    }
}

impl LiveJob {
    pub(super) fn new(tree: ProcessTree, slot: usize, own_max_rss: u64) -> LiveJob {
        LiveJob {
            tree,
            slot,
            main_end: None,
            is_noted: false,
            reaped: None,
            stopped_itself: None,
            told_to_end: false,
            adopted: None,
            own_max_rss,
        }
    }

    /// The facts of a job that has ended.
    pub(super) fn end(self, task: TaskId, counts_io: bool) -> Option<EndedJob> {
        let cpu_time = self.cpu_time();
        let (exit, used) = self.main_end?;
        let group = self.tree.group().filter(|_| !self.is_noted);
        let group = group.and_then(JobGroup::cpu_times);
        let own_max_rss = if self.is_noted { 0 } else { self.own_max_rss };
        Some(EndedJob {
            task,
            exit,
            cpu_time,
            resources: used.map_or(Resources::absent(Absence::NotTold), |used| {
                resources(&used, own_max_rss, group, counts_io)
            }),
        })
    }

    /// CPU time by the accounts of its cgroup or, once its own process has ended, of that process and its waited-for
    /// descendants.
    pub(super) fn cpu_time(&self) -> Option<CpuAccount> {
        if let Some(times) = self.tree.group().and_then(JobGroup::cpu_times) {
            return Some(CpuAccount {
                time: times.total,
                is_whole: true,
            });
        }
        if let Some(adopted) = &self.adopted {
            return Some(CpuAccount {
                time: adopted.cpu_time(&self.tree),
                is_whole: true,
            });
        }
        let (_, used) = self.main_end.as_ref()?;
        Some(CpuAccount {
            time: used.as_ref()?.cpu_time(),
            is_whole: false,
        })
    }
}

/// Usage of a job: CPU time of its group, if it has one, and the accounts of its own process for the rest.
fn resources(
    used: &ProcessUsage,
    own_max_rss: u64,
    group: Option<CpuTimes>,
    counts_io: bool,
) -> Resources {
    let io = if counts_io {
        Reading::Value(())
    } else {
        Reading::Absent(Absence::NotTold)
    };
    let (user_time, system_time) = match group {
        Some(times) => (times.user, times.system),
        None => (used.user, used.system),
    };
    let max_rss = match used.max_rss {
        // A process that ran had memory: zero means that the kernel does not count it.
        0 => Reading::Absent(Absence::NotTold),
        rss if rss <= own_max_rss + RSS_ERROR => Reading::Absent(Absence::WithinOwn),
        rss => Reading::Value(rss),
    };
    Resources {
        max_rss,
        user_time: Reading::Value(user_time),
        system_time: Reading::Value(system_time),
        read_bytes: io.map(|()| used.read_bytes),
        written_bytes: io.map(|()| used.written_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_does_not_count_is_absent_and_not_zero() {
        let ms = Nanos::from_ms;
        let used = ProcessUsage {
            user: ms(30),
            system: ms(10),
            max_rss: 40 << 20,
            read_bytes: 512,
            written_bytes: 0,
        };
        let own = resources(&used, 10 << 20, None, true);
        assert_eq!(
            (own.user_time, own.system_time),
            (Reading::Value(ms(30)), Reading::Value(ms(10)))
        );
        assert_eq!(
            (own.max_rss, own.read_bytes),
            (Reading::Value(40 << 20), Reading::Value(512))
        );
        assert_eq!(own.written_bytes, Reading::Value(0), "it wrote nothing");
        let group = CpuTimes {
            total: ms(50),
            user: ms(35),
            system: ms(15),
        };
        let in_group = resources(&used, 0, Some(group), false);
        assert_eq!(
            in_group.user_time,
            Reading::Value(ms(35)),
            "with what it did not wait for"
        );
        let not_told = Reading::Absent(Absence::NotTold);
        assert_eq!(
            (in_group.system_time, in_group.max_rss),
            (Reading::Value(ms(15)), Reading::Value(40 << 20))
        );
        assert_eq!(
            (in_group.read_bytes, in_group.written_bytes),
            (not_told, not_told)
        );
        assert_eq!(
            resources(&ProcessUsage::default(), 0, None, true).max_rss,
            not_told
        );
        let within = resources(&used, 40 << 20, None, true).max_rss;
        assert_eq!(
            within,
            Reading::Absent(Absence::WithinOwn),
            "it may be what this process held"
        );
    }
}
