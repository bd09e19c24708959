//! One decision of `place`.

use super::super::fitness::{FitnessCandidate, FitnessQueue};
use super::super::prelude::*;
use super::state::NodeLoad;
use super::{By, PlacePolicy, node_cpus};
use crate::decision::Wait;
use crate::units::Rate;
use std::cmp::Reverse;

/// Maximum number of tasks sent ahead, per slot.
const MOST_AHEAD: u64 = 16;
/// Least time between two looks at tasks on nodes, and for each task: a look at thousands of them takes a while.
const LOOK: Nanos = Nanos::from_ms(1_000);
const LOOK_MS_PER_TASK: u64 = 2;

/// One decision.
pub(super) struct Turn<'a> {
    place: &'a mut PlacePolicy,
    snap: &'a Snapshot,
    decision: Decision,
}

impl<'a> Turn<'a> {
    pub(super) fn new(place: &'a mut PlacePolicy, snap: &'a Snapshot) -> Turn<'a> {
        Turn {
            place,
            snap,
            decision: Decision::default(),
        }
    }

    pub(super) fn decide(mut self) -> Decision {
        self.reserve();
        let (mut chosen, passed) = self.choose();
        // Of wide tasks some may no longer fit beside the others. Then more narrow ones do.
        while !chosen.is_empty() {
            for id in chosen {
                self.put(id);
            }
            (chosen, _) = self.choose();
        }
        self.finish(passed)
    }

    /// Free slots of a node, with those that are filled ahead.
    fn room(&self, node: usize) -> u64 {
        let load = &self.place.state.nodes[node];
        (load.slots + self.ahead(load)).saturating_sub(load.taken)
    }

    fn ahead(&self, load: &NodeLoad) -> u64 {
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
        let (task, load) = (&state.tasks[&id], &state.nodes[node]);
        let has_memory = self.place.by != By::Known || task.memory <= load.memory_left();
        let has_room = load.can_hold(task) && self.room(node) >= task.cpus;
        has_room && has_memory && self.may_use(id, node, task.cpus)
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
        let of = |(rank, &id): (usize, &TaskId)| FitnessCandidate {
            index: rank as u32,
            rank: rank as u32,
            bandwidth: self.per_cpu(id),
            cpus: state.tasks[&id].cpus as u32,
        };
        let mut left: Vec<FitnessCandidate> = all.iter().enumerate().map(of).collect();
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
    fn put(&mut self, id: TaskId) {
        let Some(node) = self.node_for(id) else {
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

    fn node_for(&self, id: TaskId) -> Option<usize> {
        let state = &self.place.state;
        let nodes =
            (0..state.nodes.len()).filter(|&node| self.is_open(node) && self.fits(id, node));
        let share = |node: usize| self.room(node) * 1_000_000 / state.nodes[node].slots;
        match self.place.by {
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
        let quantum = if self.snap.machine.nodes.is_empty() {
            self.place.quantum
        } else {
            let all = Nanos::from_ms(LOOK_MS_PER_TASK * self.snap.tasks.len() as u64);
            self.place.quantum.max(LOOK).max(all)
        };
        let end = state.quantum.after(self.snap.now, is_full, quantum);
        self.decision.next_wake = Some(end);
        self.decision
    }

    /// Why a task fits on no node.
    fn misfit(&self, id: TaskId) -> WaitReason {
        let state = &self.place.state;
        let task = &state.tasks[&id];
        let nodes = (0..state.nodes.len()).filter(|&node| state.nodes[node].can_hold(task));
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
