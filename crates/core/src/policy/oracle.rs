//! `oracle`: Perf&Fair with knowledge that no scheduler has (Perf&Fair, section 6). Progress is measured against a
//! trace of each task's solo run, keyed by instructions, and the target is the ideal one, from solo bandwidths. What it
//! gains over `perf-fair` is the most that better estimates could gain.
//!
//! It measures no task in low contention. A task without a trace would count by its estimated progress, but the policy
//! needs traces, so no run has such a task.

use super::estimation::progress;
use super::params::QUANTUM_S;
use super::perf_fair::{MARGIN, select};
use super::round::Round;
use super::target::Target;
use super::{
    Need, Params, Policy, PolicyEntry, QuantumEnd, required, sharing_needs, state_is_a_field,
    wanted,
};
use crate::capability::Capability;
use crate::counter::Counter;
use crate::decision::Decision;
use crate::rng::Rng;
use crate::snapshot::{Snapshot, TaskView};
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "oracle",
    gist: "perf-fair that knows each job's solo run beforehand: a bound for what estimates can reach",
    source: "Feliu et al., Perf&Fair, section 6",
    time_shares: true,
    can_hand_over: false,
    params: &[QUANTUM_S, MARGIN],
    needs,
    build: |params| {
        Box::new(Oracle {
            quantum: Nanos::from_s(params.number("quantum_s")),
            margin: params.number("progress_margin_quanta"),
            state: QuantumEnd::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.extend(
        [
            Capability::SoloTrace,
            Capability::SoloBandwidth,
            Capability::Ipc,
            Capability::Counter(Counter::MmReads),
        ]
        .map(required),
    );
    needs.push(wanted(
        Capability::Counter(Counter::L1Accesses),
        "jobs are not paired by their use of the L1 cache",
    ));
    needs
}

struct Oracle {
    quantum: Nanos,
    margin: f64,
    state: QuantumEnd,
}

fn traced_progress(task: &TaskView) -> f64 {
    task.estimates
        .trace_progress
        .value()
        .unwrap_or_else(|| progress(task))
}

impl Policy for Oracle {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let round = Round::new(snap);
        let end = self.state.of_round(&round, self.quantum);
        select(round, end, Target::Ideal, self.margin, traced_progress)
    }

    state_is_a_field!();
}
