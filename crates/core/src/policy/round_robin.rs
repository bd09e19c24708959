//! `round-robin`: by quantum, the longest waiting first. With different weights, the least [virtual
//! time](super::virtual_time) first.

use super::prelude::*;
use super::virtual_time::VirtualTimes;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "round-robin",
    gist: "by quantum, the longest waiting first",
    source: "baseline",
    for_research: false,
    time_shares: true,
    kernel_shares: false,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S],
    needs: &|_| sharing_needs(&[]),
    build: &|params| {
        Box::new(RoundRobin {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: State::default(),
        })
    },
};

struct RoundRobin {
    quantum: Nanos,
    state: State,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    quantum: QuantumEnd,
    /// Only while weights differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<VirtualTimes>,
}

impl Policy for RoundRobin {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = Round::new(snap);
        let end = self.state.quantum.of_round(&round, self.quantum);
        if Weights::of(snap).are_equal() {
            self.state.times = None;
        } else {
            let times = self.state.times.get_or_insert_default();
            times.update(&round);
            round.order_by_progress(&times.all(&round));
        }
        decide(round, end)
    }

    state_is_a_field!();
}

fn decide(mut round: Round<'_>, end: Nanos) -> Decision {
    round.choose_in_order(Purpose::Run, false);
    round.finish_in_order(end)
}

/// Round-robin with the usual quantum, from the snapshot alone; weights do not count.
pub(super) fn decide_stateless(snap: &Snapshot) -> Decision {
    decide(Round::everything(snap), snap.now + Nanos::from_ms(200))
}
