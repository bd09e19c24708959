//! What a policy answers: a change against what runs; what it does not name stays as it is.
//!
//! A decision is applied as a whole. It is judged by the state that it leads to, so a swap of two tasks is simply two
//! placements in one decision.

use crate::admission::Admission;
use crate::listed::one_of_each;
use crate::placement::{Placement, Purpose};
use crate::task::TaskId;
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

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
    /// New demands on the memory bus, for backends that fill CPUs by themselves; `None` leaves the last ones in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
}
