//! Hardware counters of processes that run already. A process is counted from the look on at which it has used a CPU, with
//! the children and threads that it starts later.

use super::watched::Activity;
use crate::counters::{EventStart, JobCounters};
use crate::events::MachineEvents;
use crate::process::{self, ProcessKey};
use crate::root::Root;
use crate::sys::RawPid;
use cosched_core::{Absence, Counts, Reading};
use rustix::process::Pid;
use std::collections::BTreeMap;

/// Maximum number of processes with counters of their own. Each costs a file descriptor per counter.
const MOST_COUNTED: usize = 128;

/// Maximum number of threads of a process with counters of its own.
const MOST_THREADS: usize = 64;

/// The counters of all subjects.
pub(super) struct SubjectCounters {
    root: Root,
    events: MachineEvents,
    open: BTreeMap<ProcessKey, Count>,
}

/// The counters of a process.
enum Count {
    /// Its own, by thread.
    Own {
        counters: Vec<JobCounters>,
        before: Counts,
    },
    /// Those of its parent, which was counted when it started.
    OfParent,
}

impl SubjectCounters {
    pub(super) fn new(root: &Root, events: MachineEvents) -> SubjectCounters {
        SubjectCounters {
            root: root.clone(),
            events,
            open: BTreeMap::new(),
        }
    }

    /// The counts of a subject's processes in the interval.
    pub(super) fn of(&mut self, activities: &BTreeMap<ProcessKey, Activity>) -> Counts {
        if self.events.pmus.is_empty() {
            return Counts::absent(Absence::NoCounters);
        }
        let mut all = Counts::from_fn(|_| Reading::Value(0));
        for (member, activity) in activities {
            let counts = self.of_process(member, activity, activities);
            all = Counts::from_fn(|counter| added(all[counter], counts[counter]));
        }
        all
    }

    fn of_process(
        &mut self,
        member: &ProcessKey,
        activity: &Activity,
        family: &BTreeMap<ProcessKey, Activity>,
    ) -> Counts {
        let zero = Counts::from_fn(|_| Reading::Value(0));
        match self.open.get_mut(member) {
            Some(Count::OfParent) => zero,
            Some(Count::Own { counters, before }) => {
                let now = read(counters);
                let since = now.since(before);
                *before = now;
                since
            }
            None if activity.on.is_empty() => zero,
            None => self.open(member, activity, family),
        }
    }

    /// Starts to count a process, which has no counts yet.
    fn open(
        &mut self,
        member: &ProcessKey,
        activity: &Activity,
        family: &BTreeMap<ProcessKey, Activity>,
    ) -> Counts {
        let parent = family
            .keys()
            .find(|other| other.pid == activity.stat.parent);
        let inherits = parent
            .is_some_and(|parent| parent.start < member.start && self.open.contains_key(parent));
        if inherits {
            self.open.insert(*member, Count::OfParent);
            return Counts::from_fn(|_| Reading::Value(0));
        }
        let own = self
            .open
            .values()
            .filter(|count| matches!(count, Count::Own { .. }));
        if own.count() >= MOST_COUNTED {
            return Counts::absent(Absence::TooManyFiles);
        }
        let mut counters = self.open_threads(member.pid);
        let before = read(&mut counters);
        self.open.insert(*member, Count::Own { counters, before });
        Counts::from_fn(|counter| {
            before[counter].and_then(|_| Reading::Absent(Absence::NotYetMeasured))
        })
    }

    /// Opens counters of each thread of a process. None of a process with very many threads: a part would mislead.
    fn open_threads(&self, pid: RawPid) -> Vec<JobCounters> {
        let mut tids = process::threads(&self.root, pid);
        if tids.len() > MOST_THREADS {
            tids.clear();
        }
        let tids = tids.into_iter().filter_map(Pid::from_raw);
        let open = |tid| JobCounters::open(tid, &self.events, EventStart::Now).0;
        tids.map(open).collect()
    }

    pub(super) fn retain(&mut self, is_present: impl Fn(&ProcessKey) -> bool) {
        self.open.retain(|member, _| is_present(member));
    }
}

/// The counts of all threads of a process.
fn read(threads: &mut [JobCounters]) -> Counts {
    let Some((first, others)) = threads.split_first_mut() else {
        return Counts::absent(Absence::TooManyFiles);
    };
    let mut all = first.read();
    for thread in others {
        let counts = thread.read();
        all = Counts::from_fn(|counter| added(all[counter], counts[counter]));
    }
    all
}

/// The sum of two counts; absent if one is.
fn added(one: Reading<u64>, other: Reading<u64>) -> Reading<u64> {
    one.and_then(|one| other.map(|other| one.saturating_add(other)))
}
