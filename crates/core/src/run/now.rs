//! The state of a run at an instant, for those who watch it.

use super::config::RunConfig;
use crate::decision::WaitReason;
use crate::snapshot::{ProgressBasis, Snapshot, TaskView};
use crate::task::{TaskId, TaskSpec};
use crate::topology::CpuSet;
use crate::units::{Nanos, Reading};
use std::collections::VecDeque;

/// A run at an instant.
#[derive(Clone, Copy, Debug)]
pub struct RunNow<'a> {
    /// Time since the start of the run.
    pub at: Nanos,
    /// The machine, and the tasks that take part in scheduling.
    pub snapshot: &'a Snapshot,
    /// The settings of the run.
    pub config: &'a RunConfig,
    /// The tasks that have been let in and have not ended, in ascending order of their numbers.
    pub tasks: &'a [WatchedTask<'a>],
    /// The tasks that have not been let in, those that come next first.
    pub pending: &'a VecDeque<TaskId>,
    /// Decisions made so far.
    pub decisions: u64,
    /// Energy of the package so far, in joules.
    pub energy_j: Reading<f64>,
}

/// A task that has been let in and has not ended, with all that is known of it.
#[derive(Clone, Debug)]
pub struct WatchedTask<'a> {
    /// The task as it was given.
    pub spec: &'a TaskSpec,
    /// What it does.
    pub doing: Doing<'a>,
    /// When it was started; `None` if it has not been.
    pub started: Option<Nanos>,
    /// CPU time of its whole tree.
    pub cpu_time: Reading<Nanos>,
    /// What policies see of it; `None` once it was asked to end.
    pub view: Option<&'a TaskView>,
    /// Why it waits; `None` while it runs, and before the first decision about it.
    pub reason: Option<WaitReason>,
    /// From when on it is placed before all tasks that have waited for less; `None` while it does not wait, and before
    /// its start.
    pub latest: Option<Nanos>,
    /// Time for which it has been placed.
    pub ran: Nanos,
    /// Quanta' worth of solo execution done in this run.
    pub earned: Reading<f64>,
    /// What that is based on.
    pub basis: ProgressBasis,
    /// Quanta' worth of solo execution done in this run, as learnt from what it did beside others.
    pub learnt: Reading<f64>,
    /// How often it has been started.
    pub runs: u32,
}

/// What a task does at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    /// It has a place on these CPUs.
    Runs(&'a CpuSet),
    /// It sleeps, or has stopped itself.
    Sleeps,
    /// It has run and waits for its next turn.
    Paused,
    /// It has not been started.
    Queued,
    /// It was asked to end.
    Ending,
}
