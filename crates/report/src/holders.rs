//! The holders of the CPUs, as a scheduler in the kernel reports them. They may differ from the placements: a placed job
//! may wait for its CPU, and another may fill in.

use cosched_core::{CpuId, Nanos, Switched, TaskId};
use std::collections::{BTreeMap, HashSet};

/// A task that has a CPU.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub task: TaskId,
    pub since: Nanos,
}

/// The CPUs that tasks have.
#[derive(Default)]
pub(crate) struct Holders {
    /// There was a report.
    is_told: bool,
    held: BTreeMap<CpuId, Holder>,
    /// Tasks that have held a CPU. The scheduler may not have the others.
    seen: HashSet<TaskId>,
}

impl Holders {
    /// Apply a report; return the task that held the CPU before.
    pub(crate) fn switched(&mut self, at: Nanos, switched: Switched) -> Option<TaskId> {
        let Switched::To { cpu, task } = switched else {
            *self = Holders::default();
            return None;
        };
        self.is_told = true;
        self.seen.extend(task);
        let before = match task {
            Some(task) => self.held.insert(cpu, Holder { task, since: at }),
            None => self.held.remove(&cpu),
        };
        before.map(|holder| holder.task)
    }

    /// The task has ended. Processes that it left behind may still hold CPUs, but are no part of it.
    pub(crate) fn ended(&mut self, task: TaskId) {
        self.held.retain(|_, holder| holder.task != task);
    }

    /// Whether there was a report.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Return the holder of this CPU.
    pub(crate) fn of(&self, cpu: CpuId) -> Option<Holder> {
        self.held.get(&cpu).copied()
    }

    /// The CPUs that are held, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CpuId, Holder)> {
        self.held.iter().map(|(cpu, holder)| (*cpu, *holder))
    }

    /// Whether this task has held a CPU.
    pub(crate) fn has_seen(&self, task: TaskId) -> bool {
        self.seen.contains(&task)
    }
}
