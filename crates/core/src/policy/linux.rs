//! `linux`: everything runs, the kernel decides. The baseline of every paper; counters are still read each quantum.

use super::params::QUANTUM_S;
use super::{Policy, PolicyEntry, QuantumEnd, state_is_a_field, wanted};
use crate::capability::Capability;
use crate::decision::{Change, Decision};
use crate::placement::{Placement, Purpose};
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "linux",
    gist: "everything runs, the kernel decides who runs where",
    source: "baseline",
    time_shares: true,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| {
        vec![wanted(
            Capability::Affinity,
            "jobs may use every CPU that the caller may",
        )]
    },
    build: |params| {
        Box::new(Linux {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: QuantumEnd::default(),
        })
    },
};

struct Linux {
    quantum: Nanos,
    state: QuantumEnd,
}

impl Policy for Linux {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let end = self
            .state
            .after(snap.now, snap.is_quantum_end(), self.quantum);
        let all = snap.machine.all_cpus();
        let idle = snap
            .tasks
            .iter()
            .filter(|task| task.running.is_none() && task.control.place);
        Decision {
            changes: idle.map(|task| share(task, &all)).collect(),
            next_wake: Some(end),
            ..Decision::default()
        }
    }

    state_is_a_field!();
}

/// Lets a task run on all CPUs that it may use.
pub(super) fn share(task: &crate::TaskView, all: &crate::CpuSet) -> Change {
    let mask = match &task.allowed {
        Some(allowed) => allowed.intersection(all),
        None => all.clone(),
    };
    Change::Place {
        task: task.id,
        placement: Placement::Shared { mask },
        lease_end: None,
        purpose: Purpose::Run,
    }
}
