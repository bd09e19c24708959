//! Who has which CPU, as a scheduler in the kernel sees it. It may differ from what was decided: a job that was placed may wait for
//! its CPU, and one that was not may fill in.

use cosched_core::{CpuId, Nanos, Switched, TaskId};
use std::collections::{BTreeMap, HashSet};

/// A task that has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) task: TaskId,
    pub(crate) since: Nanos,
}

/// The CPUs that tasks have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// Since when it is told; `None` while it is not.
    told: Option<Nanos>,
    held: BTreeMap<CpuId, Holder>,
    /// Tasks that have had a CPU meanwhile. Of another one nothing is known: the scheduler may not have it.
    seen: HashSet<TaskId>,
}

impl Holders {
    /// Takes in what was told, and answers who had the CPU before.
    pub(crate) fn switched(&mut self, at: Nanos, switched: Switched) -> Option<TaskId> {
        let Switched::To { cpu, task } = switched else {
            *self = Holders::default();
            return None;
        };
        self.told.get_or_insert(at);
        self.seen.extend(task);
        let before = match task {
            Some(task) => self.held.insert(cpu, Holder { task, since: at }),
            None => self.held.remove(&cpu),
        };
        before.map(|holder| holder.task)
    }

    /// The task has ended. What it left behind may still have CPUs, and is not it any more.
    pub(crate) fn ended(&mut self, task: TaskId) {
        self.held.retain(|_, holder| holder.task != task);
    }

    /// Since when it is told who has which CPU; `None` while it is not.
    pub(crate) fn told(&self) -> Option<Nanos> {
        self.told
    }

    /// Who has this CPU.
    pub(crate) fn of(&self, cpu: CpuId) -> Option<Holder> {
        self.held.get(&cpu).copied()
    }

    /// The CPUs that are held, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CpuId, Holder)> {
        self.held.iter().map(|(cpu, holder)| (*cpu, *holder))
    }

    /// Whether this task has had a CPU since it is told.
    pub(crate) fn has_seen(&self, task: TaskId) -> bool {
        self.seen.contains(&task)
    }
}
