//! `place`: each task goes to one node, where it stays to its end. The node's own policy shares its CPUs and caches.
//!
//! A node has as many slots as CPUs. A task goes only to a node with free slots for it, and with memory for it if both
//! are known. Without nodes each memory domain counts as one.
//!
//! `by=slots` takes the tasks in order, each for the node with the largest share of free slots. `by=known` evens out
//! the demand on memory:
//!
//! 1. If more tasks wait than slots are free, FITNESS (see `bandwidth`) chooses among the first ones. The target is that
//!    each slot has the mean demand of the live tasks. A task that was passed by `window` others goes first.
//! 2. The chosen tasks are laid out by descending demand, each on the node that lacks most to that target. If slots stay
//!    free, on the node with the least demand per slot.
//!
//! The demand is lines read alone, as measured before, learnt or stated, and a fixed number of lines for each CPU. A task
//! of unknown demand counts as the mean.
//!
//! A first task that fits nowhere reserves the node with most free slots that can ever hold it. So narrower tasks pass
//! on the other nodes alone, and it waits for the end of that node's tasks at most.
//!
//! Short tasks are sent ahead, so that a node need not wait for the coordinator: as many as end on it within `ahead_s`,
//! at most sixteen a slot, and none if their length is not known.
//!
//! A decision costs time for what has changed and for the nodes, not for all tasks.

use super::fitness::{Candidate, FitnessQueue};
use super::params::MU;
use super::prelude::*;
use crate::decision::Wait;
use crate::snapshot::Trigger;
use crate::topology::{CpuSet, Machine};
use crate::units::Rate;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "place",
    gist: "over nodes: the node of each job, by its demand on memory",
    source: "ours, with FITNESS from Xu et al.",
    for_research: false,
    time_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: true,
    params: &[QUANTUM_S, BY, WINDOW, AHEAD_S, MU],
    needs: |_| vec![required(Capability::Affinity)],
    build: |params| {
        Box::new(Place {
            by: By::of(params.word("by")),
            window: params.number("window") as usize,
            ahead: Nanos::from_s(params.number("ahead_s")),
            mu_per_us: params.number("mu_trans_per_us"),
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: State::default(),
        })
    },
};

const BY: ParamSpec = choice(
    "by",
    &["known", "slots", "random"],
    "what decides on the node: `known` is demand on memory, slots and memory; the others are baselines",
);
const WINDOW: ParamSpec = number(
    "window",
    16.0,
    0.0,
    1e6,
    "jobs that may pass the first one while their demand fits better",
);
const AHEAD_S: ParamSpec = number(
    "ahead_s",
    0.05,
    0.0,
    1.0,
    "jobs that end on a node within this time are sent ahead; 0.05 is some round trips in a network",
);

/// Demand of a CPU in lines per ms: the limit of a light job in Perf&Fair.
const CPU_DEMAND: u64 = 3_500;
/// Maximum number of tasks sent ahead, per slot.
const MOST_AHEAD: u64 = 16;
/// Least time between two looks at tasks on nodes.
const LOOK: Nanos = Nanos::from_ms(1_000);
/// Weight of the last ended task in the mean length.
const FORGET: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Known,
    Slots,
    Random,
}

impl By {
    fn of(word: &str) -> By {
        match word {
            "slots" => By::Slots,
            "random" => By::Random,
            _ => By::Known,
        }
    }
}

struct Place {
    by: By,
    window: usize,
    ahead: Nanos,
    mu_per_us: f64,
    quantum: Nanos,
    state: State,
}

/// What is known of all live tasks and the nodes, kept from decision to decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    nodes: Vec<Load>,
    tasks: BTreeMap<TaskId, Task>,
    /// The tasks that wait, in the order of admission.
    waiting: BTreeSet<(u32, TaskId)>,
    /// Demand and CPUs of the tasks of known demand.
    known: (u64, u64),
    /// Mean length of a task in ns; 0 before the first end.
    length: u64,
    /// The first waiting task, and how many others were placed before it.
    first: Option<(TaskId, usize)>,
    quantum: QuantumEnd,
    /// The node that is kept free for the first task.
    reserved: Option<usize>,
}

/// A node and its tasks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Load {
    slots: u64,
    memory: Option<u64>,
    taken: u64,
    demand: u64,
    memory_taken: u64,
}

/// A live task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Task {
    turn: u32,
    cpus: u64,
    /// Lines per ms, if known.
    demand: Option<u64>,
    memory: u64,
    /// Its node, since when, and the demand that counts there.
    on: Option<(usize, Nanos, u64)>,
}

impl Policy for Place {
    fn decide(&mut self, snap: &Snapshot, rng: &mut Rng) -> Decision {
        self.follow(snap);
        let mut round = Turn {
            place: self,
            snap,
            decision: Decision::default(),
        };
        round.reserve();
        let (mut chosen, passed) = round.choose();
        // Of wide tasks some may no longer fit beside the others. Then more narrow ones do.
        while !chosen.is_empty() {
            for id in chosen {
                round.put(id, rng);
            }
            (chosen, _) = round.choose();
        }
        round.finish(passed)
    }

    state_is_a_field!();
}

/// The CPUs of each node.
fn node_cpus(machine: &Machine, node: usize) -> &CpuSet {
    if machine.nodes.is_empty() {
        &machine.memory_domains[node]
    } else {
        &machine.nodes[node].cpus
    }
}

impl Place {
    /// Brings the state up to date: by the triggers, or else from the snapshot.
    fn follow(&mut self, snap: &Snapshot) {
        for trigger in &snap.triggers {
            match *trigger {
                Trigger::Ended(id) => self.state.remove(id, snap.now),
                Trigger::Arrived(id) => {
                    if let Some(task) = snap.task(id) {
                        self.add(snap, task);
                    }
                }
                _ => {}
            }
        }
        let is_stale = snap
            .triggers
            .iter()
            .any(|trigger| matches!(trigger, Trigger::QuantumEnd | Trigger::Woke(_)));
        if is_stale || self.state.tasks.len() != snap.tasks.len() {
            self.rebuild(snap);
        }
    }

    fn rebuild(&mut self, snap: &Snapshot) {
        let machine = &*snap.machine;
        let load = |node| Load {
            slots: node_cpus(machine, node).len() as u64,
            memory: machine.nodes.get(node).and_then(|node| node.memory),
            taken: 0,
            demand: 0,
            memory_taken: 0,
        };
        let nodes = match machine.nodes.len() {
            0 => machine.memory_domains.len(),
            nodes => nodes,
        };
        self.state = State {
            nodes: (0..nodes).map(load).collect(),
            length: self.state.length,
            first: self.state.first,
            quantum: self.state.quantum,
            ..State::default()
        };
        for task in &snap.tasks {
            self.add(snap, task);
        }
    }

    fn add(&mut self, snap: &Snapshot, view: &TaskView) {
        let machine = &*snap.machine;
        let nodes = 0..self.state.nodes.len();
        let usable = |node| view.usable(node_cpus(machine, node)).len();
        let cpus = match &view.allowed {
            None if view.cpus == 1 => 1,
            _ => (view.cpus as usize).min(nodes.clone().map(usable).max().unwrap_or(1)) as u64,
        };
        let task = Task {
            turn: view.turn,
            cpus,
            demand: self.demand(view),
            memory: view.memory.unwrap_or(0),
            on: None,
        };
        let state = &mut self.state;
        state.tasks.insert(view.id, task);
        if let Some(demand) = task.demand {
            state.known.0 += demand;
            state.known.1 += cpus;
        }
        let Some(running) = &view.running else {
            if view.control.place && !view.asleep {
                state.waiting.insert((view.turn, view.id));
            }
            return;
        };
        let first = running.placement.cpus().first();
        let mut nodes = nodes;
        let node = first.and_then(|cpu| nodes.find(|&node| node_cpus(machine, node).contains(cpu)));
        if let Some(node) = node {
            state.put(view.id, node, running.since);
        }
    }

    /// Predicted demand of a task, in lines per ms.
    fn demand(&self, view: &TaskView) -> Option<u64> {
        let cpus = u64::from(view.cpus);
        let learnt = || {
            let learnt = view.estimates.learnt.as_ref().value()?;
            Some((learnt.asks.reads / learnt.solo_ns() * 1e6) as u64 * cpus)
        };
        let stated = || Some((f64::from(view.bus_use_milli?) * self.mu_per_us) as u64 * cpus);
        let measured = view.solo_reads.map(|rate| rate.0);
        let reads = measured.or_else(learnt).or_else(stated)?;
        Some(reads + CPU_DEMAND * cpus)
    }
}

impl State {
    /// Forgets a task that has ended.
    fn remove(&mut self, id: TaskId, now: Nanos) {
        let Some(task) = self.tasks.remove(&id) else {
            return;
        };
        if let Some(demand) = task.demand {
            self.known.0 -= demand;
            self.known.1 -= task.cpus;
        }
        let Some((node, since, demand)) = task.on else {
            self.waiting.remove(&(task.turn, id));
            return;
        };
        let load = &mut self.nodes[node];
        // On a node with more tasks than slots, it has waited for its turn.
        let length = (now - since).0 / load.taken.max(1) * load.slots.min(load.taken);
        load.taken -= task.cpus;
        load.demand -= demand;
        load.memory_taken -= task.memory;
        self.length = match self.length {
            0 => length.max(1),
            mean => (mean - mean / FORGET + length / FORGET).max(1),
        };
    }

    /// Counts a task on a node.
    fn put(&mut self, id: TaskId, node: usize, since: Nanos) {
        let mean = self.mean_demand();
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let demand = task.demand.unwrap_or(mean * task.cpus);
        task.on = Some((node, since, demand));
        self.waiting.remove(&(task.turn, id));
        let load = &mut self.nodes[node];
        load.taken += task.cpus;
        load.demand += demand;
        load.memory_taken += task.memory;
    }

    /// Mean demand per CPU of the live tasks whose demand is known.
    fn mean_demand(&self) -> u64 {
        self.known.0.checked_div(self.known.1).unwrap_or(CPU_DEMAND)
    }
}

impl Load {
    /// Whether it could hold the task if it had no other.
    fn can_hold(&self, task: &Task) -> bool {
        self.slots >= task.cpus
    }

    /// Bytes left, if known. A node without tasks takes any.
    fn memory_left(&self) -> u64 {
        match self.memory {
            Some(memory) if self.memory_taken > 0 => memory.saturating_sub(self.memory_taken),
            _ => u64::MAX,
        }
    }
}

/// One decision.
struct Turn<'a> {
    place: &'a mut Place,
    snap: &'a Snapshot,
    decision: Decision,
}

impl Turn<'_> {
    /// Free slots of a node, with those that are filled ahead.
    fn room(&self, node: usize) -> u64 {
        let load = &self.place.state.nodes[node];
        (load.slots + self.ahead(load)).saturating_sub(load.taken)
    }

    fn ahead(&self, load: &Load) -> u64 {
        let length = match self.place.state.length {
            0 => self.expected_length(),
            length => length,
        };
        if length == 0 {
            return 0;
        }
        (load.slots * self.place.ahead.0 / length).min(MOST_AHEAD * load.slots)
    }

    /// Expected length of the first task in ns; 0 if not known.
    fn expected_length(&self) -> u64 {
        let first = self.place.state.waiting.first();
        let view = first.and_then(|(_, id)| self.snap.task(*id));
        let expected = view.and_then(|view| view.expected);
        expected.map_or(0, |expected| expected.time.0)
    }

    fn is_open(&self, node: usize) -> bool {
        self.place.state.reserved != Some(node)
    }

    /// Whether a task may go to a node now.
    fn fits(&self, id: TaskId, node: usize) -> bool {
        let state = &self.place.state;
        let task = &state.tasks[&id];
        let has_memory =
            self.place.by != By::Known || task.memory <= state.nodes[node].memory_left();
        self.room(node) >= task.cpus && has_memory && self.may_use(id, node, task.cpus)
    }

    fn may_use(&self, id: TaskId, node: usize, cpus: u64) -> bool {
        let view = self.snap.task(id);
        let mask = view.and_then(|view| view.allowed.as_ref());
        mask.is_none_or(|mask| {
            let usable = mask.intersection(node_cpus(&self.snap.machine, node));
            usable.len() as u64 >= cpus
        })
    }

    /// Whether a task may go to some node now.
    fn has_place(&self, id: TaskId) -> bool {
        let mut nodes = 0..self.place.state.nodes.len();
        nodes.any(|node| self.is_open(node) && self.fits(id, node))
    }

    /// Reserves a node for the first waiting task if that fits on none.
    fn reserve(&mut self) {
        let state = &self.place.state;
        let nodes = 0..state.nodes.len();
        let first = state.waiting.first().map(|&(_, id)| id);
        let stuck = first.filter(|&id| !nodes.clone().any(|node| self.fits(id, node)));
        let reserved = stuck.and_then(|id| {
            let task = &state.tasks[&id];
            let can = |&node: &usize| {
                state.nodes[node].can_hold(task) && self.may_use(id, node, task.cpus)
            };
            let kept = state
                .reserved
                .filter(|node| state.first.is_some_and(|(first, _)| first == id) && can(node));
            kept.or_else(|| {
                nodes
                    .filter(can)
                    .max_by_key(|&node| (self.room(node), Reverse(node)))
            })
        });
        self.place.state.reserved = reserved;
    }

    /// The tasks to place now, those that are laid out first in front; and those that others pass for their demand, with
    /// the demand per CPU that was wanted.
    fn choose(&mut self) -> (Vec<TaskId>, Option<(Vec<TaskId>, u64)>) {
        let state = &self.place.state;
        let open = (0..state.nodes.len()).filter(|&node| self.is_open(node));
        let (mut room, mut remain) = (0, 0i128);
        let mean = i128::from(state.mean_demand());
        for node in open {
            let free = self.room(node);
            if free > 0 {
                let load = &state.nodes[node];
                room += free;
                remain += mean * i128::from(load.taken + free) - i128::from(load.demand);
            }
        }
        if room == 0 {
            return (Vec::new(), None);
        }
        let most = room as usize + self.place.window;
        let waiting = state.waiting.iter().map(|&(_, id)| id);
        let mut first: Vec<TaskId> = waiting
            .filter(|&id| self.has_place(id))
            .take(most)
            .collect();
        if self.place.by != By::Known {
            first.truncate(room as usize);
            return (first, None);
        }
        let mut passed = None;
        if first.len() > room as usize {
            let all = first;
            let wanted;
            (first, wanted) = self.fittest(&all, room, remain);
            let left = all.into_iter().filter(|id| !first.contains(id));
            passed = Some((left.collect(), wanted));
        }
        let tasks = &self.place.state.tasks;
        first.sort_by_key(|id| Reverse((tasks[id].cpus, self.per_cpu(*id))));
        (first, passed)
    }

    /// Demand per CPU of a task.
    fn per_cpu(&self, id: TaskId) -> u64 {
        let task = &self.place.state.tasks[&id];
        let mean = self.place.state.mean_demand();
        task.demand.map_or(mean, |demand| demand / task.cpus)
    }

    /// The tasks whose demand together is nearest to what remains, and the last target per CPU. The first task is among
    /// them if too many have passed it.
    fn fittest(&self, all: &[TaskId], mut room: u64, mut remain: i128) -> (Vec<TaskId>, u64) {
        let state = &self.place.state;
        let of = |(rank, &id): (usize, &TaskId)| Candidate {
            index: rank as u32,
            rank: rank as u32,
            bandwidth: self.per_cpu(id),
            cpus: state.tasks[&id].cpus as u32,
        };
        let mut left: Vec<Candidate> = all.iter().enumerate().map(of).collect();
        let is_late = state
            .first
            .is_some_and(|(id, passed)| id == all[0] && passed >= self.place.window);
        let mut next = is_late.then(|| left.remove(0));
        let mut queue = FitnessQueue::new(left);
        let mut chosen = Vec::new();
        let mut wanted = 0;
        while room > 0 {
            wanted = remain / i128::from(room);
            let Some(one) = next.take().or_else(|| queue.take(remain, room as u32)) else {
                break;
            };
            remain -= i128::from(one.bandwidth) * i128::from(one.cpus);
            room = room.saturating_sub(one.cpus.into());
            chosen.push(all[one.index as usize]);
        }
        (chosen, wanted.max(0) as u64)
    }

    /// Places a task, if some node has room.
    fn put(&mut self, id: TaskId, rng: &mut Rng) {
        let Some(node) = self.node_for(id, rng) else {
            return;
        };
        let snap = self.snap;
        self.place.state.put(id, node, snap.now);
        let Some(view) = snap.task(id) else {
            return;
        };
        self.decision.changes.push(Change::Place {
            task: id,
            placement: Placement::Shared {
                mask: view.usable(node_cpus(&snap.machine, node)),
            },
            lease_end: None,
            purpose: Purpose::Run,
        });
    }

    fn node_for(&self, id: TaskId, rng: &mut Rng) -> Option<usize> {
        let state = &self.place.state;
        let nodes =
            (0..state.nodes.len()).filter(|&node| self.is_open(node) && self.fits(id, node));
        let share = |node: usize| self.room(node) * 1_000_000 / state.nodes[node].slots;
        match self.place.by {
            By::Random => {
                let fitting: Vec<usize> = nodes.collect();
                (!fitting.is_empty()).then(|| fitting[rng.below(fitting.len() as u64) as usize])
            }
            By::Slots => nodes.max_by_key(|&node| (share(node), Reverse(node))),
            By::Known => {
                let is_full = self.fills_all();
                nodes.max_by_key(|&node| (self.lack(node, is_full), share(node), Reverse(node)))
            }
        }
    }

    /// Whether the waiting tasks fill all slots.
    fn fills_all(&self) -> bool {
        let nodes = 0..self.place.state.nodes.len();
        let room: u64 = nodes.map(|node| self.room(node)).sum();
        self.place.state.waiting.len() as u64 >= room
    }

    /// What a node lacks to an even demand, per free slot.
    fn lack(&self, node: usize, is_full: bool) -> i128 {
        let load = &self.place.state.nodes[node];
        let demand = i128::from(load.demand);
        if !is_full {
            return -demand / i128::from(load.slots);
        }
        let room = self.room(node);
        let even = i128::from(self.place.state.mean_demand()) * i128::from(load.taken + room);
        (even - demand) / i128::from(room)
    }

    /// The decision, with the reasons of the tasks that wait.
    fn finish(mut self, passed: Option<(Vec<TaskId>, u64)>) -> Decision {
        let (by_demand, wanted) = passed.unwrap_or_default();
        let placed = self.decision.changes.len();
        let mut waits = Vec::with_capacity(self.place.state.waiting.len());
        for (ahead, &(_, task)) in (0..).zip(&self.place.state.waiting) {
            let reason = if ahead == 0 && self.place.state.reserved.is_some() {
                self.misfit(task)
            } else if placed > 0 && by_demand.contains(&task) && self.per_cpu(task) != wanted {
                WaitReason::Fitness {
                    bandwidth: Rate(self.per_cpu(task)),
                    wanted: Rate(wanted),
                }
            } else {
                WaitReason::Order { ahead }
            };
            waits.push(Wait { task, reason });
        }
        self.decision.waits = waits;
        let state = &mut self.place.state;
        let first = state.waiting.first().map(|&(_, id)| id);
        state.first = first.map(|id| match state.first {
            Some((before, passed)) if before == id => (id, passed + placed),
            _ => (id, 0),
        });
        let is_full = self.snap.is_quantum_end();
        // Nodes measure their tasks themselves; whoever watches the run wants to see that it goes on.
        let quantum = match self.snap.machine.nodes.is_empty() {
            true => self.place.quantum,
            false => self.place.quantum.max(LOOK),
        };
        let end = state.quantum.after(self.snap.now, is_full, quantum);
        self.decision.next_wake = Some(end);
        self.decision
    }

    /// Why a task fits on no node.
    fn misfit(&self, id: TaskId) -> WaitReason {
        let state = &self.place.state;
        let task = &state.tasks[&id];
        let nodes = 0..state.nodes.len();
        let free = nodes.clone().map(|node| self.room(node)).max().unwrap_or(0);
        if free < task.cpus {
            return WaitReason::Gang {
                needs: task.cpus as u32,
                free: free as u32,
            };
        }
        let roomy = nodes.filter(|&node| self.room(node) >= task.cpus);
        let free = roomy
            .map(|node| state.nodes[node].memory_left())
            .max()
            .unwrap_or(0);
        if free < task.memory {
            return WaitReason::Memory {
                needs: task.memory,
                free,
            };
        }
        WaitReason::Affinity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{InvalidDecision, check};
    use crate::snapshot::Running;
    use crate::task::TaskSpec;
    use crate::topology::Node;
    use crate::units::{Absence, Reading};
    use std::sync::Arc;

    /// Nodes of two CPUs each, with this much memory.
    fn nodes(memory: &[Option<u64>]) -> Machine {
        let mut machine = Machine::uniform("nodes", 2 * memory.len() as u32, 1);
        let node = |(ix, &memory)| Node {
            name: format!("node{ix}"),
            cpus: format!("{}-{}", 2 * ix, 2 * ix + 1).parse().unwrap(),
            memory,
        };
        machine.nodes = memory.iter().enumerate().map(node).collect();
        machine
    }

    /// A run in which the test ends tasks.
    struct Play {
        policy: Box<dyn Policy>,
        snap: Snapshot,
        last: Decision,
        came: u32,
    }

    impl Play {
        fn new(machine: Machine, by: &str) -> Play {
            let settings = [("by".to_owned(), by.to_owned())];
            let params = Params::resolve("place", ENTRY.params, &settings).unwrap();
            let snap = Snapshot {
                machine: Arc::new(machine),
                now: Nanos::ZERO,
                triggers: vec![Trigger::QuantumEnd],
                queued: 0,
                contention: Default::default(),
                admits: None,
                ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
                tasks: Vec::new(),
            };
            let policy = (ENTRY.build)(&params);
            let last = Decision::default();
            Play {
                policy,
                snap,
                last,
                came: 0,
            }
        }

        /// A task arrives that reads so many lines per us.
        fn comes(&mut self, per_us: u64, cpus: u32, memory: Option<u64>) {
            let mut spec = TaskSpec::new(self.came, "t");
            spec.solo.mm_reads = Some(Rate(per_us * 1_000));
            (spec.cpus, spec.memory) = (cpus, memory);
            let mut view = TaskView::arriving(&spec, self.snap.now, Default::default());
            view.turn = self.came;
            self.came += 1;
            self.snap.triggers.push(Trigger::Arrived(spec.id));
            self.snap.tasks.push(Box::new(view));
        }

        /// A task ends, two seconds after the last event.
        fn ends(&mut self, id: u32) {
            self.snap.now += Nanos::from_ms(2_000);
            self.snap.tasks.retain(|task| task.id != TaskId(id));
            self.snap.triggers.push(Trigger::Ended(TaskId(id)));
        }

        /// Decides, and returns the new placements as `task: node`.
        fn decide(&mut self) -> Vec<String> {
            let decision = self.policy.decide(&self.snap, &mut Rng::new(1));
            assert_eq!(check(&self.snap, &decision), Ok(()));
            let mut placed = Vec::new();
            for change in &decision.changes {
                let Change::Place {
                    task, placement, ..
                } = change
                else {
                    panic!("{change:?}");
                };
                let cpus = placement.cpus().clone();
                let first = cpus.first().unwrap();
                placed.push(format!(
                    "{}: {}",
                    task.0,
                    self.snap.machine.node_of(first).unwrap()
                ));
                let position = self.snap.position(*task).unwrap();
                let view = &mut self.snap.tasks[position];
                view.last_cpus = cpus;
                view.running = Some(Running {
                    placement: placement.clone(),
                    purpose: Purpose::Run,
                    since: self.snap.now,
                    lease_end: None,
                });
            }
            self.snap.triggers.clear();
            self.last = decision;
            placed
        }

        fn reasons(&self) -> Vec<WaitReason> {
            self.last.waits.iter().map(|wait| wait.reason).collect()
        }
    }

    #[test]
    fn demands_are_evened_out_and_slots_alone_do_not_see_them() {
        for (by, expected) in [
            ("known", ["0: 0", "2: 1", "3: 1", "1: 0"]),
            ("slots", ["0: 0", "1: 1", "2: 0", "3: 1"]),
        ] {
            let mut play = Play::new(nodes(&[None, None]), by);
            for per_us in [100, 1, 90, 2] {
                play.comes(per_us, 1, None);
            }
            assert_eq!(play.decide(), expected, "{by}");
        }
    }

    #[test]
    fn a_free_slot_goes_to_the_task_that_fits_until_too_many_have_passed_the_first() {
        let mut play = Play::new(nodes(&[None, None]), "known");
        for per_us in [100, 100, 0, 0] {
            play.comes(per_us, 1, None);
        }
        play.decide();
        // A heavy task stays on each node: light ones fit better, until 16 have passed the heavy one since the first did.
        play.comes(100, 1, None);
        (0..40).for_each(|_| play.comes(0, 1, None));
        let mut light = 2;
        for passed in 0..18 {
            play.ends(light);
            let next = if passed < 17 { 5 + passed } else { 4 };
            let placed = play.decide();
            assert!(
                placed[0].starts_with(&format!("{next}: ")) && placed.len() == 1,
                "{placed:?}"
            );
            if passed < 17 {
                assert!(matches!(play.reasons()[0], WaitReason::Fitness { .. }));
            }
            light = next;
        }
    }

    #[test]
    fn a_wide_task_reserves_a_node_and_narrow_ones_pass_on_the_others() {
        let mut play = Play::new(nodes(&[None, None]), "known");
        (0..4).for_each(|_| play.comes(1, 1, None));
        play.decide();
        for cpus in [2, 1, 1] {
            play.comes(1, cpus, None);
        }
        let on_first = |play: &Play| {
            play.snap
                .tasks
                .iter()
                .position(|task| task.last_cpus == "0-1".parse().unwrap())
        };
        let first = on_first(&play).map(|ix| play.snap.tasks[ix].id.0).unwrap();
        play.ends(first);
        assert_eq!(play.decide(), Vec::<String>::new());
        assert_eq!(play.reasons()[0], WaitReason::Gang { needs: 2, free: 1 });
        let other = play
            .snap
            .tasks
            .iter()
            .find(|task| task.last_cpus == "2-3".parse().unwrap());
        let other = other.unwrap().id.0;
        play.ends(other);
        assert_eq!(play.decide(), ["5: 1"], "on the other node");
        let first = on_first(&play).map(|ix| play.snap.tasks[ix].id.0).unwrap();
        play.ends(first);
        assert_eq!(play.decide(), ["4: 0"]);
    }

    #[test]
    fn memory_bounds_a_node_unless_it_is_empty() {
        let mut play = Play::new(nodes(&[Some(100), Some(100)]), "known");
        for bytes in [60, 60, 60, 30] {
            play.comes(1, 1, Some(bytes));
        }
        assert_eq!(play.decide(), ["0: 0", "1: 1", "3: 0"]);
        assert_eq!(play.decide(), Vec::<String>::new());
        let needs_memory = WaitReason::Memory {
            needs: 60,
            free: 40,
        };
        assert_eq!(play.reasons(), [needs_memory]);
        play.comes(1, 1, None);
        assert_eq!(play.decide(), Vec::<String>::new(), "that node is reserved");
        play.ends(1);
        assert_eq!(play.decide(), ["2: 1", "4: 1"]);
        let mut large = Play::new(nodes(&[Some(100)]), "known");
        large.comes(1, 1, Some(101));
        assert_eq!(large.decide(), ["0: 0"]);
    }

    #[test]
    fn short_tasks_are_sent_ahead_and_long_ones_are_not() {
        for (ms, ahead) in [(10, 6), (50, 2), (100, 1), (101, 0), (1_000, 0)] {
            let mut play = Play::new(nodes(&[None]), "known");
            (0..9).for_each(|_| play.comes(1, 1, None));
            assert_eq!(play.decide().len(), 2, "nothing is known yet");
            play.ends(0);
            play.snap.now = Nanos::from_ms(ms);
            assert_eq!(play.decide().len(), 1 + ahead, "{ms} ms");
        }
    }

    #[test]
    fn what_is_kept_is_what_the_snapshot_says() {
        let mut rng = Rng::new(7);
        let mut play = Play::new(nodes(&[Some(500); 5]), "known");
        for _ in 0..400 {
            for _ in 0..rng.below(4) {
                play.comes(rng.below(90), 1 + rng.below(2) as u32, Some(rng.below(300)));
            }
            for _ in 0..rng.below(4) {
                let count = play.snap.tasks.len() as u64;
                if count > 0 {
                    let ix = rng.below(count) as usize;
                    play.ends(play.snap.tasks[ix].id.0);
                }
            }
            play.decide();
            let kept: State = serde_json::from_value(play.policy.save()).unwrap();
            let mut fresh = Place {
                by: By::Known,
                window: 16,
                ahead: Nanos::ZERO,
                mu_per_us: 1.0,
                quantum: Nanos::from_ms(1),
                state: State::default(),
            };
            fresh.rebuild(&play.snap);
            let of = |state: &State| {
                serde_json::to_value((&state.nodes, &state.tasks, &state.waiting, state.known))
            };
            assert_eq!(of(&kept).unwrap(), of(&fresh.state).unwrap());
        }
    }

    #[test]
    fn a_task_stays_on_one_node() {
        let mut play = Play::new(nodes(&[None, None]), "known");
        play.comes(1, 1, None);
        play.decide();
        for mask in ["1-2", "2-3"] {
            let placement = Placement::Shared {
                mask: mask.parse().unwrap(),
            };
            let decision = Decision {
                changes: vec![Change::Place {
                    task: TaskId(0),
                    placement,
                    lease_end: None,
                    purpose: Purpose::Run,
                }],
                ..Decision::default()
            };
            assert_eq!(
                check(&play.snap, &decision),
                Err(InvalidDecision::Nodes(TaskId(0)))
            );
        }
    }
}
