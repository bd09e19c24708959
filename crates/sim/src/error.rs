//! Errors that stop a simulation.

use cosched_core::{CpuSet, Nanos};

/// An error that stops a simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A list of CPUs that is empty, or that names a CPU which the machine lacks.
    #[error("the simulated machine `{machine}` has the CPUs {have}, not {asked}")]
    NoSuchCpu {
        /// The machine's name.
        machine: String,
        /// All CPUs of the machine.
        have: CpuSet,
        /// The requested CPUs.
        asked: CpuSet,
    },
    /// A job without work, or that needs no CPU; its index.
    #[error("job {0} has no work, or needs no CPU")]
    NoWork(usize),
    /// Nothing runs any more, and nothing will change that.
    #[error("nothing runs at {} s of simulated time, and no event is left that could change that", .0.as_s())]
    Stuck(Nanos),
    /// Cancelled by the caller.
    #[error("interrupted while the jobs were simulated alone; nothing was run")]
    Interrupted,
}
