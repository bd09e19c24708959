//! Common part of all policies that give out whole CPUs: the tasks to choose from, the free CPUs, and the step from the
//! chosen tasks to a decision.
//!
//! At the end of a quantum all CPUs are given out anew. Between quanta only free CPUs are filled, and running tasks
//! stay.

use super::allocate::{Chosen, allocate};
use super::tail::critical;
use super::weights::{Weights, entitled};
use crate::decision::{Basis, Change, Decision, Wait, WaitReason};
use crate::placement::{Placement, Purpose};
use crate::snapshot::{Snapshot, TaskView};
use crate::topology::{CpuId, CpuSet};
use crate::units::Nanos;
use std::cmp::Reverse;

/// One round of giving out CPUs.
pub(super) struct Round<'a> {
    pub(super) snap: &'a Snapshot,
    /// Whether all CPUs are given out anew.
    pub(super) full: bool,
    /// Indices into `snap.tasks` of the tasks to choose from: overdue tasks first, then critical ones, then the longest
    /// waiting. Running tasks come last; of them the one that has run longest without a break is the very last, as in a
    /// queue.
    pub(super) order: Vec<u32>,
    /// In a full round, whether each task of the snapshot must not pause; empty if none. See [`must_not_pause`].
    critical: Vec<bool>,
    /// In a full round, the sleeping tasks that hold CPUs. They keep CPUs that no other task wants.
    sleepers: Vec<u32>,
    /// Free CPUs, except those reserved for a chosen task.
    free: CpuSet,
    left: u32,
    chosen: Vec<Chosen>,
    fates: Vec<Fate>,
    waits: Vec<Wait>,
}

/// The outcome of this round for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not decided yet.
    Open,
    /// It runs.
    Chosen,
    /// It was refused and waits; its reason is recorded. CPUs only become fewer, so it is not tried again.
    Waits,
}

/// Whether all CPUs are given out anew: at the end of a quantum, and if no task runs.
pub(super) fn is_full(snap: &Snapshot) -> bool {
    snap.is_quantum_end() || snap.tasks.iter().all(|task| task.running.is_none())
}

/// Removes the CPUs of a task that stays, and those it keeps idle, from the free ones.
fn take_cpus(free: &mut CpuSet, snap: &Snapshot, task: &TaskView) {
    let machine = &*snap.machine;
    let Some(running) = &task.running else { return };
    if let Placement::Exclusive { cpus, whole_core } = &running.placement {
        free.remove_all(cpus);
        if *whole_core {
            for cpu in machine.cpus_in(cpus) {
                free.remove_all(&machine.cores[cpu.core]);
            }
        }
    }
}

/// Sort key: overdue tasks first, then the longest waiting; the lowest bits are the task's index. One number sorts much
/// faster than a tuple.
fn waiting_key(task: &TaskView, ix: u32) -> u128 {
    let since = u128::from(task.waiting_since.0);
    u128::from(!task.overdue) << 96 | since << 32 | u128::from(ix)
}

/// The indices of waiting tasks in the order of their [keys](waiting_key). Ties, of tasks that stopped together, are
/// broken by time run, and then by order of admission: by index alone the same few would come first each time.
fn longest_waiting_first(snap: &Snapshot, mut keys: Vec<u128>) -> Vec<u32> {
    keys.sort_unstable();
    for together in keys.chunk_by_mut(|one, next| one >> 32 == next >> 32) {
        together.sort_by_key(|&key| {
            let task = &snap.tasks[key as u32 as usize];
            (task.estimates.ran, task.turn, key)
        });
    }
    keys.into_iter().map(|key| key as u32).collect()
}

/// Whether each task of the snapshot must not pause: by its weight, or with equal weights by the [time
/// left](super::tail). A light task that ends last must not take time from heavy ones.
fn must_not_pause(snap: &Snapshot) -> Vec<bool> {
    if Weights::of(snap).are_equal() {
        critical(snap)
    } else {
        entitled(snap)
    }
}

impl<'a> Round<'a> {
    /// A round over the free CPUs, or over all CPUs at the end of a quantum.
    pub(super) fn new(snap: &'a Snapshot) -> Round<'a> {
        if is_full(snap) {
            Round::everything(snap)
        } else {
            Round::between_quanta(snap)
        }
    }

    /// Like [`Round::new`], for policies in which weights do not count.
    pub(super) fn without_weights(snap: &'a Snapshot) -> Round<'a> {
        let full = is_full(snap);
        let critical = if full { critical(snap) } else { Vec::new() };
        Round::over(snap, full, critical, |_| false)
    }

    /// Like [`Round::new`], but tasks that satisfy `keep` stay where they run even at the end of a quantum, and
    /// critical tasks do not come first.
    pub(super) fn keeping(snap: &'a Snapshot, keep: impl Fn(&TaskView) -> bool) -> Round<'a> {
        Round::over(snap, is_full(snap), Vec::new(), keep)
    }

    /// A round over the free CPUs. Running tasks stay, even at the end of a quantum.
    pub(super) fn between_quanta(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, false, Vec::new(), |_| false)
    }

    /// A round over all CPUs.
    pub(super) fn everything(snap: &'a Snapshot) -> Round<'a> {
        Round::over(snap, true, must_not_pause(snap), |_| false)
    }

    fn over(
        snap: &'a Snapshot,
        full: bool,
        critical: Vec<bool>,
        keep: impl Fn(&TaskView) -> bool,
    ) -> Round<'a> {
        let mut free = snap.machine.all_cpus();
        let mut sleepers = Vec::new();
        let mut waiting = Vec::with_capacity(snap.tasks.len());
        let mut running = Vec::new();
        for (task, ix) in snap.tasks.iter().zip(0u32..) {
            if task.stays(full) || keep(task) {
                take_cpus(&mut free, snap, task);
                continue;
            }
            if !task.control.place {
                continue;
            }
            match &task.running {
                Some(_) if task.asleep => sleepers.push(ix),
                None if task.asleep => {}
                Some(placed) => running.push((Reverse(placed.since), task.estimates.ran, ix)),
                None => waiting.push(waiting_key(task, ix)),
            }
        }
        running.sort_unstable();
        let mut order = longest_waiting_first(snap, waiting);
        order.extend(running.into_iter().map(|key| key.2));
        if !critical.is_empty() {
            // An overdue task comes before critical ones that have waited for less time.
            order.sort_by_key(|&ix| {
                let is_overdue = snap.tasks[ix as usize].overdue;
                (!is_overdue, !is_overdue && !critical[ix as usize])
            });
        }
        Round {
            snap,
            full,
            order,
            critical,
            sleepers,
            left: free.len() as u32,
            free,
            chosen: Vec::new(),
            fates: vec![Fate::Open; snap.tasks.len()],
            waits: Vec::new(),
        }
    }

    /// Number of free CPUs not yet taken by a chosen task.
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

    /// For each task of the snapshot, whether it is in the order and neither chosen nor refused.
    pub(super) fn open(&self) -> Vec<bool> {
        let mut open = vec![false; self.fates.len()];
        for &ix in &self.order {
            open[ix as usize] = self.is_open(ix);
        }
        open
    }

    /// Number of overdue tasks at the head of the order.
    pub(super) fn overdue(&self) -> usize {
        self.order.partition_point(|&ix| self.task(ix).overdue)
    }

    /// Whether the task must not pause.
    pub(super) fn is_critical(&self, ix: u32) -> bool {
        self.critical.get(ix as usize) == Some(&true)
    }

    /// Number of tasks at the head of the order that come before all others: overdue and critical ones.
    pub(super) fn head(&self) -> usize {
        self.order
            .partition_point(|&ix| self.task(ix).overdue || self.is_critical(ix))
    }

    /// Whether all tasks fit at once.
    pub(super) fn all_fit(&self) -> bool {
        let tasks = self.order.iter();
        let wanted: u64 = tasks.map(|&ix| u64::from(self.task(ix).cpus)).sum();
        wanted <= u64::from(self.left)
    }

    /// Whether all tasks fit at once, each on cores of its own.
    pub(super) fn each_has_cores(&self) -> bool {
        let machine = &self.snap.machine;
        let threads = machine
            .cpus
            .len()
            .div_ceil(machine.cores.len().max(1))
            .max(1) as u32;
        let tasks = self.order.iter();
        let wanted: u64 = tasks
            .map(|&ix| u64::from(self.task(ix).cpus.div_ceil(threads)))
            .sum();
        wanted <= u64::from(self.left / threads)
    }

    /// Orders the tasks after the [head](Round::head) by progress, the least first. Among equals the longest waiting
    /// stays first.
    pub(super) fn order_by_progress(&mut self, progress: &[f64]) {
        let head = self.head();
        self.order[head..].sort_by(|&a, &b| progress[a as usize].total_cmp(&progress[b as usize]));
    }

    /// Records why a task waits.
    pub(super) fn wait(&mut self, ix: u32, reason: WaitReason) {
        self.fates[ix as usize] = Fate::Waits;
        self.waits.push(Wait {
            task: self.task(ix).id,
            reason,
        });
    }

    /// Appends sleeping tasks to the order, those first that have run least.
    pub(super) fn consider_sleepers(&mut self) {
        let mut sleepers = std::mem::take(&mut self.sleepers);
        sleepers.sort_by_key(|&ix| {
            let task = &self.snap.tasks[ix as usize];
            (task.estimates.ran, task.turn, ix)
        });
        self.order.append(&mut sleepers);
    }

    /// Chooses a task for as many CPUs as it needs, or returns why it can't be chosen now.
    pub(super) fn choose(&mut self, ix: u32, purpose: Purpose) -> Result<(), WaitReason> {
        let task = self.task(ix);
        if task.cpus > self.left {
            return Err(WaitReason::Gang {
                needs: task.cpus,
                free: self.left,
            });
        }
        // A task with a mask takes its CPUs now; the others share the rest at the end.
        let reserved = match &task.allowed {
            Some(mask) => Some(self.pick_of(task, mask).ok_or(WaitReason::Affinity)?),
            None => None,
        };
        self.commit(ix, purpose, reserved, false);
        Ok(())
    }

    /// Free CPUs of a mask for a task: those of its last run, then the lowest.
    fn pick_of(&self, task: &TaskView, mask: &CpuSet) -> Option<CpuSet> {
        let usable = mask.intersection(&self.free);
        let last = usable.intersection(&task.last_cpus);
        let needs = task.cpus as usize;
        let mut cpus: CpuSet = last.iter().take(needs).collect();
        let missing = needs - cpus.len();
        let others = usable.iter().filter(|&cpu| !last.contains(cpu));
        cpus.extend(others.take(missing));
        (cpus.len() == needs).then_some(cpus)
    }

    /// Free CPUs for a task that may use all: those of its last run, then those of wholly free cores. There must be
    /// enough.
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

    /// Chooses a task for these CPUs. They must be free, as many as the task needs, and allowed for it.
    pub(super) fn choose_on(&mut self, ix: u32, cpus: CpuSet, purpose: Purpose) {
        self.commit(ix, purpose, Some(cpus), false);
    }

    pub(super) fn is_free(&self, cpu: CpuId) -> bool {
        self.free.contains(cpu)
    }

    /// Chooses a task for whole cores, whose other CPUs stay idle, or returns why it can't be chosen now. `may_be`
    /// tells which core numbers are allowed.
    pub(super) fn choose_whole_core(
        &mut self,
        ix: u32,
        may_be: impl Fn(usize) -> bool,
        purpose: Purpose,
    ) -> Result<(), WaitReason> {
        let task = self.task(ix);
        let machine = &*self.snap.machine;
        // The cores of its last run come first.
        let last = machine.cpus_in(&task.last_cpus).map(|cpu| cpu.core);
        let needs = task.cpus as usize;
        let mut cpus = CpuSet::new();
        let mut free = self.free.clone();
        for number in last.chain(0..machine.cores.len()) {
            let core = &machine.cores[number];
            if cpus.len() == needs {
                break;
            }
            if !may_be(number) || !core.is_subset(&free) {
                continue;
            }
            let usable = task.usable(core);
            if !usable.is_empty() {
                let missing = needs - cpus.len();
                cpus.extend(usable.iter().take(missing));
                free.remove_all(core);
            }
        }
        if cpus.len() < needs {
            return Err(WaitReason::Gang {
                needs: task.cpus,
                free: self.left,
            });
        }
        let idle = self.free.len() - free.len() - needs;
        self.commit(ix, purpose, Some(cpus), true);
        self.free = free;
        self.left -= idle as u32;
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

    /// Chooses in the round's order while CPUs are free. With `strict` no task overtakes a gang that does not fit. A
    /// task of one CPU that waits for a CPU of its mask may be overtaken: none of those CPUs is free for the others
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

    /// The [decision](Round::finish) in which each task waits for those before it.
    pub(super) fn finish_in_order(self, next_wake: Nanos) -> Decision {
        self.finish(next_wake, Basis::default(), |_, ahead| WaitReason::Order {
            ahead,
        })
    }

    /// The decision: places the chosen tasks and stops running tasks that were not chosen. `reason` gives the reason of
    /// each other waiting task, from its index and the number of tasks that wait before it.
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
        let awake = self.order.len();
        self.consider_sleepers();
        for pos in awake..self.order.len() {
            // If it is refused, it gets its reason below, like all others.
            let _ = self.choose(self.order[pos], Purpose::Run);
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
