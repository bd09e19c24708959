//! Things that go wrong in a simulation because a test asks for it.

use cosched_core::{CpuId, Exit, Nanos, TaskId};

/// Something goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub at: Nanos,
    /// What.
    pub what: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The counters stop answering, for good.
    CountersVanish,
    /// The counters start again from zero.
    CountersWrap,
    /// From now on the counters count this many times too much, or too little.
    CountersLie {
        /// Counted for each that happened; not negative.
        factor: f64,
    },
    /// A CPU goes offline; what ran on it goes elsewhere.
    CpuOffline(CpuId),
    /// A CPU comes back.
    CpuOnline(CpuId),
    /// What carries out plans is removed; everybody who has begun may run everywhere.
    SchedulerEjected {
        /// Why, in words.
        why: String,
    },
    /// A job dies.
    JobDies {
        /// Which.
        task: TaskId,
        /// How.
        exit: Exit,
    },
}
