//! `fair`: the least progress first (the baseline Fair of Perf&Fair).
//!
//! Progress is measured against solo IPC, which is estimated in quanta of low contention as long as ordinary ones.

use super::estimation::{
    Estimation, EstimationState, LIGHT_LLC, LIGHT_MM, RENEWAL_SHARE_MAX, SHARE_MAX, VALID_QUANTA,
    progress_by,
};
use super::params::{ESTIMATES, QUANTUM_S};
use super::round::Round;
use super::{
    Need, Params, Policy, PolicyEntry, QuantumEnd, sharing_needs, state_is_a_field, wanted,
};
use crate::capability::Capability;
use crate::counter::Counter;
use crate::decision::{Basis, Decision, WaitReason};
use crate::placement::Purpose;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fair",
    gist: "the job with the least progress against running alone first",
    source: "Feliu et al., `Fair` in Perf&Fair",
    time_shares: true,
    can_hand_over: false,
    params: &[
        QUANTUM_S,
        VALID_QUANTA,
        LIGHT_LLC,
        LIGHT_MM,
        SHARE_MAX,
        RENEWAL_SHARE_MAX,
        ESTIMATES,
    ],
    needs,
    build: |params| {
        let quantum = Nanos::from_s(params.number("quantum_s"));
        let estimation = Estimation::new(params, quantum);
        let learnt = params.word("estimates") == "learnt";
        Box::new(Fair {
            quantum,
            estimation,
            learnt,
            state: State::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.extend(progress_needs());
    needs
}

/// The needs of every policy that measures progress.
pub(super) fn progress_needs() -> [Need; 3] {
    [
        wanted(
            Capability::Ipc,
            "progress is CPU time: slowdown by co-runners is not seen",
        ),
        wanted(
            Capability::Counter(Counter::LlcAccesses),
            "light and heavy jobs are told apart by their reads from memory alone",
        ),
        wanted(
            Capability::Counter(Counter::L1Accesses),
            "jobs are not paired by their use of the L1 cache",
        ),
    ]
}

struct Fair {
    quantum: Nanos,
    estimation: Estimation,
    learnt: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    estimation: EstimationState,
}

impl Policy for Fair {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = Round::new(snap);
        if let Some((until, basis)) = self.estimation.plan(&mut self.state.estimation, &mut round) {
            return self.estimation.finish(round, until, basis);
        }
        let end = self.state.quantum.of_round(&round, self.quantum);
        // Overdue tasks come before all others, the longest waiting first; otherwise the bound on pauses would not
        // hold. So do critical ones. The sort is stable, so among tasks of equal progress the longest waiting comes first
        // too.
        let head = round.head();
        let tasks = snap.tasks.iter();
        let progress: Vec<f64> = tasks.map(|task| progress_by(self.learnt, task)).collect();
        round.order[head..].sort_by(|&a, &b| progress[a as usize].total_cmp(&progress[b as usize]));
        round.choose_in_order(Purpose::Run, false);
        round.finish(end, Basis::default(), |_, ahead| WaitReason::Order {
            ahead,
        })
    }

    state_is_a_field!();
}
