//! `bandwidth`: spreads the demand on main memory evenly over time, and on the L1 caches over the cores (Feliu et al.,
//! "Addressing bandwidth contention in SMT multicores through scheduling"; called Perf in Perf&Fair).
//!
//! Each quantum takes the task that has waited longest. Then it repeatedly takes the task whose bandwidth is nearest to
//! the remaining bandwidth per CPU, until every CPU has a task.

use super::prelude::*;
use super::target::{BandwidthTarget, TargetSelection};

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "bandwidth",
    gist: "evens out memory bandwidth over time and L1 bandwidth over cores",
    source: "Feliu et al., bandwidth-aware SMT scheduling; `Perf` in Perf&Fair",
    for_research: false,
    time_shares: true,
    kernel_shares: false,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[
        QUANTUM_S,
        choice(
            "target",
            &["online", "ideal"],
            "bandwidth to aim at: `online` from each job's mean so far (OATR), `ideal` from the solo runs of all jobs (IABW)",
        ),
    ],
    needs: &needs,
    build: &|params| {
        let target = if is_ideal(params) {
            BandwidthTarget::Ideal
        } else {
            BandwidthTarget::Online
        };
        each_quantum(params, is_full, move |snap, end, _| {
            decide(snap, end, target)
        })
    },
};

fn is_ideal(params: &Params) -> bool {
    params.word("target") == "ideal"
}

fn needs(params: &Params) -> Vec<Need> {
    let mut needs = sharing_needs(&[
        wanted(
            Capability::Counter(Counter::MmReads),
            "all jobs count as alike, and those that have waited longest run",
        ),
        WANTS_L1,
    ]);
    if is_ideal(params) {
        needs.push(required(Capability::SoloBandwidth));
    }
    needs
}

fn decide(snap: &Snapshot, end: Nanos, target: BandwidthTarget) -> Decision {
    let mut round = Round::without_weights(snap);
    let mut fit = TargetSelection::new(&round, target);
    // The task that has waited longest, and all overdue and critical tasks.
    let longest = if round.overdue() > 0 { 0 } else { 1 };
    let first = (round.head() + longest).min(round.order.len());
    for pos in 0..first {
        if round.left() > 0 {
            let ix = round.order[pos];
            fit.choose(&mut round, ix);
        }
    }
    let rest: Vec<u32> = (first as u32..round.order.len() as u32).collect();
    fit.fill(&mut round, &rest);
    let basis = fit.basis();
    round.finish(end, basis, |ix, ahead| {
        let task = &snap.tasks[ix as usize];
        if task.overdue {
            WaitReason::Order { ahead }
        } else {
            fit.reason(task, ahead)
        }
    })
}
