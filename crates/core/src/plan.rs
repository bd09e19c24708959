//! Plans: instructions that a backend carries out by itself, at every event, until the next plan.
//!
//! Between two decisions a CPU would be idle when its task sleeps or ends early, because each question to a policy
//! costs a round trip to user space. A plan tells a backend in advance how to fill the CPU. It is plain data with a
//! generation number. A kernel-side scheduler adopts it as a whole, and reports what really ran as
//! [`Residency`](crate::Residency).

use crate::bus_admission::BusAdmission;
use crate::decision::{Wait, WaitReason};
use crate::placement::{Placement, Purpose};
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::topology::CpuSet;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// A backend's instructions, from the adoption of this plan to the adoption of the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Rises with each plan of a run, from 1. A backend rejects a plan that is not newer than the last adopted one.
    pub generation: u64,
    /// The instructions.
    pub payload: Payload,
}

/// The kinds of plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// A schedule.
    Schedule(Schedule),
}

/// A schedule: which task runs where and until when, and which tasks fill in.
///
/// A task without a seat waits, unless it fills in. A filler takes the CPU of an exclusive seat whose task sleeps or
/// has ended, or whose time is up. The filler gives the CPU back at once when the seat's task wakes. Whole-core seats
/// are not filled: they serve a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The placements.
    pub seats: Vec<Seat>,
    /// Waiting tasks of one CPU that have run before, in the policy's order.
    pub fillers: Vec<Filler>,
    /// Unallocated CPUs; `None` if there are none, or no task may use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<Spare>,
    /// The condition for admitting a filler; `None` for no condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<BusAdmission>,
}

/// A place in a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The task that owns it.
    pub task: TaskId,
    /// Its CPUs, exclusive or shared.
    pub placement: Placement,
    /// When the seat ends; `None`: at the next plan.
    pub until: Option<Nanos>,
}

/// A task that may fill an empty seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filler {
    /// The waiting task.
    pub task: TaskId,
    /// The CPUs that it may use; `None` for all.
    pub allowed: Option<CpuSet>,
}

/// CPUs that have no seat and are not kept idle on purpose, and the tasks of measured width that may use them beside
/// their own CPUs. Where decisions are applied one by one, these tasks get the spare CPUs too. A simulated task has
/// exactly its stated number of threads, so it needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spare {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The tasks, each with the CPUs that it may use.
    pub tasks: Vec<Filler>,
}

impl Schedule {
    /// The schedule that a decision leads to. `after` is the state after the decision; `waits` are the decision's
    /// waits, in the policy's order.
    ///
    /// While a task is measured in low contention, no task fills in: idle CPUs are part of the measurement. Tasks that
    /// wait because they are ahead fill in last, the least ahead first.
    pub fn of(
        after: &Snapshot,
        waits: &[Wait],
        admission: Option<BusAdmission>,
        spare: Option<Spare>,
    ) -> Schedule {
        let mut seats = Vec::new();
        let mut measures = false;
        for task in &after.tasks {
            let Some(running) = &task.running else {
                continue;
            };
            measures |= running.purpose != Purpose::Run;
            seats.push(Seat {
                task: task.id,
                placement: running.placement.clone(),
                until: running.lease_end,
            });
        }
        let mut fillers = Vec::new();
        if !measures {
            let mut waits: Vec<&Wait> = waits.iter().collect();
            waits.sort_by_key(|wait| lead(wait.reason));
            fillers.extend(waits.into_iter().filter_map(|wait| filler(after, wait)));
        }
        Schedule {
            seats,
            fillers,
            spare,
            admission,
        }
    }

    /// Whether another task may fill the seat.
    pub fn can_be_filled(seat: &Seat) -> bool {
        matches!(
            seat.placement,
            Placement::Exclusive {
                whole_core: false,
                ..
            }
        )
    }
}

/// The task's lead in progress, if it waits because of that.
fn lead(reason: WaitReason) -> Option<u64> {
    match reason {
        WaitReason::Ahead { progress_milli, .. } => Some(progress_milli),
        _ => None,
    }
}

/// The waiting task, if it may fill in.
fn filler(after: &Snapshot, wait: &Wait) -> Option<Filler> {
    let task = after.task(wait.task)?;
    // A task that has never run must be started first, which a kernel cannot do.
    let can =
        task.cpus == 1 && task.control.place && task.control.freeze && !task.last_cpus.is_empty();
    let may = !matches!(
        wait.reason,
        WaitReason::Heavy { .. } | WaitReason::Unmeasured
    );
    (can && may && task.running.is_none()).then(|| Filler {
        task: task.id,
        allowed: task.allowed.clone(),
    })
}
