//! Spare CPUs: tasks of measured width may use them beside their own.

use crate::decision::{Change, Decision};
use crate::placement::{Placement, Purpose};
use crate::snapshot::Snapshot;
use crate::topology::CpuSet;

/// The CPUs that are free after a decision and that the policy does not keep idle on purpose.
///
/// A policy keeps CPUs idle on purpose while a task waits because it would disturb the others, and while a task is
/// measured beside others. A task that runs alone has no co-runner to disturb it.
pub fn spare_cpus(snapshot: &Snapshot, decision: &Decision) -> CpuSet {
    if decision
        .waits
        .iter()
        .any(|wait| wait.reason.is_deliberate())
    {
        return CpuSet::new();
    }
    let mut after: Vec<Option<(&Placement, Purpose)>> = snapshot
        .tasks
        .iter()
        .map(|task| {
            task.running
                .as_ref()
                .map(|running| (&running.placement, running.purpose))
        })
        .collect();
    for change in &decision.changes {
        if let Some(ix) = snapshot.position(change.task()) {
            after[ix] = match change {
                Change::Place {
                    placement, purpose, ..
                } => Some((placement, *purpose)),
                Change::Stop { .. } => None,
            };
        }
    }
    let mut spare = snapshot.machine.all_cpus();
    let (mut running, mut some_is_measured) = (0, false);
    for (placement, purpose) in after.into_iter().flatten() {
        running += 1;
        spare.remove_all(placement.cpus());
        let is_whole = matches!(
            placement,
            Placement::Exclusive {
                whole_core: true,
                ..
            }
        );
        some_is_measured |= is_whole || purpose != Purpose::Run;
    }
    if some_is_measured && running > 1 {
        CpuSet::new()
    } else {
        spare
    }
}
