//! Which slot a task has in the kernel.

use crate::intf::SLOTS;
use cosched_core::TaskId;
use std::collections::BTreeMap;

/// The slots of tasks that have processes or are about to. A free slot is given out as late as possible, so that what is
/// known of its last task stays readable for long.
#[derive(Debug)]
pub(crate) struct Slots {
    of: BTreeMap<TaskId, u16>,
    /// The task that has each slot, or that had it last.
    owners: Vec<Option<TaskId>>,
    next: usize,
}

/// A slot that a task has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) slot: u16,
    /// The task that had it before.
    pub(crate) before: Option<TaskId>,
}

impl Slots {
    /// As many slots as there are tasks, if there can be so many.
    pub(crate) fn new(tasks: usize) -> Slots {
        Slots {
            of: BTreeMap::new(),
            owners: vec![None; tasks.clamp(1, SLOTS)],
            next: 0,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.owners.len()
    }

    pub(crate) fn of(&self, task: TaskId) -> Option<u16> {
        self.of.get(&task).copied()
    }

    /// The task that has a slot, or had it last.
    pub(crate) fn owner(&self, slot: usize) -> Option<TaskId> {
        self.owners.get(slot).copied().flatten()
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskId, u16)> {
        self.of.iter().map(|(&task, &slot)| (task, slot))
    }

    /// Gives a task without a slot one; `None` if all are taken.
    pub(crate) fn give(&mut self, task: TaskId) -> Option<Given> {
        let count = self.owners.len();
        let slot = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|&slot| !self.is_taken(slot))?;
        self.next = (slot + 1) % count;
        let before = self.owners[slot].replace(task);
        self.of.insert(task, slot as u16);
        Some(Given {
            slot: slot as u16,
            before,
        })
    }

    fn is_taken(&self, slot: usize) -> bool {
        let owner = self.owners[slot];
        owner.is_some_and(|owner| self.of(owner) == Some(slot as u16))
    }

    /// Takes a slot back.
    pub(crate) fn take_back(&mut self, task: TaskId) {
        self.of.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_round() {
        let mut slots = Slots::new(3);
        let give = |slots: &mut Slots, task: u32| {
            slots
                .give(TaskId(task))
                .map(|given| (given.slot, given.before))
        };
        assert_eq!(give(&mut slots, 7), Some((0, None)));
        assert_eq!(give(&mut slots, 8), Some((1, None)));
        slots.take_back(TaskId(7));
        assert_eq!(
            give(&mut slots, 9),
            Some((2, None)),
            "the one that was never used comes first"
        );
        assert_eq!(slots.owner(0), Some(TaskId(7)));
        assert_eq!(give(&mut slots, 10), Some((0, Some(TaskId(7)))));
        assert_eq!(give(&mut slots, 11), None);
        slots.take_back(TaskId(9));
        assert_eq!(give(&mut slots, 11), Some((2, Some(TaskId(9)))));
        assert_eq!(
            (slots.of(TaskId(8)), slots.of(TaskId(9)), slots.count()),
            (Some(1), None, 3)
        );
    }
}
