//! Common part of the policies for two types of core: the tasks on the big cores, how many belong there, and the
//! decision.
//!
//! A task is bound to a type of core, not to a core: within a type the kernel schedules (lucky, section 4). All tasks
//! run all the time. With more than two types, the fastest is big and all others are small.
//!
//! Tasks are balanced over CPUs: each CPU gets its first task before any gets a second, big CPUs before small ones. The
//! paper leaves the first assignment to the kernel, which balances likewise, and keeps the balance by exchanging tasks.
//! Ours: when tasks start or end, the balance is restored at the end of the quantum.
//!
//! A gang is bound to a type only if that has enough CPUs; a gang that fits neither may use all CPUs. A sleeping task
//! is left where it is, and does not count.

use super::prelude::*;
use crate::topology::CpuSet;

/// The needs of the policies that choose tasks for the big cores by measurements.
pub(super) fn measuring_needs() -> Vec<Need> {
    vec![
        required(Capability::CoreTypes),
        required(Capability::Affinity),
        required(Capability::CpuTime),
        required(Capability::Ipc),
        required(Capability::Counter(Counter::MmReads)),
    ]
}

/// The CPUs a task is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Those of the fastest type of core.
    Big,
    /// All others.
    Small,
    /// All, as neither side alone has enough.
    Both,
}

/// One round of binding tasks to types of core.
pub(super) struct Split<'a> {
    /// The snapshot that the policy decides on.
    pub(super) snap: &'a Snapshot,
    /// Whether running tasks may be moved, and not only new ones placed.
    pub(super) full: bool,
    /// Indices into `snap.tasks` of the tasks that may be on either side, in ascending order.
    pub(super) free: Vec<u32>,
    /// Number of CPUs of these tasks that belong on the big cores.
    pub(super) target: u64,
    big: CpuSet,
    small: CpuSet,
    /// Those in use of each side, big ones first.
    used: [CpuSet; 2],
    /// The side of each task of the snapshot; `None` leaves it as it is.
    sides: Vec<Option<Side>>,
    /// Number of CPUs of the free tasks now on the big cores.
    load: u64,
}

impl<'a> Split<'a> {
    /// Starts from the present sides, and places new tasks by the balance.
    pub(super) fn new(snap: &'a Snapshot) -> Split<'a> {
        Split::within(snap, (usize::MAX, usize::MAX))
    }

    /// The same, with at most so many big and small CPUs in use; the others are left idle.
    pub(super) fn within(snap: &'a Snapshot, most: (usize, usize)) -> Split<'a> {
        let cpus = &snap.machine.cpus;
        let fastest = cpus.iter().map(|cpu| cpu.core_type).min();
        let mut split = Split {
            snap,
            full: is_full(snap),
            free: Vec::with_capacity(snap.tasks.len()),
            target: 0,
            big: CpuSet::new(),
            small: CpuSet::new(),
            used: [CpuSet::new(), CpuSet::new()],
            sides: vec![None; snap.tasks.len()],
            load: 0,
        };
        for cpu in cpus {
            let is_big = Some(cpu.core_type) == fastest;
            let side = if is_big {
                &mut split.big
            } else {
                &mut split.small
            };
            side.insert(cpu.id);
        }
        split.used = [
            split.big.iter().take(most.0).collect(),
            split.small.iter().take(most.1).collect(),
        ];
        split.take_stock();
        for pos in 0..split.free.len() {
            let ix = split.free[pos];
            if split.sides[ix as usize].is_none() {
                let side = if split.fits(ix) {
                    Side::Big
                } else {
                    Side::Small
                };
                split.put(ix, side);
            }
        }
        split
    }

    /// Finds the tasks that may be on either side, and how many of them belong on the big cores beside the others.
    fn take_stock(&mut self) {
        // CPUs of the tasks bound to one side: on the big cores and on the small ones.
        let mut fixed = (0, 0);
        let mut wanted = 0;
        for (ix, task) in self.snap.tasks.iter().enumerate() {
            if task.asleep {
                continue;
            }
            let cpus = u64::from(task.cpus);
            let running = task.running.as_ref();
            let now = running.and_then(|running| self.side_of(running.placement.cpus()));
            // Between quanta running tasks stay. Tasks that may not be placed always stay.
            let stays = !task.control.place || (running.is_some() && !self.full && now.is_none());
            let side = if stays {
                now
            } else {
                let only = self.only_side(task);
                self.sides[ix] = only.or(now);
                if only.is_none() {
                    self.free.push(ix as u32);
                    wanted += cpus;
                    self.load += if now == Some(Side::Big) { cpus } else { 0 };
                    continue;
                }
                only
            };
            match side {
                Some(Side::Big) => fixed.0 += cpus,
                Some(Side::Small) => fixed.1 += cpus,
                Some(Side::Both) | None => {}
            }
        }
        self.target = balanced(
            wanted,
            fixed,
            self.used.each_ref().map(|cpus| cpus.len() as u64).into(),
        );
    }

    /// The side of these CPUs, if all are on one.
    fn side_of(&self, cpus: &CpuSet) -> Option<Side> {
        if cpus.is_empty() {
            None
        } else if cpus.is_subset(&self.big) {
            Some(Side::Big)
        } else if cpus.is_subset(&self.small) {
            Some(Side::Small)
        } else {
            None
        }
    }

    /// The only side that can hold a task; `None` if both can.
    fn only_side(&self, task: &TaskView) -> Option<Side> {
        let usable = self.used.each_ref().map(|cpus| match &task.allowed {
            Some(mask) => mask.intersection(cpus).len(),
            None => cpus.len(),
        });
        let needs = task.cpus.max(1) as usize;
        match usable.map(|cpus| cpus >= needs).into() {
            (true, true) => None,
            (true, false) => Some(Side::Big),
            (false, true) => Some(Side::Small),
            (false, false) => Some(Side::Both),
        }
    }

    /// Numbers of big and small CPUs.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.big.len(), self.small.len())
    }

    /// The task at an index.
    pub(super) fn task(&self, ix: u32) -> &'a TaskView {
        &self.snap.tasks[ix as usize]
    }

    /// Whether the task will be on the big cores.
    pub(super) fn is_big(&self, ix: u32) -> bool {
        self.sides[ix as usize] == Some(Side::Big)
    }

    /// Number of CPUs of further tasks that belong on the big cores.
    pub(super) fn room(&self) -> u64 {
        self.target.saturating_sub(self.load)
    }

    /// Number of CPUs of tasks in excess on the big cores.
    pub(super) fn excess(&self) -> u64 {
        self.load.saturating_sub(self.target)
    }

    /// Whether there is room for the task on the big cores.
    pub(super) fn fits(&self, ix: u32) -> bool {
        u64::from(self.task(ix).cpus) <= self.room()
    }

    /// Binds a free task to a side.
    pub(super) fn put(&mut self, ix: u32, side: Side) {
        let cpus = u64::from(self.task(ix).cpus);
        let before = self.sides[ix as usize].replace(side);
        match (before == Some(Side::Big), side == Side::Big) {
            (false, true) => self.load += cpus,
            (true, false) => self.load -= cpus,
            _ => {}
        }
    }

    /// Takes all free tasks off the big cores.
    pub(super) fn clear(&mut self) {
        for pos in 0..self.free.len() {
            self.put(self.free[pos], Side::Small);
        }
    }

    /// The decision: binds each task to its side, and names only changes.
    pub(super) fn finish(self, next_wake: Nanos) -> Decision {
        let all = self.snap.machine.all_cpus();
        let [big, small] = &self.used;
        let mut changes = Vec::new();
        for (task, side) in self.snap.tasks.iter().zip(&self.sides) {
            let pool = match side {
                Some(Side::Big) => big,
                Some(Side::Small) => small,
                Some(Side::Both) => &all,
                None => continue,
            };
            // Avoids building a set for a task that stays.
            if task.allowed.is_none() && shares(task, pool) {
                continue;
            }
            let mask = task.usable(pool);
            if shares(task, &mask) || (task.running.is_some() && !self.full) {
                continue;
            }
            changes.push(Change::Place {
                task: task.id,
                placement: Placement::Shared { mask },
                lease_end: None,
                purpose: Purpose::Run,
            });
        }
        Decision {
            changes,
            next_wake: Some(next_wake),
            ..Decision::default()
        }
    }
}

/// Whether a task shares exactly these CPUs now.
fn shares(task: &TaskView, mask: &CpuSet) -> bool {
    let placement = task.running.as_ref().map(|running| &running.placement);
    matches!(placement, Some(Placement::Shared { mask: now }) if now == mask)
}

/// Number of `wanted` CPUs of tasks that belong on the big cores, beside the `fixed` ones on both sides. `cpus` are the
/// numbers of big and small CPUs. Each goes to the type with fewer whole tasks per CPU, big ones first.
fn balanced(wanted: u64, fixed: (u64, u64), cpus: (u64, u64)) -> u64 {
    if cpus.0 == 0 || cpus.1 == 0 {
        return if cpus.1 == 0 { wanted } else { 0 };
    }
    let (mut big, mut small) = fixed;
    for _ in 0..wanted {
        if big / cpus.0 <= small / cpus.1 {
            big += 1
        } else {
            small += 1
        }
    }
    big - fixed.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_gets_its_first_task_before_any_its_second() {
        let of_one_and_three = |wanted| balanced(wanted, (0, 0), (1, 3));
        assert_eq!(
            (0..10).map(of_one_and_three).collect::<Vec<_>>(),
            [0, 1, 1, 1, 1, 2, 2, 2, 2, 3]
        );
        assert_eq!(
            (0..6)
                .map(|n| balanced(n, (0, 0), (2, 2)))
                .collect::<Vec<_>>(),
            [0, 1, 2, 2, 2, 3]
        );
        // Fixed tasks have taken their CPUs.
        assert_eq!(
            (0..4)
                .map(|n| balanced(n, (1, 0), (1, 2)))
                .collect::<Vec<_>>(),
            [0, 0, 0, 1]
        );
        assert_eq!(balanced(5, (0, 9), (2, 2)), 5);
        assert_eq!(
            (balanced(5, (0, 0), (4, 0)), balanced(5, (0, 0), (0, 4))),
            (5, 0)
        );
    }
}
