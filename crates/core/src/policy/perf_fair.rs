//! `perf-fair`: bandwidth-aware selection among the tasks that are not ahead (Perf&Fair, Algorithm 1).
//!
//! A task may be chosen by FITNESS as long as one more quantum could not bring it beyond the greatest progress of all
//! tasks. When no such task is left and CPUs are still free, selection goes on among the rest. Progress is measured
//! against solo IPC, which is estimated in shorter quanta of low contention.

use super::estimation::{
    Estimation, EstimationState, LIGHT_LLC, LIGHT_MM, RENEWAL_SHARE_MAX, SHARE_MAX, VALID_QUANTA,
    progress_by,
};
use super::fair::progress_needs;
use super::params::{ESTIMATES, ParamSpec, QUANTUM_S, number};
use super::round::Round;
use super::target::{Fit, Target};
use super::{
    Need, Params, Policy, PolicyEntry, QuantumEnd, sharing_needs, state_is_a_field, wanted,
};
use crate::capability::Capability;
use crate::counter::Counter;
use crate::decision::{Decision, WaitReason};
use crate::rng::Rng;
use crate::snapshot::{Snapshot, TaskView};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

pub(super) const MARGIN: ParamSpec = number(
    "progress_margin_quanta",
    1.0,
    0.0,
    1e6,
    "distance in quanta that a job keeps from the greatest progress; 1 in Perf&Fair; less than 0.5 costs fairness and gains no speed",
);
const ESTIMATION_QUANTUM: ParamSpec = number(
    "estimation_quantum_s",
    0.1,
    0.001,
    3600.0,
    "length of an estimation quantum in seconds; 0.1 in Perf&Fair",
);

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "perf-fair",
    gist: "evens out bandwidth among the jobs that are behind, so that all progress alike",
    source: "Feliu et al., Perf&Fair",
    time_shares: true,
    can_hand_over: false,
    params: &[
        QUANTUM_S,
        ESTIMATION_QUANTUM,
        VALID_QUANTA,
        LIGHT_LLC,
        LIGHT_MM,
        SHARE_MAX,
        RENEWAL_SHARE_MAX,
        MARGIN,
        ESTIMATES,
    ],
    needs,
    build: |params| {
        let estimation =
            Estimation::new(params, Nanos::from_s(params.number("estimation_quantum_s")));
        Box::new(PerfFair {
            quantum: Nanos::from_s(params.number("quantum_s")),
            margin: params.number("progress_margin_quanta"),
            estimation,
            learnt: params.word("estimates") == "learnt",
            state: State::default(),
        })
    },
};

fn needs(_: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.push(wanted(
        Capability::Counter(Counter::MmReads),
        "all jobs count as alike; of those behind, the ones that have waited longest run",
    ));
    needs.extend(progress_needs());
    needs
}

struct PerfFair {
    quantum: Nanos,
    margin: f64,
    estimation: Estimation,
    learnt: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    estimation: EstimationState,
}

impl Policy for PerfFair {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = Round::new(snap);
        if let Some((until, basis)) = self.estimation.plan(&mut self.state.estimation, &mut round) {
            return self.estimation.finish(round, until, basis);
        }
        let end = self.state.quantum.of_round(&round, self.quantum);
        select(round, end, Target::Online, self.margin, |task| {
            progress_by(self.learnt, task)
        })
    }

    state_is_a_field!();
}

/// Selection among the tasks that are not ahead (Algorithm 1, lines 11-19), with progress and target as the policy
/// knows them.
pub(super) fn select(
    mut round: Round<'_>,
    end: Nanos,
    target: Target,
    margin: f64,
    progress: impl Fn(&TaskView) -> f64,
) -> Decision {
    let snap = round.snap;
    let mut fit = Fit::new(&round, target);
    let max = snap.tasks.iter().map(&progress).fold(0.0, f64::max);
    let selectable = |ix: u32| progress(&snap.tasks[ix as usize]) + margin < max;
    // First the tasks that must run: the overdue and critical ones, and those that have never run, because nothing was
    // measured of them.
    let must_run = |task: &TaskView| task.overdue || task.estimates.executed == 0;
    for pos in 0..round.order.len() {
        let ix = round.order[pos];
        let task = round.task(ix);
        if round.left() > 0 && (must_run(task) || round.is_critical(ix)) {
            fit.choose(&mut round, ix);
        }
    }
    let behind: Vec<u32> = positions(&round, selectable);
    fit.fill(&mut round, behind.into_iter());
    let rest: Vec<u32> = if round.left() > 0 {
        positions(&round, |ix| !selectable(ix))
    } else {
        Vec::new()
    };
    fit.fill(&mut round, rest.into_iter());
    let basis = fit.basis();
    let milli = |progress: f64| (progress * 1e3) as u64;
    round.finish(end, basis, |ix, ahead| {
        let task = &snap.tasks[ix as usize];
        if must_run(task) {
            WaitReason::Order { ahead }
        } else if selectable(ix) {
            fit.reason(task, ahead)
        } else {
            WaitReason::Ahead {
                progress_milli: milli(progress(task)),
                max_progress_milli: milli(max),
            }
        }
    })
}

/// Positions in the round's order of the open tasks that meet a condition.
fn positions(round: &Round<'_>, condition: impl Fn(u32) -> bool) -> Vec<u32> {
    let fits = |pos: &u32| {
        let ix = round.order[*pos as usize];
        round.is_open(ix) && condition(ix)
    };
    (0..round.order.len() as u32).filter(fits).collect()
}
