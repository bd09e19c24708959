//! The queue of each CPU: its tasks, their order, and how tasks move between queues.

use super::known::{EfsTask, NOWHERE};
use super::settings::EfsSettings;
use crate::model::bus_admission_table::BusAdmissionTable;
use crate::model::window::Window;
use crate::policy::round::Round;
use crate::policy::weights::Weights;
use crate::snapshot::{Snapshot, TaskView};
use crate::topology::Machine;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of tasks that change their queue for balance in one decision.
const MOST_MOVES: usize = 16;

/// The queues of all CPUs. A CPU is given by its position in the machine.
pub(super) struct Queues {
    /// Number of tasks awake in each queue, running ones included.
    pub(super) tasks: Vec<u32>,
    /// Their total weight.
    pub(super) weight: Vec<u64>,
    pub(super) weights: Weights,
    /// Their least and greatest vruntimes (ns).
    least: Vec<i64>,
    most: Vec<i64>,
    /// Whether the CPU is taken by a task that can't be stopped.
    blocked: Vec<bool>,
    /// Start of each CPU's queue in `members`, and one more at the end.
    start: Vec<u32>,
    /// The tasks to choose from, by queue, vruntime, and longest wait.
    members: Vec<u32>,
}

/// Whether a task competes for a CPU of its queue.
fn competes(task: &TaskView) -> bool {
    !task.asleep && task.control.place && !task.is_fixed()
}

fn may_use(machine: &Machine, task: &TaskView, cpu: usize) -> bool {
    task.may_use(machine.cpus[cpu].id)
}

impl Queues {
    /// Gives every task a home, balances the queues at the end of a quantum, and orders them.
    pub(super) fn new(
        settings: &EfsSettings,
        table: &BusAdmissionTable,
        round: &Round<'_>,
        known: &mut [EfsTask],
    ) -> Queues {
        let snap = round.snap;
        let cpus = snap.machine.cpus.len();
        let mut queues = Queues {
            tasks: vec![0; cpus],
            weight: vec![0; cpus],
            weights: Weights::of(snap),
            least: vec![i64::MAX; cpus],
            most: vec![i64::MIN; cpus],
            blocked: vec![false; cpus],
            start: vec![0; cpus + 1],
            members: vec![0; round.order.len()],
        };
        queues.find_homes(settings, table, snap, known);
        if round.full {
            queues.balance(snap, known);
            queues.span(snap, known);
        }
        queues.put_in_order(round, known);
        queues
    }

    fn count(&mut self, known: &EfsTask, weight: u32) {
        let home = known.home as usize;
        self.tasks[home] += 1;
        self.weight[home] += u64::from(weight);
        self.widen(known);
    }

    /// Finds the least and greatest vruntimes anew: a task that left a queue may have had them.
    fn span(&mut self, snap: &Snapshot, known: &[EfsTask]) {
        self.least.fill(i64::MAX);
        self.most.fill(i64::MIN);
        for (task, known) in snap.tasks.iter().zip(known) {
            if competes(task) {
                self.widen(known);
            }
        }
    }

    fn widen(&mut self, known: &EfsTask) {
        let home = known.home as usize;
        self.least[home] = self.least[home].min(known.vruntime);
        self.most[home] = self.most[home].max(known.vruntime);
    }

    /// The vruntime at which a new task joins a queue.
    fn base(&self, cpu: usize) -> i64 {
        if self.tasks[cpu] == 0 {
            0
        } else {
            self.least[cpu]
        }
    }

    /// How far a task is behind the greatest vruntime of its queue (ns).
    pub(super) fn lag(&self, known: &EfsTask) -> u64 {
        self.most[known.home as usize]
            .saturating_sub(known.vruntime)
            .max(0) as u64
    }

    /// Whether a task could run if all CPUs were given out anew: enough of its CPUs are not blocked.
    pub(super) fn can_run(&self, machine: &Machine, task: &TaskView) -> bool {
        (0..self.blocked.len())
            .filter(|&cpu| !self.blocked[cpu] && may_use(machine, task, cpu))
            .take(task.cpus as usize)
            .count()
            == task.cpus as usize
    }

    /// Number of all tasks awake.
    pub(super) fn all(&self) -> u64 {
        self.tasks.iter().map(|&tasks| u64::from(tasks)).sum()
    }

    fn find_homes(
        &mut self,
        settings: &EfsSettings,
        table: &BusAdmissionTable,
        snap: &Snapshot,
        known: &mut [EfsTask],
    ) {
        let machine = &*snap.machine;
        for task in snap.tasks.iter().filter(|task| task.is_fixed()) {
            if let Some(running) = &task.running {
                for cpu in machine.positions(running.placement.cpus()) {
                    self.blocked[cpu] = true;
                }
            }
        }
        let mut homeless: Vec<u32> = Vec::new();
        for ((task, known), ix) in snap.tasks.iter().zip(known.iter()).zip(0u32..) {
            let home = known.home as usize;
            if home >= machine.cpus.len() || self.blocked[home] || !may_use(machine, task, home) {
                homeless.push(ix);
            } else if competes(task) && !known.woke {
                self.count(known, self.weights.whole(task));
            }
        }
        if !homeless.is_empty() {
            self.settle(table, snap, known, &homeless);
        }
        for (task, known) in snap
            .tasks
            .iter()
            .zip(known.iter_mut())
            .filter(|(_, known)| known.woke)
        {
            // A task that slept has fallen behind in vruntime. It comes first, but not for longer than a period.
            let home = known.home as usize;
            if self.tasks[home] > 0 {
                let credit = settings.rule.period_ns(u64::from(self.tasks[home]) + 1) as i64;
                known.vruntime = known.vruntime.max(self.least[home].saturating_sub(credit));
            }
            if competes(task) {
                self.count(known, self.weights.whole(task));
            }
        }
    }

    /// Finds homes for new tasks and those that lost theirs: the CPU of their last run, else the queue with the least
    /// weight.
    fn settle(
        &mut self,
        table: &BusAdmissionTable,
        snap: &Snapshot,
        known: &mut [EfsTask],
        homeless: &[u32],
    ) {
        let machine = &*snap.machine;
        let cores = cores_of_domains(machine);
        let places = spread(machine);
        let mut heap: BinaryHeap<Reverse<(bool, u64, usize)>> = (0..places.len())
            .map(|place| {
                Reverse((
                    self.blocked[places[place]],
                    self.weight[places[place]],
                    place,
                ))
            })
            .collect();
        for &ix in homeless {
            let (task, known) = (&snap.tasks[ix as usize], &mut known[ix as usize]);
            let is_new = known.home == NOWHERE;
            let last = task
                .last_cpus
                .first()
                .filter(|_| is_new)
                .and_then(|cpu| machine.index_of(cpu));
            let last = last.filter(|&cpu| !self.blocked[cpu] && may_use(machine, task, cpu));
            let home = last.unwrap_or_else(|| match task.allowed {
                Some(_) => {
                    let allowed = places
                        .iter()
                        .copied()
                        .filter(|&cpu| may_use(machine, task, cpu));
                    allowed
                        .min_by_key(|&cpu| (self.blocked[cpu], self.weight[cpu]))
                        .unwrap_or(places[0])
                }
                None => loop {
                    // An entry is outdated if a task joined the queue since: it is pushed back with its new weight.
                    let Some(Reverse((blocked, weight, place))) = heap.pop() else {
                        break places[0];
                    };
                    let cpu = places[place];
                    heap.push(Reverse((blocked, self.weight[cpu], place)));
                    if self.weight[cpu] == weight {
                        break cpu;
                    }
                },
            });
            let base = self.base(home);
            if is_new {
                known.vruntime = base;
            } else {
                let own = (known.home as usize) < machine.cpus.len();
                let ahead = if own {
                    known
                        .vruntime
                        .saturating_sub(self.base(known.home as usize))
                } else {
                    0
                };
                known.vruntime = base.saturating_add(ahead.max(0));
            }
            known.home = home as u32;
            if known.bus.is_unknown() {
                let demand = Window::initial(cores[machine.cpus[home].memory_domain]);
                known.bus.assume(table, demand);
            }
            for device in known.devices.iter_mut().filter(|one| one.is_unknown()) {
                device.assume(table, Window::initial(machine.cores.len()));
            }
            if competes(task) && !known.woke {
                self.count(known, self.weights.whole(task));
            }
        }
    }

    /// The CPUs not taken by tasks that can't be stopped.
    fn unblocked(&self) -> impl Iterator<Item = usize> {
        (0..self.weight.len()).filter(|&cpu| !self.blocked[cpu])
    }

    /// Moves waiting tasks from the queue with the greatest weight to that with the least, as long as that evens them
    /// out.
    fn balance(&mut self, snap: &Snapshot, known: &mut [EfsTask]) {
        let mut stuck: Vec<usize> = Vec::new();
        for _ in 0..MOST_MOVES {
            let Some(to) = self.unblocked().min_by_key(|&cpu| self.weight[cpu]) else {
                return;
            };
            let busiest = self
                .unblocked()
                .filter(|cpu| !stuck.contains(cpu))
                .max_by_key(|&cpu| (self.weight[cpu], Reverse(cpu)));
            let Some(from) = busiest else { return };
            let gap = self.weight[from] - self.weight[to];
            if gap <= 1 || self.tasks[from] < 2 {
                return;
            }
            match (0..known.len()).find(|ix| {
                let (task, known) = (&snap.tasks[*ix], &known[*ix]);
                known.home as usize == from
                    && competes(task)
                    && task.running.is_none()
                    && task.allowed.is_none()
                    && u64::from(self.weights.whole(task)) < gap
            }) {
                Some(ix) => self.rehome(&mut known[ix], self.weights.whole(&snap.tasks[ix]), to),
                None => stuck.push(from),
            }
        }
    }

    /// Moves a task to another queue, where it keeps its distance from the first.
    pub(super) fn rehome(&mut self, known: &mut EfsTask, weight: u32, to: usize) {
        let from = known.home as usize;
        let ahead = known.vruntime.saturating_sub(self.base(from));
        known.vruntime = self.base(to).saturating_add(ahead);
        self.tasks[from] -= 1;
        self.weight[from] -= u64::from(weight);
        known.home = to as u32;
        self.count(known, weight);
    }

    fn put_in_order(&mut self, round: &Round<'_>, known: &[EfsTask]) {
        for &ix in &round.order {
            self.start[known[ix as usize].home as usize + 1] += 1;
        }
        for cpu in 1..self.start.len() {
            self.start[cpu] += self.start[cpu - 1];
        }
        // Equals keep the round's order: the longest waiting first.
        let mut next = self.start.clone();
        for &ix in &round.order {
            let home = known[ix as usize].home as usize;
            self.members[next[home] as usize] = ix;
            next[home] += 1;
        }
        for cpu in 0..self.tasks.len() {
            let queue = self.start[cpu] as usize..self.start[cpu + 1] as usize;
            self.members[queue].sort_by_key(|&ix| known[ix as usize].vruntime);
        }
    }

    /// Positions of the queue's tasks that may be chosen in this round, in order.
    pub(super) fn members(&self, cpu: usize) -> std::ops::Range<usize> {
        self.start[cpu] as usize..self.start[cpu + 1] as usize
    }

    /// The task at a position.
    pub(super) fn member(&self, position: usize) -> u32 {
        self.members[position]
    }
}

/// Number of cores of each memory domain.
pub(super) fn cores_of_domains(machine: &Machine) -> Vec<usize> {
    let mut cores = vec![0; machine.memory_domains.len()];
    for core in &machine.cores {
        if let Some(cpu) = machine.cpus_in(core).next() {
            cores[cpu.memory_domain] += 1;
        }
    }
    cores
}

/// The CPUs in the order in which new tasks take them: one of each core first, the memory domains in turn.
fn spread(machine: &Machine) -> Vec<usize> {
    let mut on_core = vec![0u32; machine.cores.len()];
    let mut in_domain = vec![Vec::<u32>::new(); machine.memory_domains.len()];
    let mut keys = Vec::with_capacity(machine.cpus.len());
    for (cpu, of) in machine.cpus.iter().enumerate() {
        let thread = on_core[of.core];
        on_core[of.core] += 1;
        let seen = &mut in_domain[of.memory_domain];
        if seen.len() <= thread as usize {
            seen.resize(thread as usize + 1, 0);
        }
        let turn = seen[thread as usize];
        seen[thread as usize] += 1;
        keys.push((thread, turn, of.memory_domain, cpu));
    }
    keys.sort_unstable();
    keys.into_iter().map(|key| key.3).collect()
}
