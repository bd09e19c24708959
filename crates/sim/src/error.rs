//! Why a simulation can't begin, or go on.

use cosched_core::{CpuSet, Nanos};

/// A simulation that can't begin, or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A CPU list with a CPU that is not there, or with none.
    #[error("the simulated machine `{machine}` has the CPUs {have}, and not {asked}")]
    NoSuchCpu {
        /// The machine.
        machine: String,
        /// Its CPUs.
        have: CpuSet,
        /// What was asked for.
        asked: CpuSet,
    },
    /// A job without work or without a CPU.
    #[error("job {0} has no work, or needs no CPU")]
    NoWork(usize),
    /// Nothing runs any more, and nothing will change that.
    #[error("nothing runs at {} s of simulated time, and nothing that could change that will happen", .0.as_s())]
    Stuck(Nanos),
    /// Cancelled by the caller.
    #[error("interrupted while the jobs were simulated alone; nothing was run")]
    Interrupted,
}
