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
    /// Takes in what was told.
    pub(crate) fn switched(&mut self, at: Nanos, switched: Switched) {
        match switched {
            Switched::To { cpu, task } => {
                self.told.get_or_insert(at);
                match task {
                    Some(task) => {
                        self.held.insert(cpu, Holder { task, since: at });
                        self.seen.insert(task);
                    }
                    None => _ = self.held.remove(&cpu),
                }
            }
            Switched::Untold => *self = Holders::default(),
        }
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
