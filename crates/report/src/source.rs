//! Where a run takes place, and where its figures come from.

use serde::{Deserialize, Serialize};

/// The kind of backend of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// Real processes on this machine.
    Host,
    /// A simulated machine.
    Sim,
    /// Several nodes, each with a run of its own.
    Nodes,
}

/// Where an energy figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergySource {
    /// A meter of the machine.
    Measured,
    /// A power model.
    Modelled,
    /// There is no figure.
    Absent,
}

/// Where a solo time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoloSource {
    /// A run alone, made for this run.
    Measured,
    /// An earlier run's record.
    Record,
    /// A program profile.
    Profile,
    /// A simulation of the job alone on the simulated machine.
    Simulated,
}
