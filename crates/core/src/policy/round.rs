//! What all policies that give out whole CPUs have in common: which tasks may be chosen, which CPUs are free, and the
//! step from the chosen tasks to a decision.
//!
//! At the end of a quantum all CPUs are given out anew; between quanta only those that are free are filled, and what
//! runs stays.

use super::allocate::{Chosen, allocate};
use super::tail::critical;
use crate::decision::{Basis, Change, Decision, Wait, WaitReason};
use crate::placement::{Placement, Purpose};
use crate::snapshot::{Running, Snapshot, TaskView};
use crate::topology::{CpuId, CpuSet};
use crate::units::Nanos;
use std::cmp::Reverse;

/// One round of giving out CPUs.
pub(super) struct Round<'a> {
    pub(super) snap: &'a Snapshot,
    /// Whether all CPUs are given out anew.
    pub(super) full: bool,
    /// Indices into `snap.tasks` of the tasks that may be chosen: overdue tasks first, then critical ones, then the longest
    /// waiting. Those that run have not waited at all; of them the one that has run longest without a break comes last, as in
    /// a queue.
    pub(super) order: Vec<u32>,
    /// In a full round, of each task of the snapshot whether it is [critical](super::tail); empty if none is.
    critical: Vec<bool>,
    /// In a full round, the tasks that hold CPUs and sleep. They keep CPUs that no other task wants.
    sleepers: Vec<u32>,
    /// Free CPUs, except those that are reserved for a chosen task.
    free: CpuSet,
    /// Cores before this one are not wholly free.
    first_whole: usize,
    left: u32,
    chosen: Vec<Chosen>,
    fates: Vec<Fate>,
    waits: Vec<Wait>,
}

/// What became of a task in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not decided yet.
    Open,
    /// It runs.
    Chosen,
    /// It was tried and waits; its reason is noted. CPUs only become fewer, so it is not tried again.
    Waits,
}

/// Whether all CPUs are given out anew: at the end of a quantum, and when nothing runs.
pub(super) fn is_full(snap: &Snapshot) -> bool {
    snap.is_quantum_end() || snap.tasks.iter().all(|task| task.running.is_none())
}

impl<'a> Round<'a> {
    /// A round over what became free, or over everything at the end of a quantum.
    pub(super) fn new(snap: &'a Snapshot) -> Round<'a> {
        let full = is_full(snap);
        Round::over(
            snap,
            full,
            if full { critical(snap) } else { Vec::new() },
            |_| false,
        )
    }

    /// As [`Round::new`], but tasks for which `keep` holds stay where they run even at the end of a quantum, and critical
    /// tasks do not come first: those who pack CPUs by other rules have no use for it.
    pub(super) fn keeping(snap: &'a Snapshot, keep: impl Fn(&TaskView) -> bool) -> Round<'a> {
        Round::over(snap, is_full(snap), Vec::new(), keep)
    }

    /// A round over what is free; what runs stays, even at the end of a quantum.
    pub(super) fn between_quanta(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, false, Vec::new(), |_| false)
    }

    /// A round over everything.
    pub(super) fn everything(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, true, critical(snap), |_| false)
    }

    fn over(
        snap: &'a Snapshot,
        full: bool,
        critical: Vec<bool>,
        keep: impl Fn(&TaskView) -> bool,
    ) -> Round<'a> {
        let machine = &*snap.machine;
        let stays = |task: &TaskView| task.stays(full) || (task.running.is_some() && keep(task));
        let mut free = machine.all_cpus();
        for task in snap.tasks.iter().filter(|task| stays(task)) {
            if let Some(Running {
                placement: Placement::Exclusive { cpus, whole_core },
                ..
            }) = &task.running
            {
                for cpu in cpus.iter() {
                    free.remove(cpu);
                    if let Some(ix) = machine.index_of(cpu).filter(|_| *whole_core) {
                        free.remove_all(&machine.cores[machine.cpus[ix].core]);
                    }
                }
            }
        }
        // One number per task sorts faster than a tuple: not overdue, waiting since, index.
        let mut keys: Vec<u128> = Vec::with_capacity(snap.tasks.len());
        let mut run = Vec::new();
        let mut sleepers = Vec::new();
        for (task, ix) in snap.tasks.iter().zip(0u32..) {
            if !task.control.place || stays(task) {
                continue;
            }
            match &task.running {
                Some(_) if task.asleep => sleepers.push(ix),
                _ if task.asleep => {}
                Some(running) => run.push((Reverse(running.since), task.estimates.ran, ix)),
                None => {
                    let since = u128::from(task.waiting_since.0);
                    keys.push(u128::from(!task.overdue) << 96 | since << 32 | u128::from(ix));
                }
            }
        }
        keys.sort_unstable();
        run.sort_unstable();
        // Of those that began or stopped together the one comes first that has run least in all, and then the one that was
        // let in first. By their numbers alone it would be one of the same few each time.
        for together in keys.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            together.sort_by_key(|&key| {
                let task = &snap.tasks[key as u32 as usize];
                (task.estimates.ran, task.turn, key)
            });
        }
        let left = free.len() as u32;
        let mut order: Vec<u32> = keys
            .into_iter()
            .map(|key| key as u32)
            .chain(run.into_iter().map(|(.., ix)| ix))
            .collect();
        if !critical.is_empty() {
            order.sort_by_key(|&ix| (!snap.tasks[ix as usize].overdue, !critical[ix as usize]));
        }
        Round {
            snap,
            full,
            order,
            critical,
            sleepers,
            free,
            first_whole: 0,
            left,
            chosen: Vec::new(),
            fates: vec![Fate::Open; snap.tasks.len()],
            waits: Vec::new(),
        }
    }

    /// The number of free CPUs that no chosen task takes yet.
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    pub(super) fn task(&self, ix: u32) -> &'a TaskView {
        &self.snap.tasks[ix as usize]
    }

    /// Whether the task was neither chosen nor refused in this round.
    pub(super) fn is_open(&self, ix: u32) -> bool {
        self.fates[ix as usize] == Fate::Open
    }

    /// Of each task of the snapshot, whether it is in the order and neither chosen nor refused.
    pub(super) fn open(&self) -> Vec<bool> {
        let mut open = vec![false; self.fates.len()];
        self.order
            .iter()
            .for_each(|&ix| open[ix as usize] = self.is_open(ix));
        open
    }

    /// How many tasks at the head of the order are overdue.
    pub(super) fn overdue(&self) -> usize {
        self.order.partition_point(|&ix| self.task(ix).overdue)
    }

    /// Whether the batch would end later if the task paused now.
    pub(super) fn is_critical(&self, ix: u32) -> bool {
        self.critical
            .get(ix as usize)
            .is_some_and(|&critical| critical)
    }

    /// How many tasks at the head of the order come before all others: those that are overdue, and those that are critical.
    pub(super) fn head(&self) -> usize {
        self.order
            .partition_point(|&ix| self.task(ix).overdue || self.is_critical(ix))
    }

    /// Whether all tasks fit at once, so that there is nothing to choose.
    pub(super) fn all_fit(&self) -> bool {
        self.order
            .iter()
            .map(|&ix| u64::from(self.task(ix).cpus))
            .sum::<u64>()
            <= u64::from(self.left)
    }

    /// Notes why a task waits.
    pub(super) fn wait(&mut self, ix: u32, reason: WaitReason) {
        self.fates[ix as usize] = Fate::Waits;
        self.waits.push(Wait {
            task: self.task(ix).id,
            reason,
        });
    }

    /// Lets sleeping tasks compete like the others, after them in order, those first that have run least.
    pub(super) fn consider_sleepers(&mut self) {
        let mut sleepers = self.take_sleepers();
        self.order.append(&mut sleepers);
    }

    /// The sleepers that are left, those first that have run least.
    fn take_sleepers(&mut self) -> Vec<u32> {
        let mut sleepers = std::mem::take(&mut self.sleepers);
        sleepers.sort_by_key(|&ix| {
            let task = &self.snap.tasks[ix as usize];
            (task.estimates.ran, task.turn, ix)
        });
        sleepers
    }

    /// Chooses a task for as many CPUs as it needs, or says why it can't be chosen now.
    pub(super) fn choose(&mut self, ix: u32, purpose: Purpose) -> Result<(), WaitReason> {
        let task = self.task(ix);
        if task.cpus > self.left {
            return Err(WaitReason::Gang {
                needs: task.cpus,
                free: self.left,
            });
        }
        // A task with a mask takes its CPUs now; the others share what is left at the end.
        let reserved = match &task.allowed {
            Some(mask) => {
                let usable = mask.intersection(&self.free);
                // Where it ran last comes first.
                let mut cpus: CpuSet = usable
                    .intersection(&task.last_cpus)
                    .iter()
                    .take(task.cpus as usize)
                    .collect();
                let missing = task.cpus as usize - cpus.len();
                cpus.extend(
                    usable
                        .iter()
                        .filter(|&cpu| !task.last_cpus.contains(cpu))
                        .take(missing),
                );
                if cpus.len() < task.cpus as usize {
                    return Err(WaitReason::Affinity);
                }
                Some(cpus)
            }
            None => None,
        };
        self.commit(ix, purpose, reserved, false);
        Ok(())
    }

    /// Free CPUs for a task that may use all: where it ran last, then those of cores that are wholly free. There must be
    /// as many as it needs.
    pub(super) fn pick(&self, ix: u32) -> CpuSet {
        let task = self.task(ix);
        let cores = &self.snap.machine.cores;
        let last = task.last_cpus.iter().filter(|&cpu| self.free.contains(cpu));
        let whole = cores
            .iter()
            .filter(|core| core.is_subset(&self.free))
            .flat_map(|core| core.iter());
        let mut cpus = CpuSet::new();
        for cpu in last.chain(whole).chain(self.free.iter()) {
            if cpus.len() == task.cpus as usize {
                break;
            }
            cpus.insert(cpu);
        }
        cpus
    }

    /// Chooses a task for these CPUs. They must be free, as many as the task needs, and among those that it may use.
    pub(super) fn choose_on(&mut self, ix: u32, cpus: CpuSet, purpose: Purpose) {
        self.commit(ix, purpose, Some(cpus), false);
    }

    pub(super) fn is_free(&self, cpu: CpuId) -> bool {
        self.free.contains(cpu)
    }

    /// Chooses a task for whole cores, whose other CPUs stay idle, or says why it can't be chosen now.
    pub(super) fn choose_whole_core(
        &mut self,
        ix: u32,
        purpose: Purpose,
    ) -> Result<(), WaitReason> {
        let cores = &self.snap.machine.cores;
        while self.first_whole < cores.len() && !cores[self.first_whole].is_subset(&self.free) {
            self.first_whole += 1;
        }
        self.take_whole_cores(ix, |_| true, self.first_whole..cores.len(), purpose)
    }

    /// The same with some of the cores, by their numbers in ascending order.
    pub(super) fn choose_whole_core_of(
        &mut self,
        ix: u32,
        cores: &[usize],
        purpose: Purpose,
    ) -> Result<(), WaitReason> {
        if cores.len() == self.snap.machine.cores.len() {
            return self.choose_whole_core(ix, purpose);
        }
        self.take_whole_cores(
            ix,
            |core| cores.binary_search(&core).is_ok(),
            cores.iter().copied(),
            purpose,
        )
    }

    fn take_whole_cores(
        &mut self,
        ix: u32,
        may_be: impl Fn(usize) -> bool,
        cores: impl Iterator<Item = usize>,
        purpose: Purpose,
    ) -> Result<(), WaitReason> {
        let task = self.task(ix);
        let machine = &*self.snap.machine;
        let may_use = |cpu: CpuId| task.allowed.as_ref().is_none_or(|mask| mask.contains(cpu));
        // Where it ran last comes first.
        let last = task
            .last_cpus
            .iter()
            .filter_map(|cpu| machine.index_of(cpu))
            .map(|ix| machine.cpus[ix].core);
        let (mut cpus, mut idle) = (CpuSet::new(), CpuSet::new());
        for core in last
            .filter(|&core| may_be(core))
            .chain(cores)
            .map(|core| &machine.cores[core])
        {
            if cpus.len() == task.cpus as usize {
                break;
            }
            let is_new = core
                .first()
                .is_some_and(|cpu| !cpus.contains(cpu) && !idle.contains(cpu));
            if !is_new || !core.is_subset(&self.free) || !core.iter().any(may_use) {
                continue;
            }
            for cpu in core.iter() {
                if cpus.len() < task.cpus as usize && may_use(cpu) {
                    cpus.insert(cpu)
                } else {
                    idle.insert(cpu)
                };
            }
        }
        if cpus.len() < task.cpus as usize {
            return Err(WaitReason::Gang {
                needs: task.cpus,
                free: self.left,
            });
        }
        self.commit(ix, purpose, Some(cpus), true);
        self.free.remove_all(&idle);
        self.left -= idle.len() as u32;
        Ok(())
    }

    fn commit(&mut self, ix: u32, purpose: Purpose, reserved: Option<CpuSet>, whole_core: bool) {
        self.left -= self.task(ix).cpus;
        if let Some(cpus) = &reserved {
            self.free.remove_all(cpus);
        }
        self.fates[ix as usize] = Fate::Chosen;
        self.chosen.push(Chosen {
            ix,
            purpose,
            reserved,
            whole_core,
        });
    }

    /// Chooses in the round's order as long as CPUs are free. With `strict` no task overtakes a gang that does not fit.
    /// A task of one CPU that waits for a CPU of its mask may be overtaken: none of those CPUs is free for the others
    /// either.
    pub(super) fn choose_in_order(&mut self, purpose: Purpose, strict: bool) {
        for pos in 0..self.order.len() {
            if self.left == 0 {
                break;
            }
            let ix = self.order[pos];
            if !self.is_open(ix) {
                continue;
            }
            if let Err(reason) = self.choose(ix, purpose) {
                self.wait(ix, reason);
                if strict && self.task(ix).cpus > 1 {
                    break;
                }
            }
        }
    }

    /// The decision: places the chosen tasks and stops those that run and were not chosen. Each waiting task without a
    /// reason gets one from `reason`, which is called with its index and with how many tasks wait before it.
    pub(super) fn finish(
        mut self,
        next_wake: Nanos,
        basis: Basis,
        mut reason: impl FnMut(u32, u32) -> WaitReason,
    ) -> Decision {
        let snap = self.snap;
        let mut decision = Decision {
            next_wake: Some(next_wake),
            basis,
            ..Decision::default()
        };
        for ix in self.take_sleepers() {
            // If it is refused, it gets its reason below, like all others.
            let _ = self.choose(ix, Purpose::Run);
            self.order.push(ix);
        }
        let mut ahead = 0;
        for pos in 0..self.order.len() {
            let ix = self.order[pos];
            if self.fates[ix as usize] == Fate::Chosen {
                continue;
            }
            if self.task(ix).running.is_some() {
                decision.changes.push(Change::Stop {
                    task: self.task(ix).id,
                });
            }
            if self.is_open(ix) {
                let reason = reason(ix, ahead);
                self.wait(ix, reason);
            }
            ahead += 1;
        }
        decision
            .changes
            .extend(allocate(snap, self.full, &self.free, self.chosen));
        decision.waits = self.waits;
        decision
    }
}
