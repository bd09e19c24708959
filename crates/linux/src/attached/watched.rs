//! A process that is observed: what it did between two looks. A look at a process that slept costs one short read; its
//! threads are read only after it used a CPU.

use super::process_file::{ProcessFile, sched_times};
use crate::process::{self, ProcessKey};
use crate::root::Root;
use crate::stat::{Stat, tick_time};
use crate::sys::RawPid;
use cosched_core::{CpuShare, Nanos};
use std::collections::BTreeMap;
use std::fs::File;

/// The line of a process that sleeps is read in one of this many looks: others may swap its memory out.
const REFRESH: u64 = 16;

/// A process between two looks.
pub(super) struct WatchedProcess {
    member: ProcessKey,
    stat: ProcessFile,
    schedstat: ProcessFile,
    /// Its line of the last look; `None` before the first.
    last: Option<Stat>,
    /// Its threads, by number.
    threads: BTreeMap<RawPid, Times>,
    /// Whether a thread wanted a CPU at the last look.
    wanted: bool,
}

/// What a thread has used since its start.
#[derive(Clone, Copy, Default)]
struct Times {
    used: Nanos,
    /// `None` if the kernel does not count it.
    waited: Option<Nanos>,
}

/// What a look may cost, and how long the interval was.
pub(super) struct ScanInterval<'a> {
    pub root: &'a Root,
    /// Length of the interval; zero for the first look.
    pub length: Nanos,
    /// When the interval began, since the machine was started.
    pub began: Nanos,
    /// The number of the look.
    pub number: u64,
    /// How many threads may still be read.
    pub threads: usize,
    /// How many threads were not read.
    pub left_out: usize,
}

/// What a process did in an interval.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    /// Its line at the end of the interval.
    pub stat: Stat,
    /// CPU time, with that of children that it waited for.
    pub used: Nanos,
    /// CPU time of children that it waited for.
    pub of_children: Nanos,
    /// Threads that run or wait for a CPU.
    pub wants: u32,
    /// Where its threads ran and waited.
    pub on: Vec<CpuShare>,
    /// Whether the kernel counts how long a thread waits.
    pub counts_waits: bool,
}

impl Times {
    /// What the kernel's exact counts were; `None` if there were none.
    fn exact(&self) -> Option<(u64, u64)> {
        self.waited.map(|waited| (self.used.0, waited.0))
    }
}

impl Activity {
    /// That of a process that slept.
    fn none(stat: Stat) -> Activity {
        Activity {
            stat,
            used: Nanos::ZERO,
            of_children: Nanos::ZERO,
            wants: 0,
            on: Vec::new(),
            counts_waits: true,
        }
    }

    /// Adds what a thread did. A baseline only shows what it wants.
    fn add(
        &mut self,
        look: &ScanInterval<'_>,
        stat: &Stat,
        before: Option<Times>,
        now: Times,
        is_baseline: bool,
    ) {
        self.wants += u32::from(stat.state == 'R');
        self.counts_waits |= now.waited.is_some();
        let (Some(cpu), false) = (stat.last_cpu, is_baseline) else {
            return;
        };
        let before = before.unwrap_or_default();
        let used = now.used.since(before.used).min(look.length);
        let mut waited = Nanos::ZERO;
        if let Some(now) = now.waited {
            waited = now
                .since(before.waited.unwrap_or(Nanos::ZERO))
                .min(look.length);
            // The kernel counts a wait when it ends. This one has lasted for the whole interval.
            if stat.state == 'R' && used == Nanos::ZERO && waited == Nanos::ZERO {
                waited = look.length;
            }
        }
        if used + waited > Nanos::ZERO {
            self.on.push(CpuShare { cpu, used, waited });
        }
    }

    /// Whether the process has ended and was not waited for.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.stat.state, 'Z' | 'X')
    }
}

impl WatchedProcess {
    pub(super) fn new(root: &Root, member: ProcessKey) -> WatchedProcess {
        let pid = member.pid;
        WatchedProcess {
            member,
            stat: ProcessFile::new(root, &format!("/proc/{pid}/stat")),
            schedstat: ProcessFile::new(root, &format!("/proc/{pid}/schedstat")),
            last: None,
            threads: BTreeMap::new(),
            wanted: false,
        }
    }

    /// Its line of the last look.
    pub(super) fn last(&self) -> Option<&Stat> {
        self.last.as_ref()
    }

    /// Looks at it; `None` if it is gone.
    pub(super) fn look(&mut self, look: &mut ScanInterval<'_>) -> Option<Activity> {
        let exact = self.schedstat.read(sched_times);
        if let Some(last) = self
            .last
            .filter(|last| self.still_sleeps(look, last, exact))
        {
            return Some(Activity::none(last));
        }
        let stat = self.stat.read(Stat::read_file)?;
        if stat.start != self.member.start {
            return None;
        }
        let is_new = self.last.is_none();
        let was_born = look.length > Nanos::ZERO && tick_time(stat.start) >= look.began;
        let before = match self.last {
            Some(before) => (before.ticks, before.child_ticks),
            None if was_born => (0, 0),
            None => (stat.ticks, stat.child_ticks),
        };
        let of_children = tick_time(stat.child_ticks.saturating_sub(before.1));
        let mut activity = Activity {
            used: tick_time(stat.ticks.saturating_sub(before.0)) + of_children,
            of_children,
            counts_waits: false,
            ..Activity::none(stat)
        };
        let has_run = is_new || stat.ticks != before.0;
        let threads = self.look_at_threads(look, &stat, times_of(exact, &stat), has_run);
        if !threads.is_empty() {
            let before = std::mem::take(&mut self.threads);
            for (tid, stat, now) in threads {
                let before = before.get(&tid).copied();
                activity.add(look, &stat, before, now, is_new && !was_born);
                self.threads.insert(tid, now);
            }
        }
        self.wanted = activity.wants > 0;
        self.last = Some(stat);
        Some(activity)
    }

    /// Whether a process of one thread slept at the last look, and has neither run nor waited since. One that woke and waits
    /// for its first CPU is seen at a later look.
    fn still_sleeps(
        &self,
        look: &ScanInterval<'_>,
        last: &Stat,
        exact: Option<(u64, u64)>,
    ) -> bool {
        let known = self.threads.get(&self.member.pid);
        let is_alone = last.threads <= 1 && self.threads.len() == 1;
        let has_turn = look.number % REFRESH == self.member.start % REFRESH;
        is_alone
            && !self.wanted
            && !has_turn
            && exact.is_some()
            && exact == known.and_then(Times::exact)
    }

    /// The threads that may have run or waited, each with its line and its times.
    fn look_at_threads(
        &self,
        look: &mut ScanInterval<'_>,
        stat: &Stat,
        times: Times,
        has_run: bool,
    ) -> Vec<(RawPid, Stat, Times)> {
        if stat.threads <= 1 {
            return vec![(self.member.pid, *stat, times)];
        }
        let known = self.threads.get(&self.member.pid);
        let first_ran = known.is_none_or(|known| known.used != times.used);
        if !has_run && !self.wanted && !first_ran && stat.state != 'R' {
            return Vec::new();
        }
        let mut tids = process::threads(look.root, self.member.pid);
        tids.sort_unstable();
        let read = tids.len().min(look.threads);
        look.threads -= read;
        look.left_out += tids.len() - read;
        tids.truncate(read);
        let each = tids.into_iter();
        each.filter_map(|tid| self.read_thread(look.root, tid))
            .collect()
    }

    /// Reads a thread; `None` if it has ended.
    fn read_thread(&self, root: &Root, tid: RawPid) -> Option<(RawPid, Stat, Times)> {
        let folder = format!("/proc/{}/task/{tid}", self.member.pid);
        let file = File::open(root.path(&format!("{folder}/schedstat"))).ok();
        let stat = Stat::read(root, &format!("{folder}/stat"))?;
        let times = times_of(file.as_ref().and_then(sched_times), &stat);
        Some((tid, stat, times))
    }
}

/// The times of a thread: exact ones, or else the clock ticks of its line.
fn times_of(exact: Option<(u64, u64)>, stat: &Stat) -> Times {
    match exact {
        Some((used, waited)) => Times {
            used: Nanos(used),
            waited: Some(Nanos(waited)),
        },
        None => Times {
            used: tick_time(stat.ticks),
            waited: None,
        },
    }
}
