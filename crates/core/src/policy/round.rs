//! What every policy that gives out whole CPUs has in common: who may be chosen, what is free, and the step from the
//! chosen tasks to a decision.
//!
//! At the end of a quantum all CPUs are given out anew; between quanta only those that are free are filled, and what
//! runs stays.

use super::allocate::{Chosen, allocate};
use crate::decision::{Basis, Change, Decision, Placement, Purpose, Wait, WaitReason};
use crate::snapshot::{Running, Snapshot, TaskView};
use crate::topology::{CpuId, CpuSet};
use crate::units::Nanos;

/// One round of giving out CPUs.
pub(super) struct Round<'a> {
    /// What the policy sees.
    pub(super) snap: &'a Snapshot,
    /// Whether everything is given out anew.
    pub(super) full: bool,
    /// Indices into `snap.tasks` of those that may be chosen: overdue first, then the longest waiting first.
    pub(super) order: Vec<u32>,
    /// Those that hold CPUs and sleep, in a full round: they keep CPUs that nobody else wants.
    sleepers: Vec<u32>,
    /// Free CPUs that are not promised to a chosen task yet, by index in the machine.
    free: Vec<bool>,
    left: u32,
    chosen: Vec<Chosen>,
    fates: Vec<Fate>,
    waits: Vec<Wait>,
}

/// What became of a task in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing yet.
    Open,
    /// It runs.
    Chosen,
    /// It was tried and waits, and its reason is noted. CPUs only become fewer, so there is no second try.
    Waits,
}

/// Whether a task stays where it runs: between quanta everybody does, at their end those that can't be stopped.
pub(super) fn stays(task: &TaskView, full: bool) -> bool {
    task.running.is_some() && !(full && task.control.place && task.control.freeze)
}

impl<'a> Round<'a> {
    /// A round over what became free, or over everything at the end of a quantum.
    pub(super) fn new(snap: &'a Snapshot) -> Round<'a> {
        let full = snap.is_quantum_end() || snap.tasks.iter().all(|task| task.running.is_none());
        Round::over(snap, full)
    }

    /// A round over what is free; what runs stays, even at the end of a quantum.
    pub(super) fn between_quanta(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, false)
    }

    /// A round over everything.
    pub(super) fn everything(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, true)
    }

    fn over(snap: &'a Snapshot, full: bool) -> Round<'a> {
        let machine = &*snap.machine;
        let mut free = vec![true; machine.cpus.len()];
        for task in snap.tasks.iter().filter(|task| stays(task, full)) {
            if let Some(Running { placement: Placement::Exclusive { cpus, whole_core }, .. }) = &task.running {
                for ix in cpus.iter().filter_map(|cpu| machine.index_of(cpu)) {
                    free[ix] = false;
                    if *whole_core {
                        let siblings = machine.cores[machine.cpus[ix].core].iter();
                        siblings.filter_map(|cpu| machine.index_of(cpu)).for_each(|ix| free[ix] = false);
                    }
                }
            }
        }
        let mut keys: Vec<(bool, Nanos, u32)> = Vec::with_capacity(snap.tasks.len());
        let mut sleepers = Vec::new();
        for (task, ix) in snap.tasks.iter().zip(0u32..) {
            if !task.control.place || stays(task, full) {
                continue;
            }
            if !task.asleep {
                keys.push((!task.overdue, task.waiting_since, ix));
            } else if task.running.is_some() {
                sleepers.push(ix);
            }
        }
        keys.sort_unstable();
        let left = free.iter().filter(|&&is_free| is_free).count() as u32;
        Round {
            snap,
            full,
            order: keys.into_iter().map(|(_, _, ix)| ix).collect(),
            sleepers,
            free,
            left,
            chosen: Vec::new(),
            fates: vec![Fate::Open; snap.tasks.len()],
            waits: Vec::new(),
        }
    }

    /// Free CPUs that are not promised yet.
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// The task at an index.
    pub(super) fn task(&self, ix: u32) -> &'a TaskView {
        &self.snap.tasks[ix as usize]
    }

    /// Whether it was neither chosen in this round nor tried in vain.
    pub(super) fn is_open(&self, ix: u32) -> bool {
        self.fates[ix as usize] == Fate::Open
    }

    /// How many tasks at the head of the order are overdue.
    pub(super) fn overdue(&self) -> usize {
        self.order.partition_point(|&ix| self.task(ix).overdue)
    }

    /// Whether all tasks fit at once, so that there is nothing to choose.
    pub(super) fn all_fit(&self) -> bool {
        self.order.iter().map(|&ix| u64::from(self.task(ix).cpus)).sum::<u64>() <= u64::from(self.left)
    }

    /// Notes why a task waits.
    pub(super) fn wait(&mut self, ix: u32, reason: WaitReason) {
        self.fates[ix as usize] = Fate::Waits;
        self.waits.push(Wait { task: self.task(ix).id, reason });
    }

    /// Lets tasks that sleep compete like the others, after them in order.
    pub(super) fn consider_sleepers(&mut self) {
        self.order.append(&mut self.sleepers);
    }

    /// Chooses a task for as many CPUs as it needs; or says why it can't be had now.
    pub(super) fn choose(&mut self, ix: u32, purpose: Purpose) -> Result<(), WaitReason> {
        let task = self.task(ix);
        if task.cpus > self.left {
            return Err(WaitReason::Gang { needs: task.cpus, free: self.left });
        }
        // A task that is not free to go anywhere takes its CPUs now; the others share what is left at the end.
        let reserved = match &task.allowed {
            Some(mask) => {
                let mut cpus = CpuSet::new();
                let machine = &self.snap.machine;
                let usable = mask.iter().filter(|&cpu| machine.index_of(cpu).is_some_and(|ix| self.free[ix]));
                // Where it ran last comes first.
                let (last, other): (Vec<_>, Vec<_>) = usable.partition(|&cpu| task.last_cpus.contains(cpu));
                last.into_iter().chain(other).take(task.cpus as usize).for_each(|cpu| {
                    cpus.insert(cpu);
                });
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

    /// Chooses a task for whole cores, whose other CPUs stay idle; or says why it can't be had now.
    pub(super) fn choose_whole_core(&mut self, ix: u32, purpose: Purpose) -> Result<(), WaitReason> {
        let task = self.task(ix);
        let machine = &*self.snap.machine;
        let may_use = |cpu: CpuId| task.allowed.as_ref().is_none_or(|mask| mask.contains(cpu));
        let is_free = |core: &CpuSet| core.iter().all(|cpu| machine.index_of(cpu).is_some_and(|ix| self.free[ix]));
        let last = |core: &CpuSet| core.iter().any(|cpu| task.last_cpus.contains(cpu));
        let mut cores: Vec<&CpuSet> =
            machine.cores.iter().filter(|core| core.iter().any(may_use) && is_free(core)).collect();
        cores.sort_by_key(|core| !last(core));
        let mut cpus = CpuSet::new();
        let mut idle = CpuSet::new();
        for core in cores {
            if cpus.len() == task.cpus as usize {
                break;
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
            return Err(WaitReason::Gang { needs: task.cpus, free: self.left });
        }
        self.commit(ix, purpose, Some(cpus), true);
        for ix in idle.iter().filter_map(|cpu| machine.index_of(cpu)) {
            self.free[ix] = false;
            self.left -= 1;
        }
        Ok(())
    }

    fn commit(&mut self, ix: u32, purpose: Purpose, reserved: Option<CpuSet>, whole_core: bool) {
        self.left -= self.task(ix).cpus;
        if let Some(cpus) = &reserved {
            cpus.iter().filter_map(|cpu| self.snap.machine.index_of(cpu)).for_each(|ix| self.free[ix] = false);
        }
        self.fates[ix as usize] = Fate::Chosen;
        self.chosen.push(Chosen { ix, purpose, reserved, whole_core });
    }

    /// Chooses in the round's order as long as CPUs are free. With `strict` nobody overtakes a gang that does not fit.
    /// A single task that must wait for one of its own CPUs may be overtaken: none of them is free for the others.
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

    /// The decision: places the chosen, stops those that run and were not chosen, and gives every other waiting task
    /// `reason`, called with its index and how many wait before it.
    pub(super) fn finish(
        mut self,
        next_wake: Nanos,
        basis: Basis,
        mut reason: impl FnMut(u32, u32) -> WaitReason,
    ) -> Decision {
        let snap = self.snap;
        let mut decision = Decision { next_wake: Some(next_wake), basis, ..Decision::default() };
        for ix in std::mem::take(&mut self.sleepers) {
            // Refused, it gets its reason below, like all others.
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
                decision.changes.push(Change::Stop { task: self.task(ix).id });
            }
            if self.is_open(ix) {
                let reason = reason(ix, ahead);
                self.wait(ix, reason);
            }
            ahead += 1;
        }
        decision.changes.extend(allocate(snap, self.full, &self.free, self.chosen));
        decision.waits = self.waits;
        decision
    }
}
