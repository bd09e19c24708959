//! `perf-fair`: bandwidth-aware selection among the tasks that are not ahead (Perf&Fair, Algorithm 1).
//!
//! A task may be chosen by FITNESS if one more quantum could not bring it beyond the greatest progress of all tasks. If
//! no such task is left and CPUs are still free, selection goes on among the rest. Progress is relative to solo IPC,
//! which is estimated in shorter quanta of low contention.
//!
//! The paper says that performance and fairness can be traded (section 7.2), and not in the text at hand how. Here a task
//! that is little ahead of the least progress may be chosen too (`lead_max_percent`).
//!
//! The paper suggests that a task of higher priority progresses faster, but leaves that open (section 5). Here progress
//! is divided by the task's weight, and so is what one more quantum would add.

use super::estimation::{
    LIGHT_LLC, LIGHT_MM, RENEWAL_SHARE_MAX, SHARE_MAX, VALID_QUANTA, estimating, progress_by,
};
use super::params::{AS, ESTIMATES};
use super::prelude::*;
use super::target::{BandwidthTarget, TargetSelection};

pub(super) const LEAD: ParamSpec = number(
    "lead_max_percent",
    0.0,
    0.0,
    1e6,
    "greatest lead over the least progress, in per cent, with which a job still counts as behind; 0 in Perf&Fair; more shortens the mean time of the jobs, and costs fairness",
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
    for_research: false,
    time_shares: true,
    kernel_shares: false,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: &[
        QUANTUM_S,
        ESTIMATION_QUANTUM,
        VALID_QUANTA,
        LIGHT_LLC,
        LIGHT_MM,
        SHARE_MAX,
        RENEWAL_SHARE_MAX,
        LEAD,
        ESTIMATES,
        AS,
    ],
    needs: &|_| {
        let mut needs = sharing_needs(&[wanted(
            Capability::Counter(Counter::MmReads),
            "all jobs count as alike; of those behind, the ones that have waited longest run",
        )]);
        needs.extend(PROGRESS_NEEDS);
        needs
    },
    build: &|params| {
        let length = Nanos::from_s(params.number("estimation_quantum_s"));
        let lead = lead(params);
        let progress = progress_by(params.word("estimates"));
        estimating(params, length, move |round, end| {
            select(round, end, BandwidthTarget::Online, lead, progress)
        })
    },
};

/// The tasks' progress by weight.
struct Standings<'a> {
    snap: &'a Snapshot,
    weights: Weights,
    progress: Vec<f64>,
    max: f64,
    /// A task with less progress counts as behind in any case.
    enough: f64,
}

impl Standings<'_> {
    fn new(snap: &Snapshot, lead: f64, progress: fn(&TaskView) -> f64) -> Standings<'_> {
        let progress = weighted_progress(snap, progress);
        let least = progress.iter().copied().fold(f64::INFINITY, f64::min);
        Standings {
            snap,
            weights: Weights::of(snap),
            enough: least * (1.0 + lead),
            max: progress.iter().copied().fold(0.0, f64::max),
            progress,
        }
    }

    /// Whether so many more quanta would not bring a task beyond the greatest progress.
    fn is_behind_by(&self, ix: u32, quanta: f64) -> bool {
        let ix = ix as usize;
        let weight = self.weights.over_least(&self.snap.tasks[ix]);
        self.progress[ix] + quanta / weight < self.max
    }

    /// Whether a task may be chosen by its bandwidth.
    fn is_behind(&self, ix: u32) -> bool {
        self.is_behind_by(ix, 1.0) || self.progress[ix as usize] < self.enough
    }
}

/// If weights differ, a task runs first if this many quanta would not bring it beyond the greatest progress (ours).
/// Otherwise heavy tasks, which are often behind, would take turns with the light ones.
const FAR: f64 = 5.0;

/// The greatest lead, as a share of the least progress.
pub(super) fn lead(params: &Params) -> f64 {
    params.number("lead_max_percent") / 100.0
}

/// Selects among the tasks that are not ahead (Algorithm 1, lines 11-19), by the policy's progress and target.
pub(super) fn select(
    mut round: Round<'_>,
    end: Nanos,
    target: BandwidthTarget,
    lead: f64,
    progress: fn(&TaskView) -> f64,
) -> Decision {
    let snap = round.snap;
    let mut fit = TargetSelection::new(&round, target);
    let standings = Standings::new(snap, lead, progress);
    let differ = !standings.weights.are_equal();
    for pos in 0..round.order.len() {
        let ix = round.order[pos];
        let is_far_behind = differ && standings.is_behind_by(ix, FAR);
        let is_first = must_run(round.task(ix)) || round.is_critical(ix) || is_far_behind;
        if round.left() > 0 && is_first {
            fit.choose(&mut round, ix);
        }
    }
    let behind = positions(&round, |ix| standings.is_behind(ix));
    fit.fill(&mut round, &behind);
    if round.left() > 0 {
        let rest = positions(&round, |_| true);
        fit.fill(&mut round, &rest);
    }
    round.finish(end, fit.basis(), |ix, ahead| {
        let task = &snap.tasks[ix as usize];
        if must_run(task) {
            WaitReason::Order { ahead }
        } else if standings.is_behind(ix) {
            fit.reason(task, ahead)
        } else {
            WaitReason::Ahead {
                progress_milli: (standings.progress[ix as usize] * 1e3) as u64,
                max_progress_milli: (standings.max * 1e3) as u64,
            }
        }
    })
}

/// Overdue tasks must run, and tasks that have never run, because they are not measured.
fn must_run(task: &TaskView) -> bool {
    task.overdue || task.estimates.executed == 0
}

/// Positions in the round's order of the open tasks that meet a condition.
fn positions(round: &Round<'_>, condition: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..round.order.len() as u32).collect();
    positions.retain(|&pos| {
        let ix = round.order[pos as usize];
        round.is_open(ix) && condition(ix)
    });
    positions
}
