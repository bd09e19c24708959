//! What a policy answers: a change against what runs; what it does not name stays as it is.
//!
//! A decision is applied as a whole. It is judged by the state that it leads to, so a swap of two tasks is simply two
//! placements in one decision.

use crate::listed::{listed_enum, one_of_each};
use crate::snapshot::{Snapshot, TaskView};
use crate::task::TaskId;
use crate::topology::{CpuId, CpuSet};
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

/// Where a task runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// It alone has these CPUs, as many as it needs (several for a gang).
    Exclusive {
        /// Its CPUs.
        cpus: CpuSet,
        /// Their cores' other CPUs are kept idle.
        whole_core: bool,
    },
    /// The kernel time-shares it with others on these CPUs.
    Shared {
        /// The CPUs that it may use.
        mask: CpuSet,
    },
}

impl Placement {
    /// The CPUs that the task may run on.
    pub fn cpus(&self) -> &CpuSet {
        match self {
            Placement::Exclusive { cpus, .. } => cpus,
            Placement::Shared { mask } => mask,
        }
    }
}

listed_enum! {
    /// What a placement is for; it comes back in the sample.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Purpose {
        /// To get work done.
        #[default]
        Run,
        /// To measure it in low contention, as an estimate of its behaviour alone.
        MeasureAlone,
        /// To fill a CPU beside such a measurement without spoiling it.
        LowContention,
    }
}

/// One task's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Run it here: starts it, thaws it, moves it, or renews its lease where it is.
    Place {
        /// The task.
        task: TaskId,
        /// Where.
        placement: Placement,
        /// Until when; `None` until further notice.
        lease_end: Option<Nanos>,
        /// What for.
        purpose: Purpose,
    },
    /// Freeze it.
    Stop {
        /// The task.
        task: TaskId,
    },
}

impl Change {
    /// The task that the change is about.
    pub fn task(&self) -> TaskId {
        match self {
            Change::Place { task, .. } | Change::Stop { task } => *task,
        }
    }
}

/// Why a task waits, with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum WaitReason {
    /// All CPUs are taken by tasks that come before it in the policy's order.
    Order {
        /// How many waiting tasks come before it.
        ahead: u32,
    },
    /// Others fit the bandwidth that was left better (Feliu et al., FITNESS).
    Fitness {
        /// Its reads from memory per CPU.
        bandwidth: Rate,
        /// The bandwidth per CPU that was wanted when the last CPU was filled.
        wanted: Rate,
    },
    /// It is ahead of the others: its progress is too near the greatest (Perf&Fair, Algorithm 1).
    Ahead {
        /// Its progress in thousandths of a quantum.
        progress_milli: u64,
        /// The greatest progress in thousandths of a quantum.
        max_progress_milli: u64,
    },
    /// A task is being measured in low contention, and this one would disturb it.
    Heavy {
        /// Its accesses to the last-level cache.
        llc: Rate,
        /// The most that counts as light.
        llc_limit: Rate,
        /// Its reads from memory.
        mm: Rate,
        /// The most that counts as light.
        mm_limit: Rate,
    },
    /// A task is being measured in low contention, and nothing is known of this one.
    Unmeasured,
    /// It needs more CPUs at once than are free.
    Gang {
        /// CPUs that it needs.
        needs: u32,
        /// CPUs that are free.
        free: u32,
    },
    /// None of the CPUs that it may use is free.
    Affinity,
    /// It does not fit the memory bus beside what runs: a piece of work would cost more energy with it than without
    /// (EFS, Eq. 16).
    BusFull {
        /// Its predicted solo demand on the bus in thousandths (EFS, Eq. 20); a gang's for each of its CPUs.
        demand_milli: u32,
        /// The greatest demand that still fitted, in thousandths (EFS, Eq. 16); 0 also when nothing fitted.
        threshold_milli: u32,
        /// Predicted energy per work with it, in thousandths of a joule for each second of solo progress (EFS, Eq. 14).
        energy_with_mj: u64,
        /// The same without it.
        energy_without_mj: u64,
    },
}

one_of_each! {
    WaitReason {
        Order { ahead: 1 },
        Fitness { bandwidth: Rate(41_200), wanted: Rate(3_540) },
        Ahead { progress_milli: 12_345, max_progress_milli: 12_900 },
        Heavy { llc: Rate(30_100), llc_limit: Rate(19_000), mm: Rate(1_000), mm_limit: Rate(3_500) },
        Unmeasured,
        Gang { needs: 4, free: 1 },
        Affinity,
        BusFull { demand_milli: 600, threshold_milli: 399, energy_with_mj: 47_900, energy_without_mj: 43_840 },
    }
}

/// A waiting task and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: WaitReason,
}

/// Parameters that a backend applies by itself at every event until the next decision; the form that a kernel
/// back-end needs, where a question at every wake-up would cost too much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The greatest solo demand, in 1/1024 of the bus, that still fits when the total utilisation of the bus (EFS's `U`)
    /// is the index in 1/1024: 1,025 entries.
    pub threshold: Vec<u16>,
    /// Per task its demand, weight and class.
    pub tasks: Vec<StandingTask>,
}

/// One task's standing parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingTask {
    /// The task.
    pub task: TaskId,
    /// Its solo demand on the memory bus in 1/1024.
    pub demand: u16,
    /// Its weight, 1024 for nice 0.
    pub weight: u32,
    /// Its class: the meaning is the policy's.
    pub class: u8,
}

/// The numbers that a decision was made with, for explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// The bandwidth that the chosen tasks should use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Rate>,
    /// The bandwidth that they are predicted to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Rate>,
    /// The decision serves the measurement of this task alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measures: Option<TaskId>,
}

/// A policy's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What changes.
    pub changes: Vec<Change>,
    /// Every task that waits after it, and why.
    pub waits: Vec<Wait>,
    /// When to ask again at the latest; `None`: when something happens.
    pub next_wake: Option<Nanos>,
    /// The numbers behind it.
    #[serde(default)]
    pub basis: Basis,
    /// New standing parameters; `None` leaves the last ones in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
}

/// A decision that can't be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDecision {
    /// The task is not in the snapshot.
    #[error("task {0} is unknown or has ended")]
    UnknownTask(TaskId),
    /// The task is named by two changes.
    #[error("task {0} is named twice")]
    NamedTwice(TaskId),
    /// What the decision asks may not be done to the task.
    #[error("task {0} may not be placed or frozen")]
    NotAllowed(TaskId),
    /// A CPU that may not be used, by the machine or by the task.
    #[error("task {task} may not use CPU {}", cpu.0)]
    Cpu {
        /// The task.
        task: TaskId,
        /// The CPU.
        cpu: CpuId,
    },
    /// An exclusive placement with another number of CPUs than the task needs, or an empty mask.
    #[error("task {task} needs {needs} CPUs and is given {given}")]
    WrongSize {
        /// The task.
        task: TaskId,
        /// CPUs that it needs.
        needs: u32,
        /// CPUs that it is given.
        given: usize,
    },
    /// Two tasks would have the same CPU, or one that must be kept idle.
    #[error("tasks {a} and {b} would collide on CPU {}", cpu.0)]
    Collision {
        /// One task.
        a: TaskId,
        /// The other.
        b: TaskId,
        /// The CPU.
        cpu: CpuId,
    },
    /// A lease or wake-up that is already over.
    #[error("a lease or wake-up at {} s is not after now, {} s", at.as_s(), now.as_s())]
    Past {
        /// The instant asked for.
        at: Nanos,
        /// Now.
        now: Nanos,
    },
    /// Nothing runs, nothing was asked to wake the loop, and tasks wait.
    #[error("nothing would run and nothing would wake the loop, while {0} tasks wait")]
    Stalled(usize),
}

/// Checks a decision against the snapshot that it answers, in O(tasks + CPUs).
///
/// # Errors
/// The first thing found that can't be carried out. Nothing of an invalid decision is applied.
pub fn check(snapshot: &Snapshot, decision: &Decision) -> Result<(), InvalidDecision> {
    let machine = &snapshot.machine;
    let now = snapshot.now;
    if let Some(at) = decision.next_wake
        && at <= now
    {
        return Err(InvalidDecision::Past { at, now });
    }
    // After-state: for each task of the snapshot, where it will be.
    let mut after: Vec<Option<&Placement>> =
        snapshot.tasks.iter().map(|task| task.running.as_ref().map(|running| &running.placement)).collect();
    let mut named = vec![false; snapshot.tasks.len()];
    for change in &decision.changes {
        let id = change.task();
        let ix =
            snapshot.tasks.binary_search_by_key(&id, |task| task.id).map_err(|_| InvalidDecision::UnknownTask(id))?;
        if std::mem::replace(&mut named[ix], true) {
            return Err(InvalidDecision::NamedTwice(id));
        }
        let task = &snapshot.tasks[ix];
        match change {
            Change::Place { placement, lease_end, .. } => {
                if let Some(at) = *lease_end
                    && at <= now
                {
                    return Err(InvalidDecision::Past { at, now });
                }
                check_placement(snapshot, task, placement)?;
                after[ix] = Some(placement);
            }
            Change::Stop { .. } => {
                if !task.control.freeze {
                    return Err(InvalidDecision::NotAllowed(id));
                }
                after[ix] = None;
            }
        }
    }
    // Exclusive CPUs first, then those that whole-core tasks want idle.
    let mut owner: Vec<Option<TaskId>> = vec![None; machine.cpus.len()];
    let placed = || snapshot.tasks.iter().zip(&after).filter_map(|(task, at)| at.map(|at| (task.id, at)));
    for (id, placement) in placed() {
        if let Placement::Exclusive { cpus, .. } = placement {
            for cpu in cpus.iter() {
                let Some(ix) = machine.index_of(cpu) else { continue };
                if let Some(other) = owner[ix].replace(id) {
                    return Err(InvalidDecision::Collision { a: other, b: id, cpu });
                }
            }
        }
    }
    for (id, placement) in placed() {
        if let Placement::Exclusive { cpus, whole_core: true } = placement {
            for cpu in cpus.iter().filter_map(|cpu| machine.index_of(cpu)) {
                for sibling in machine.cores[machine.cpus[cpu].core].iter() {
                    let other = machine.index_of(sibling).and_then(|ix| owner[ix]);
                    if let Some(other) = other.filter(|&other| other != id) {
                        return Err(InvalidDecision::Collision { a: id, b: other, cpu: sibling });
                    }
                }
            }
        }
    }
    let ready = snapshot.tasks.iter().filter(|task| !task.asleep).count();
    if ready > 0 && decision.next_wake.is_none() && after.iter().all(Option::is_none) {
        return Err(InvalidDecision::Stalled(ready));
    }
    Ok(())
}

fn check_placement(snapshot: &Snapshot, task: &TaskView, placement: &Placement) -> Result<(), InvalidDecision> {
    if !task.control.place {
        return Err(InvalidDecision::NotAllowed(task.id));
    }
    let given = placement.cpus().len();
    let size_ok = match placement {
        Placement::Exclusive { .. } => given == task.cpus as usize,
        Placement::Shared { .. } => given > 0,
    };
    if !size_ok {
        return Err(InvalidDecision::WrongSize { task: task.id, needs: task.cpus, given });
    }
    for cpu in placement.cpus().iter() {
        let allowed = task.allowed.as_ref().is_none_or(|mask| mask.contains(cpu));
        if !allowed || snapshot.machine.index_of(cpu).is_none() {
            return Err(InvalidDecision::Cpu { task: task.id, cpu });
        }
    }
    Ok(())
}
