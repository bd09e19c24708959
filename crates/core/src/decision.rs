//! A policy's answer: a list of changes. A task without a change stays as it is.
//!
//! A decision is applied as a whole, and the resulting state must be valid. So two tasks swap CPUs by two placements in
//! one decision.

use crate::bus_admission::BusAdmission;
use crate::device::Device;
use crate::listed::one_of_each;
use crate::placement::{Placement, Purpose};
use crate::task::TaskId;
use crate::units::{Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};

/// A change of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Run the task here: start, thaw or move it, or renew its lease.
    Place {
        /// The task to run.
        task: TaskId,
        /// Its CPUs, exclusive or shared.
        placement: Placement,
        /// When its lease ends and the policy is asked again; `None`: no end.
        lease_end: Option<Nanos>,
        /// Purpose of the placement.
        #[serde(default)]
        purpose: Purpose,
    },
    /// Freeze the task.
    Stop {
        /// The task to freeze.
        task: TaskId,
    },
}

impl Change {
    /// The task that changes.
    pub fn task(&self) -> TaskId {
        match self {
            Change::Place { task, .. } | Change::Stop { task } => *task,
        }
    }
}

fn is_nothing(milli: &u64) -> bool {
    *milli == 0
}

/// Why a task waits, with the numbers behind the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case", tag = "why")]
#[strum(serialize_all = "kebab-case")]
pub enum WaitReason {
    /// Tasks earlier in the policy's order hold all CPUs.
    Order {
        /// Number of waiting tasks before it.
        ahead: u32,
    },
    /// Other tasks fit the remaining bandwidth better (Feliu et al., FITNESS).
    Fitness {
        /// Its reads from memory per CPU.
        bandwidth: Rate,
        /// The target bandwidth per CPU when the last CPU was filled.
        wanted: Rate,
    },
    /// Its progress is too close to the maximum (Perf&Fair, Algorithm 1).
    Ahead {
        /// Its progress in thousandths of a quantum.
        progress_milli: u64,
        /// The greatest progress in thousandths of a quantum.
        max_progress_milli: u64,
    },
    /// A task is being measured in low contention, and this one would disturb it.
    Heavy {
        /// Its accesses to the last-level cache; absent where they can't be counted.
        llc: Reading<Rate>,
        /// Upper limit for a light task.
        llc_limit: Rate,
        /// Its reads from memory; absent where they can't be counted.
        mm: Reading<Rate>,
        /// Upper limit for a light task.
        mm_limit: Rate,
    },
    /// A task is being measured in low contention, and this one has not been measured yet.
    Unmeasured,
    /// These tasks are being measured, and this one would disturb them.
    Measuring {
        /// The first of them.
        task: TaskId,
    },
    /// It is too far ahead of the others to run, even on a CPU that no other task can use well (`even`).
    Lead {
        /// Its progress in thousandths of a quantum.
        progress_milli: u64,
        /// The progress limit for candidates, in thousandths of a quantum.
        limit_milli: u64,
    },
    /// It would slow the others by more than it gains, or other tasks gain more (`even`).
    Outweighed {
        /// The value of its own speed beside the running tasks: weight x speed, in thousandths.
        worth_milli: u64,
        /// The loss of the others in caches and memory, in the same unit.
        loss_milli: u64,
        /// The cost of its core's power, in the same unit; 0 where power does not count.
        #[serde(default, skip_serializing_if = "is_nothing")]
        power_milli: u64,
    },
    /// It needs more CPUs at once than are free.
    Gang {
        /// CPUs needed.
        needs: u32,
        /// CPUs free.
        free: u32,
    },
    /// It needs more memory than a node with room has left.
    Memory {
        /// Bytes needed.
        needs: u64,
        /// The most bytes left on a node.
        free: u64,
    },
    /// None of the CPUs that it may use is free.
    Affinity,
    /// It is expected to end after the machine is taken away, so it does not start in this run.
    NoTime {
        /// Its expected time.
        expected: Nanos,
        /// Time until then.
        left: Nanos,
    },
    /// It needs more CPUs at once than any node has that is left, so it does not start in this run.
    TooWide {
        /// CPUs needed.
        needs: u32,
        /// CPUs of the widest node.
        most: u32,
    },
    /// It does not fit on the memory bus, or on a device, beside the running tasks: energy per work would rise (EFS,
    /// Eq. 16).
    BusFull {
        /// The device; `None` for the memory bus.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
        /// Its predicted solo demand on the bus in thousandths (EFS, Eq. 20); for a gang, the demand of each of its
        /// CPUs.
        demand_milli: u32,
        /// Source of the demand.
        #[serde(default, skip_serializing_if = "DemandBasis::is_measured")]
        basis: DemandBasis,
        /// The largest demand that still fits, in thousandths (EFS, Eq. 16); 0 also if nothing fits.
        threshold_milli: u32,
        /// Predicted energy per work with it, in thousandths of a joule for each second of solo progress (EFS, Eq. 14).
        energy_with_mj: u64,
        /// Predicted energy per work without it, in the same unit.
        energy_without_mj: u64,
    },
    /// It did not fit when it was tried, but fits beside the tasks that were chosen after it (`efs`). The next decision
    /// tries it again.
    FitsNow,
}

impl WaitReason {
    /// Whether the policy holds the task back although a CPU may be free, because it would disturb others.
    pub fn is_deliberate(&self) -> bool {
        match self {
            WaitReason::Heavy { .. }
            | WaitReason::Unmeasured
            | WaitReason::Measuring { .. }
            | WaitReason::Lead { .. }
            | WaitReason::Outweighed { .. }
            | WaitReason::BusFull { .. }
            | WaitReason::FitsNow => true,
            WaitReason::Order { .. }
            | WaitReason::Fitness { .. }
            | WaitReason::Ahead { .. }
            | WaitReason::Gang { .. }
            | WaitReason::Memory { .. }
            | WaitReason::NoTime { .. }
            | WaitReason::TooWide { .. }
            | WaitReason::Affinity => false,
        }
    }
}

one_of_each! {
    WaitReason {
        Order { ahead: 1 },
        Fitness { bandwidth: Rate(41_200), wanted: Rate(3_540) },
        Ahead { progress_milli: 12_345, max_progress_milli: 12_900 },
        Heavy {
            llc: Reading::Value(Rate(30_100)),
            llc_limit: Rate(19_000),
            mm: Reading::Value(Rate(1_000)),
            mm_limit: Rate(3_500),
        },
        Unmeasured,
        Measuring { task: TaskId(3) },
        Lead { progress_milli: 12_345, limit_milli: 11_900 },
        Outweighed { worth_milli: 480, loss_milli: 120, power_milli: 400 },
        Gang { needs: 4, free: 1 },
        Memory { needs: 4_000_000_000, free: 1_500_000_000 },
        Affinity,
        NoTime { expected: Nanos(90_000_000_000), left: Nanos(20_000_000_000) },
        TooWide { needs: 4, most: 2 },
        BusFull { device: None, demand_milli: 600, basis: DemandBasis::Measured, threshold_milli: 399, energy_with_mj: 47_900, energy_without_mj: 43_840 },
        FitsNow,
    }
}

/// Source of a task's demand on the memory bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemandBasis {
    /// Counted.
    #[default]
    Measured,
    /// Stated by the user.
    Given,
    /// Assumed, for tasks without any data.
    Assumed,
}

impl DemandBasis {
    fn is_measured(&self) -> bool {
        *self == DemandBasis::Measured
    }
}

/// A waiting task and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The task that waits.
    pub task: TaskId,
    /// Why it waits.
    pub reason: WaitReason,
}

/// The numbers behind a decision, for explanations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// The target bandwidth of the chosen tasks together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Rate>,
    /// Their predicted bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Rate>,
    /// The task whose solo measurement this decision serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measures: Option<TaskId>,
}

/// A policy's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The changes, at most one for each task.
    pub changes: Vec<Change>,
    /// Every task that waits after this decision, with its reason.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// Deadline for the next decision; `None`: the next event.
    pub next_wake: Option<Nanos>,
    /// The numbers behind the decision.
    #[serde(default)]
    pub basis: Basis,
    /// New demands on the memory bus, for backends that fill CPUs by themselves; `None` keeps the last ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<BusAdmission>,
}
