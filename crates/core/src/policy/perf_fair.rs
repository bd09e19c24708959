//! `perf-fair`: bandwidth-aware selection among the tasks that are not ahead (Perf&Fair, Algorithm 1).
//!
//! A task may be chosen by FITNESS if one more quantum could not bring it beyond the greatest progress of all tasks. If
//! no such task is left and CPUs are still free, selection goes on among the rest. Progress is relative to solo IPC,
//! which is estimated in shorter quanta of low contention.
//!
//! The paper suggests that a task of higher priority progresses faster, but leaves that open (section 5). Here progress
//! is divided by the task's weight, and so is what one more quantum would add.

use super::estimation::{
    LIGHT_LLC, LIGHT_MM, RENEWAL_SHARE_MAX, SHARE_MAX, VALID_QUANTA, estimating, progress_by,
};
use super::params::ESTIMATES;
use super::prelude::*;
use super::target::{Fit, Target};

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
    for_research: false,
    time_shares: true,
    weighs: true,
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
    needs: |_| {
        let mut needs = sharing_needs(&[wanted(
            Capability::Counter(Counter::MmReads),
            "all jobs count as alike; of those behind, the ones that have waited longest run",
        )]);
        needs.extend(PROGRESS_NEEDS);
        needs
    },
    build: |params| {
        let length = Nanos::from_s(params.number("estimation_quantum_s"));
        let margin = params.number("progress_margin_quanta");
        let progress = progress_by(params.word("estimates"));
        estimating(params, length, move |round, end| {
            select(round, end, Target::Online, margin, progress)
        })
    },
};

/// The tasks' progress by weight.
struct Standings {
    progress: Vec<f64>,
    max: f64,
    /// The weight of each task over the least.
    weights: Vec<f64>,
    /// Whether weights differ.
    differ: bool,
}

impl Standings {
    fn new(snap: &Snapshot, progress: fn(&TaskView) -> f64) -> Standings {
        let weights = Weights::of(snap);
        let progress = weighted_progress(snap, progress);
        let tasks = snap.tasks.iter();
        Standings {
            max: progress.iter().copied().fold(0.0, f64::max),
            progress,
            weights: tasks.map(|task| weights.over_least(task)).collect(),
            differ: !weights.are_equal(),
        }
    }

    /// Whether so many more quanta would not bring a task beyond the greatest progress.
    fn is_behind(&self, ix: u32, quanta: f64) -> bool {
        let ix = ix as usize;
        self.progress[ix] + quanta / self.weights[ix] < self.max
    }
}

/// If weights differ, a task runs first if this many quanta more than the margin would not bring it beyond the greatest
/// progress (ours). Otherwise heavy tasks, which are often behind, would take turns with the light ones.
const FAR: f64 = 4.0;

/// Selects among the tasks that are not ahead (Algorithm 1, lines 11-19), by the policy's progress and target.
pub(super) fn select(
    mut round: Round<'_>,
    end: Nanos,
    target: Target,
    margin: f64,
    progress: fn(&TaskView) -> f64,
) -> Decision {
    let snap = round.snap;
    let mut fit = Fit::new(&round, target);
    let standings = Standings::new(snap, progress);
    for pos in 0..round.order.len() {
        let ix = round.order[pos];
        let is_far_behind = standings.differ && standings.is_behind(ix, margin + FAR);
        let is_first = must_run(round.task(ix)) || round.is_critical(ix) || is_far_behind;
        if round.left() > 0 && is_first {
            fit.choose(&mut round, ix);
        }
    }
    let behind = positions(&round, |ix| standings.is_behind(ix, margin));
    fit.fill(&mut round, behind.into_iter());
    if round.left() > 0 {
        let rest = positions(&round, |_| true);
        fit.fill(&mut round, rest.into_iter());
    }
    round.finish(end, fit.basis(), |ix, ahead| {
        let task = &snap.tasks[ix as usize];
        if must_run(task) {
            WaitReason::Order { ahead }
        } else if standings.is_behind(ix, margin) {
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
