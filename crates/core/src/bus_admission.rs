//! Admission to the memory bus as data: a backend can decide by itself whether one more task fits.

use crate::task::TaskId;
use serde::{Deserialize, Serialize};

/// Admission to the memory bus in integers (EFS, Eq. 16), in the form that
/// [`BusAdmissionTable::ceiling`](crate::model::bus_admission_table::BusAdmissionTable::ceiling) evaluates without division.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusAdmission {
    /// Each task's demand on the bus, in ascending order of the tasks. An unlisted task has no demand.
    pub demands: Vec<Demand>,
    /// The factor by which the throughput of a memory domain must grow when a task wakes core number 2, 3, ..., as
    /// [`Gain::number`](crate::model::bus_admission_table::Gain::number). On a core that is already awake, a task must only
    /// not lower the throughput.
    pub gains: Vec<u32>,
}

/// A task's predicted solo demand on the memory bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// The task with this demand.
    pub task: TaskId,
    /// The demand class of each of its CPUs, as
    /// [`DemandClass::number`](crate::model::bus_admission_table::DemandClass::number).
    pub class: u16,
}
