//! Faults that a test injects into a simulation.

use cosched_core::{CpuId, Exit, Nanos, TaskId};

/// A fault and its instant.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its instant, in simulated time.
    pub at: Nanos,
    /// The fault.
    pub what: FaultKind,
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// No counter can be read any more, for the rest of the run.
    CountersVanish,
    /// All counters start again from zero.
    CountersWrap,
    /// From now on the counters count too much or too little.
    CountersLie {
        /// Events counted for each event that happened; a negative number counts as 0.
        factor: f64,
    },
    /// A CPU goes offline; the threads on it move to other CPUs.
    CpuOffline(CpuId),
    /// A CPU comes back online.
    CpuOnline(CpuId),
    /// The scheduler that carries out plans is removed. Every started task may then run on every CPU.
    SchedulerEjected {
        /// The reason, in words.
        why: String,
    },
    /// A task ends early.
    JobDies {
        /// The task that ends.
        task: TaskId,
        /// How it ends.
        exit: Exit,
    },
}
