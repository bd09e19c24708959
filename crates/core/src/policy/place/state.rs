//! What `place` knows of all live tasks and the nodes. It is kept from decision to decision.

use super::super::prelude::*;
use super::{PlacePolicy, node_cpus};
use crate::snapshot::Trigger;
use std::collections::{BTreeMap, BTreeSet};

/// Demand of a CPU in lines per ms: the limit of a light job in Perf&Fair.
const CPU_DEMAND: u64 = 3_500;
/// Weight of the last ended task in the mean length.
const FORGET: u64 = 16;

/// What is known of all live tasks and the nodes, kept from decision to decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PlaceState {
    pub(super) nodes: Vec<NodeLoad>,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    /// The tasks that wait, in the order of admission.
    pub(super) waiting: BTreeSet<(u32, TaskId)>,
    /// Demand and CPUs of the tasks of known demand.
    pub(super) known: (u64, u64),
    /// Mean length of a task in ns; 0 before the first end.
    pub(super) length: u64,
    /// The first waiting task, and how many others were placed before it.
    pub(super) first: Option<(TaskId, usize)>,
    pub(super) quantum: QuantumEnd,
    /// The node that is kept free for the first task.
    pub(super) reserved: Option<usize>,
}

/// A node and its tasks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct NodeLoad {
    pub(super) slots: u64,
    /// CPUs that one task can have at most; `None`: all slots.
    width: Option<u32>,
    pub(super) memory: Option<u64>,
    pub(super) taken: u64,
    pub(super) demand: u64,
    pub(super) memory_taken: u64,
}

/// A live task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) turn: u32,
    pub(super) cpus: u64,
    /// Lines per ms, if known.
    pub(super) demand: Option<u64>,
    pub(super) memory: u64,
    /// Its node, since when, and the demand that counts there.
    pub(super) on: Option<(usize, Nanos, u64)>,
}

impl PlacePolicy {
    /// Brings the state up to date: by the triggers, or else from the snapshot.
    pub(super) fn follow(&mut self, snap: &Snapshot) {
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

    pub(super) fn rebuild(&mut self, snap: &Snapshot) {
        let machine = &*snap.machine;
        let load = |node| NodeLoad {
            slots: node_cpus(machine, node).len() as u64,
            width: machine.nodes.get(node).and_then(|node| node.width),
            memory: machine.nodes.get(node).and_then(|node| node.memory),
            taken: 0,
            demand: 0,
            memory_taken: 0,
        };
        let nodes = match machine.nodes.len() {
            0 => machine.memory_domains.len(),
            nodes => nodes,
        };
        self.state = PlaceState {
            nodes: (0..nodes).map(load).collect(),
            length: self.state.length,
            first: self.state.first,
            quantum: self.state.quantum,
            ..PlaceState::default()
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

impl PlaceState {
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
    pub(super) fn put(&mut self, id: TaskId, node: usize, since: Nanos) {
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
    pub(super) fn mean_demand(&self) -> u64 {
        self.known.0.checked_div(self.known.1).unwrap_or(CPU_DEMAND)
    }
}

impl NodeLoad {
    /// Whether it could hold the task if it had no other.
    pub(super) fn can_hold(&self, task: &Task) -> bool {
        let width = self.width.map_or(self.slots, u64::from);
        self.slots.min(width) >= task.cpus
    }

    /// Bytes left, if known. A node without tasks takes any.
    pub(super) fn memory_left(&self) -> u64 {
        match self.memory {
            Some(memory) if self.memory_taken > 0 => memory.saturating_sub(self.memory_taken),
            _ => u64::MAX,
        }
    }
}
