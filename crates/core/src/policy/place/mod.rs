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

mod state;
#[cfg(test)]
mod tests;
mod turn;

use super::params::MU;
use super::prelude::*;
use crate::topology::{CpuSet, Machine};
use state::PlaceState;
use turn::Turn;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "place",
    gist: "over nodes: the node of each job, by its demand on memory",
    source: "ours, with FITNESS from Xu et al.",
    for_research: false,
    time_shares: true,
    kernel_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: true,
    params: &[QUANTUM_S, BY, WINDOW, AHEAD_S, MU],
    needs: &|_| vec![required(Capability::Affinity)],
    build: &|params| {
        Box::new(PlacePolicy {
            by: By::of(params.word("by")),
            window: params.number("window") as usize,
            ahead: Nanos::from_s(params.number("ahead_s")),
            mu_per_us: params.number("mu_trans_per_us"),
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: PlaceState::default(),
        })
    },
};

const BY: ParamSpec = choice(
    "by",
    &["known", "slots"],
    "what decides on the node: `known` is demand on memory, slots and memory; `slots` is a baseline",
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Known,
    Slots,
}

impl By {
    fn of(word: &str) -> By {
        match word {
            "slots" => By::Slots,
            _ => By::Known,
        }
    }
}

struct PlacePolicy {
    by: By,
    window: usize,
    ahead: Nanos,
    mu_per_us: f64,
    quantum: Nanos,
    state: PlaceState,
}

impl Policy for PlacePolicy {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        self.follow(snap);
        Turn::new(self, snap).decide()
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
