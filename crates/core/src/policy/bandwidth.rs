//! `bandwidth`: spreads the demand on main memory evenly over time, and on the L1 caches over the cores (Feliu et al.,
//! "Addressing bandwidth contention in SMT multicores through scheduling"; called Perf in Perf&Fair).
//!
//! In each quantum the task that has waited longest is always taken. Then the task whose bandwidth is nearest to what
//! is left per CPU is taken, again and again, until every CPU has a task.

use super::params::{ParamKind, ParamSpec, QUANTUM_S};
use super::round::Round;
use super::target::{Fit, Target};
use super::{
    Need, Params, Policy, PolicyEntry, QuantumEnd, required, sharing_needs, state_is_a_field,
    wanted,
};
use crate::capability::Capability;
use crate::counter::Counter;
use crate::decision::{Decision, WaitReason};
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "bandwidth",
    gist: "evens out the use of memory bandwidth over time and of L1 bandwidth over cores",
    source: "Feliu et al., bandwidth-aware SMT scheduling; `Perf` in Perf&Fair",
    time_shares: true,
    can_hand_over: false,
    params: &[
        QUANTUM_S,
        ParamSpec {
            name: "target",
            kind: ParamKind::Choice(&["online", "ideal"]),
            about: "bandwidth to aim at: `online` from each job's mean so far (OATR), `ideal` from solo runs (IABW)",
            at_most: None,
        },
    ],
    needs,
    build: |params| {
        let target = if params.word("target") == "ideal" {
            Target::Ideal
        } else {
            Target::Online
        };
        let quantum = Nanos::from_s(params.number("quantum_s"));
        Box::new(Bandwidth {
            quantum,
            target,
            state: QuantumEnd::default(),
        })
    },
};

fn needs(params: &Params) -> Vec<Need> {
    let mut needs = sharing_needs();
    needs.push(wanted(
        Capability::Counter(Counter::MmReads),
        "all jobs count as alike, and those that have waited longest run",
    ));
    needs.push(wanted(
        Capability::Counter(Counter::L1Accesses),
        "jobs are not paired by their use of the L1 cache",
    ));
    if params.word("target") == "ideal" {
        needs.push(required(Capability::SoloBandwidth));
    }
    needs
}

struct Bandwidth {
    quantum: Nanos,
    target: Target,
    state: QuantumEnd,
}

impl Policy for Bandwidth {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut round = Round::new(snap);
        let end = self.state.of_round(&round, self.quantum);
        let mut fit = Fit::new(&round, self.target);
        // The task that has waited longest, and all overdue and critical tasks.
        let longest = if round.overdue() > 0 { 0 } else { 1 };
        let first = (round.head() + longest).min(round.order.len());
        for pos in 0..first {
            if round.left() > 0 {
                let ix = round.order[pos];
                fit.choose(&mut round, ix);
            }
        }
        let rest = first as u32..round.order.len() as u32;
        fit.fill(&mut round, rest);
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

    state_is_a_field!();
}
