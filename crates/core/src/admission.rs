//! Admission to the memory bus as data: what a backend needs to judge by itself whether one more task fits.

use crate::task::TaskId;
use serde::{Deserialize, Serialize};

/// Admission to the memory bus in integers (EFS, Eq. 16), in the form that
/// [`AdmissionTable::ceiling`](crate::model::admission_table::AdmissionTable::ceiling) answers without division.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// What each task asks of the bus, in ascending order of the tasks. One that is not named asks for nothing.
    pub demands: Vec<Demand>,
    /// The factor by which the throughput of a memory domain must grow for a task that wakes its core number 2, 3, ...,
    /// as [`Gain::number`](crate::model::admission_table::Gain::number). A task on a core that is awake already must only
    /// not lower it.
    pub gains: Vec<u32>,
}

/// A task's predicted solo demand on the memory bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Whose.
    pub task: TaskId,
    /// [`DemandClass::number`](crate::model::admission_table::DemandClass::number), for each of its CPUs.
    pub class: u16,
}
