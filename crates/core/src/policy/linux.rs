//! `linux`: all tasks run, and the kernel schedules them. The baseline of every paper; counters are still read each
//! quantum.

use super::prelude::*;
use crate::topology::CpuSet;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "linux",
    gist: "everything runs, the kernel decides who runs where",
    source: "baseline",
    for_research: false,
    time_shares: true,
    kernel_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S],
    needs: &|_| {
        vec![wanted(
            Capability::Affinity,
            "jobs may use every CPU that the caller may",
        )]
    },
    build: &|params| {
        each_quantum(params, Snapshot::is_quantum_end, |snap, end, _| {
            decide(snap, end)
        })
    },
};

fn decide(snap: &Snapshot, end: Nanos) -> Decision {
    Decision {
        changes: share_all_cpus(snap),
        next_wake: Some(end),
        ..Decision::default()
    }
}

/// Lets each new task run on all CPUs that it may use.
pub(super) fn share_all_cpus(snap: &Snapshot) -> Vec<Change> {
    let all = snap.machine.all_cpus();
    snap.tasks
        .iter()
        .filter(|task| task.running.is_none() && task.control.place)
        .map(|task| share_cpus(task, &all))
        .collect()
}

/// Lets a task run on all of these CPUs that it may use.
pub(super) fn share_cpus(task: &TaskView, cpus: &CpuSet) -> Change {
    Change::Place {
        task: task.id,
        placement: Placement::Shared {
            mask: task.usable(cpus),
        },
        lease_end: None,
        purpose: Purpose::Run,
    }
}
