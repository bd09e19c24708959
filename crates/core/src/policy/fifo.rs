//! `fifo`: at most as many tasks as CPUs, each to its end, in the order in which they are let in: what `parallel -j` and
//! `xargs -P` do.

use super::params::QUANTUM_S;
use super::round::Round;
use super::{Policy, PolicyEntry, QuantumEnd, state_is_a_field, wanted};
use crate::capability::Capability;
use crate::decision::{Basis, Decision, WaitReason};
use crate::placement::Purpose;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo",
    gist: "at most as many jobs as CPUs, each to its end, in order",
    source: "baseline (GNU parallel -j)",
    time_shares: false,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| {
        vec![wanted(
            Capability::Affinity,
            "the kernel chooses the CPU of each job that runs",
        )]
    },
    build: |params| {
        Box::new(Fifo {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: QuantumEnd::default(),
        })
    },
};

struct Fifo {
    quantum: Nanos,
    state: QuantumEnd,
}

impl Policy for Fifo {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let end = self
            .state
            .after(snap.now, snap.is_quantum_end(), self.quantum);
        let mut round = Round::between_quanta(snap);
        // As they were let in, whatever happened to a task since. Events of older versions do not tell that.
        round.order.sort_by_key(|&ix| {
            let task = &snap.tasks[ix as usize];
            (task.turn, task.arrived, task.id)
        });
        // No task overtakes a gang that waits for its CPUs: otherwise the gang might wait for ever.
        round.choose_in_order(Purpose::Run, true);
        round.finish(end, Basis::default(), |_, ahead| WaitReason::Order {
            ahead,
        })
    }

    state_is_a_field!();
}
