//! `round-robin`: by quantum, the longest waiting first.

use super::params::QUANTUM_S;
use super::round::Round;
use super::{Policy, PolicyEntry, QuantumEnd, sharing_needs, state_is_a_field};
use crate::decision::{Basis, Decision, WaitReason};
use crate::placement::Purpose;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "round-robin",
    gist: "by quantum, the longest waiting first",
    source: "baseline",
    time_shares: true,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| sharing_needs(),
    build: |params| {
        Box::new(RoundRobin {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: QuantumEnd::default(),
        })
    },
};

struct RoundRobin {
    quantum: Nanos,
    state: QuantumEnd,
}

impl Policy for RoundRobin {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let round = Round::new(snap);
        let end = self.state.of_round(&round, self.quantum);
        decide(round, end)
    }

    state_is_a_field!();
}

fn decide(mut round: Round<'_>, end: Nanos) -> Decision {
    round.choose_in_order(Purpose::Run, false);
    round.finish(end, Basis::default(), |_, ahead| WaitReason::Order {
        ahead,
    })
}

/// Round-robin with the usual quantum, from the snapshot alone.
pub(super) fn decide_stateless(snap: &Snapshot) -> Decision {
    decide(Round::everything(snap), snap.now + Nanos::from_ms(200))
}
