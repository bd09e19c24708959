//! Whether a decision can be carried out, judged by the state that results from it.

use crate::decision::{Change, Decision};
use crate::placement::Placement;
use crate::snapshot::{Snapshot, TaskView};
use crate::task::TaskId;
use crate::topology::{CpuId, Machine, Node, node_of};
use crate::units::Nanos;

/// A decision that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDecision {
    /// The task is not in the snapshot.
    #[error("task {0} is unknown or has ended")]
    UnknownTask(TaskId),
    /// Two changes name the task.
    #[error("task {0} is named twice")]
    NamedTwice(TaskId),
    /// The task may not be placed, or may not be frozen.
    #[error("task {0} may not be placed or frozen")]
    NotAllowed(TaskId),
    /// The machine has no such usable CPU, or the task may not use it.
    #[error("task {task} may not use CPU {}", cpu.0)]
    Cpu {
        /// The task that would be placed.
        task: TaskId,
        /// The CPU that it may not use.
        cpu: CpuId,
    },
    /// An exclusive placement has more or fewer CPUs than the task needs, or a mask is empty.
    #[error("task {task} needs {needs} CPUs and is given {given}")]
    WrongSize {
        /// The task that would be placed.
        task: TaskId,
        /// CPUs needed.
        needs: u32,
        /// CPUs given.
        given: usize,
    },
    /// The task would run on several nodes, or move to another node.
    #[error("task {0} would not stay on one node")]
    Nodes(TaskId),
    /// Two tasks would have the same CPU, or a task would run on a CPU that another needs idle.
    #[error("tasks {a} and {b} would collide on CPU {}", cpu.0)]
    Collision {
        /// One task.
        a: TaskId,
        /// The other task.
        b: TaskId,
        /// The CPU on which they collide.
        cpu: CpuId,
    },
    /// A lease or wake-up is not after now.
    #[error("a lease or wake-up at {} s is not after now, {} s", at.as_s(), now.as_s())]
    Past {
        /// The requested instant.
        at: Nanos,
        /// The time of the decision.
        now: Nanos,
    },
    /// Nothing would run and no wake-up is due, while tasks wait.
    #[error("nothing would run and nothing would wake the loop, while {0} tasks wait")]
    Stalled(usize),
}

/// Checks a decision against the snapshot that it answers, in O(tasks + CPUs).
///
/// # Errors
/// The first fault found. No part of an invalid decision is applied.
pub fn check(snapshot: &Snapshot, decision: &Decision) -> Result<(), InvalidDecision> {
    check_future(snapshot, decision.next_wake)?;
    let places = check_changes(snapshot, decision)?;
    if !may_collide_or_stall(decision) {
        return Ok(());
    }
    let after = placements_after(snapshot, decision, &places);
    check_collisions(snapshot, &after)?;
    let ready = snapshot.tasks.iter().filter(|task| !task.asleep).count();
    if ready > 0 && decision.next_wake.is_none() && after.iter().all(Option::is_none) {
        return Err(InvalidDecision::Stalled(ready));
    }
    Ok(())
}

fn check_future(snapshot: &Snapshot, at: Option<Nanos>) -> Result<(), InvalidDecision> {
    let now = snapshot.now;
    match at {
        Some(at) if at <= now => Err(InvalidDecision::Past { at, now }),
        _ => Ok(()),
    }
}

/// Whether the other tasks matter: some change is exclusive, or something may have to wake the loop.
fn may_collide_or_stall(decision: &Decision) -> bool {
    let mut runs = decision.next_wake.is_some();
    for change in &decision.changes {
        if let Change::Place { placement, .. } = change {
            if matches!(placement, Placement::Exclusive { .. }) {
                return true;
            }
            runs = true;
        }
    }
    !runs
}

/// Checks each change by itself, and returns the index of its task.
fn check_changes(snapshot: &Snapshot, decision: &Decision) -> Result<Vec<usize>, InvalidDecision> {
    let mut places = Vec::with_capacity(decision.changes.len());
    for change in &decision.changes {
        let id = change.task();
        let ix = snapshot
            .position(id)
            .ok_or(InvalidDecision::UnknownTask(id))?;
        let task = &snapshot.tasks[ix];
        match change {
            Change::Place {
                placement,
                lease_end,
                ..
            } => {
                check_future(snapshot, *lease_end)?;
                check_placement(snapshot, task, placement)?;
            }
            Change::Stop { .. } if task.control.freeze => {}
            Change::Stop { .. } => return Err(InvalidDecision::NotAllowed(id)),
        }
        places.push(ix);
    }
    let mut sorted = places.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(InvalidDecision::NamedTwice(snapshot.tasks[pair[0]].id)),
        None => Ok(places),
    }
}

/// Each task's placement after the decision. `places` has the indices of the tasks that it changes.
fn placements_after<'a>(
    snapshot: &'a Snapshot,
    decision: &'a Decision,
    places: &[usize],
) -> Vec<Option<&'a Placement>> {
    let mut after: Vec<Option<&Placement>> = snapshot
        .tasks
        .iter()
        .map(|task| task.running.as_ref().map(|running| &running.placement))
        .collect();
    for (change, &ix) in decision.changes.iter().zip(places) {
        after[ix] = match change {
            Change::Place { placement, .. } => Some(placement),
            Change::Stop { .. } => None,
        };
    }
    after
}

/// Checks that no CPU has two exclusive tasks, and that the siblings of whole-core tasks are idle.
fn check_collisions(
    snapshot: &Snapshot,
    after: &[Option<&Placement>],
) -> Result<(), InvalidDecision> {
    let machine = &snapshot.machine;
    let mut owner: Vec<Option<TaskId>> = vec![None; machine.cpus.len()];
    let mut whole_cores = Vec::new();
    for (task, placement) in snapshot.tasks.iter().zip(after) {
        let Some(Placement::Exclusive { cpus, whole_core }) = placement else {
            continue;
        };
        for cpu in cpus.iter() {
            let Some(ix) = machine.index_of(cpu) else {
                continue;
            };
            if let Some(a) = owner[ix].replace(task.id) {
                return Err(InvalidDecision::Collision { a, b: task.id, cpu });
            }
            if *whole_core {
                whole_cores.push((task.id, machine.cpus[ix].core));
            }
        }
    }
    for (a, core) in whole_cores {
        for cpu in machine.cores[core].iter() {
            let other = machine.index_of(cpu).and_then(|ix| owner[ix]);
            if let Some(b) = other.filter(|&other| other != a) {
                return Err(InvalidDecision::Collision { a, b, cpu });
            }
        }
    }
    Ok(())
}

fn stays_on_a_node(machine: &Machine, task: &TaskView, placement: &Placement) -> bool {
    let node = node_of(&machine.nodes, placement.cpus());
    node.is_some_and(|Node { cpus, .. }| {
        placement.cpus().is_subset(cpus) && task.last_cpus.is_subset(cpus)
    })
}

fn check_placement(
    snapshot: &Snapshot,
    task: &TaskView,
    placement: &Placement,
) -> Result<(), InvalidDecision> {
    if !task.control.place {
        return Err(InvalidDecision::NotAllowed(task.id));
    }
    let given = placement.cpus().len();
    let size_ok = match placement {
        Placement::Exclusive { .. } => given == task.cpus as usize,
        Placement::Shared { .. } => given > 0,
    };
    if !size_ok {
        return Err(InvalidDecision::WrongSize {
            task: task.id,
            needs: task.cpus,
            given,
        });
    }
    if !snapshot.machine.nodes.is_empty() && !stays_on_a_node(&snapshot.machine, task, placement) {
        return Err(InvalidDecision::Nodes(task.id));
    }
    for cpu in placement.cpus().iter() {
        if !task.may_use(cpu) || snapshot.machine.index_of(cpu).is_none() {
            return Err(InvalidDecision::Cpu { task: task.id, cpu });
        }
    }
    Ok(())
}
