//! Tasks that share a core move apart when another core is idle.
//!
//! Policies that give out all CPUs anew do this at the end of a quantum. `fifo` leaves tasks where they run: without this
//! the last tasks of a batch would share cores beside idle ones, unless they borrow spare CPUs and the kernel moves them.

use super::prelude::*;
use crate::topology::{CpuId, CpuSet, Machine};

/// The moves: for each idle core a task that shares a core of the same memory domain.
pub(super) fn move_apart(snap: &Snapshot) -> Vec<Change> {
    let machine = &*snap.machine;
    let tasks_on = tasks_on_cores(snap);
    let mut idle: Vec<&CpuSet> = machine
        .cores
        .iter()
        .zip(&tasks_on)
        .filter(|(_, tasks)| tasks.is_empty())
        .map(|(core, _)| core)
        .collect();
    let mut changes = Vec::new();
    for task in tasks_on.iter().flat_map(|tasks| movable(tasks)) {
        if let Some(cpu) = take_idle(&mut idle, machine, task) {
            changes.push(Change::Place {
                task: task.id,
                placement: Placement::Exclusive {
                    cpus: cpu.into(),
                    whole_core: false,
                },
                lease_end: None,
                purpose: Purpose::Run,
            });
        }
    }
    changes
}

/// The tasks that have CPUs of each core.
fn tasks_on_cores(snap: &Snapshot) -> Vec<Vec<&TaskView>> {
    let machine = &*snap.machine;
    let mut tasks_on = vec![Vec::new(); machine.cores.len()];
    for task in &snap.tasks {
        let Some(running) = &task.running else {
            continue;
        };
        for cpu in machine.cpus_in(running.placement.cpus()) {
            tasks_on[cpu.core].push(&**task);
        }
    }
    tasks_on
}

/// The tasks of a core that may leave it: all but one, which may be one that must stay. Sleeping tasks disturb nobody.
fn movable<'a>(tasks: &[&'a TaskView]) -> Vec<&'a TaskView> {
    let awake = tasks.iter().filter(|task| !task.asleep);
    let may_move =
        |task: &&TaskView| task.cpus == 1 && !task.is_fixed() && task.exclusive_cpus().is_some();
    let (mut movable, staying): (Vec<&TaskView>, Vec<&TaskView>) =
        awake.copied().partition(may_move);
    if staying.is_empty() && !movable.is_empty() {
        movable.remove(0);
    }
    movable
}

/// Takes a CPU for a task out of the idle cores of its memory domain.
fn take_idle(idle: &mut Vec<&CpuSet>, machine: &Machine, task: &TaskView) -> Option<CpuId> {
    let domain = |cpus: &CpuSet| Some(machine.cpu(cpus.first()?)?.memory_domain);
    let here = domain(task.exclusive_cpus()?);
    let at = idle
        .iter()
        .position(|core| domain(&task.usable(core)) == here)?;
    task.usable(idle.remove(at)).first()
}
