//! `round-robin`: by quantum, the longest waiting first.

use super::prelude::*;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "round-robin",
    gist: "by quantum, the longest waiting first",
    source: "baseline",
    for_research: false,
    time_shares: true,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| sharing_needs(&[]),
    build: |params| {
        each_quantum(params, is_full, |snap, end, _| {
            decide(Round::new(snap), end)
        })
    },
};

fn decide(mut round: Round<'_>, end: Nanos) -> Decision {
    round.choose_in_order(Purpose::Run, false);
    round.finish_in_order(end)
}

/// Round-robin with the usual quantum, from the snapshot alone.
pub(super) fn decide_stateless(snap: &Snapshot) -> Decision {
    decide(Round::everything(snap), snap.now + Nanos::from_ms(200))
}
