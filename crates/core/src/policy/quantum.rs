//! Quanta, and policies whose only state is the end of the present one.

use super::round::Round;
use super::{Params, Policy, state_is_a_field};
use crate::decision::Decision;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// The end of the current quantum. A round that only fills free CPUs must not move it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QuantumEnd {
    pub(super) end: Nanos,
}

impl QuantumEnd {
    /// The end of a round's quantum: `length` from now for a full round.
    pub(super) fn of_round(&mut self, round: &Round<'_>, length: Nanos) -> Nanos {
        self.after(round.snap.now, round.full, length)
    }

    /// The end of the quantum at `now`. With `begins` a new quantum begins in any case.
    pub(super) fn after(&mut self, now: Nanos, begins: bool, length: Nanos) -> Nanos {
        if begins || self.end <= now {
            self.end = now + length;
        }
        self.end
    }
}

/// A policy whose decisions depend only on the snapshot, the end of the quantum and the generator. `begins`: whether a
/// new quantum begins before the last one has ended.
pub(super) fn each_quantum(
    params: &Params,
    begins: fn(&Snapshot) -> bool,
    decide: impl Fn(&Snapshot, Nanos, &mut Rng) -> Decision + 'static,
) -> Box<dyn Policy> {
    Box::new(EachQuantum {
        length: Nanos::from_s(params.number("quantum_s")),
        begins,
        decide,
        state: QuantumEnd::default(),
    })
}

struct EachQuantum<F> {
    length: Nanos,
    begins: fn(&Snapshot) -> bool,
    decide: F,
    state: QuantumEnd,
}

impl<F: Fn(&Snapshot, Nanos, &mut Rng) -> Decision> Policy for EachQuantum<F> {
    fn decide(&mut self, snap: &Snapshot, rng: &mut Rng) -> Decision {
        let end = self.state.after(snap.now, (self.begins)(snap), self.length);
        (self.decide)(snap, end, rng)
    }

    state_is_a_field!();
}
