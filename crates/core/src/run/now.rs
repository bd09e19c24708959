//! The state of a run at an instant, for observers.

use super::config::RunConfig;
use crate::decision::WaitReason;
use crate::snapshot::{ProgressBasis, Snapshot, TaskView};
use crate::task::{TaskId, TaskSpec};
use crate::topology::CpuSet;
use crate::units::{Nanos, Reading};
use crate::visible::Visible;
use std::collections::VecDeque;

/// A run at an instant.
#[derive(Clone, Copy, Debug)]
pub struct RunNow<'a> {
    /// Time since the start of the run.
    pub at: Nanos,
    /// Whether all tasks are held.
    pub is_paused: bool,
    /// Maximum number of admitted tasks that have not ended.
    pub most_live: usize,
    /// The machine, and the tasks in scheduling.
    pub snapshot: &'a Snapshot,
    /// The settings of the run.
    pub config: &'a RunConfig,
    /// The admitted tasks that have not ended, in ascending order of their numbers.
    pub tasks: &'a [WatchedTask<'a>],
    /// The tasks that have not been admitted, the next ones first.
    pub pending: &'a VecDeque<TaskId>,
    /// Decisions made so far.
    pub decisions: u64,
    /// Energy of the package so far, in joules.
    pub energy_j: Reading<f64>,
}

/// An admitted task that has not ended, with its present state.
#[derive(Clone, Debug)]
pub struct WatchedTask<'a> {
    /// The task as it was given.
    pub spec: &'a TaskSpec,
    /// Its activity.
    pub doing: Doing<'a>,
    /// Start time; `None` before its start.
    pub started: Option<Nanos>,
    /// CPU time of its whole tree.
    pub cpu_time: Reading<Nanos>,
    /// The view of it that policies have; `None` once it was asked to end.
    pub view: Option<&'a TaskView>,
    /// Why it waits; `None` while it runs, and before the first decision about it.
    pub reason: Option<WaitReason>,
    /// Deadline after which it is placed before all tasks with shorter waits; `None` while it does not wait, and before
    /// its start.
    pub latest: Option<Nanos>,
    /// Total time placed.
    pub ran: Nanos,
    /// Solo execution done in this run, in quanta.
    pub earned: Reading<f64>,
    /// Basis of `earned`.
    pub basis: ProgressBasis,
    /// Solo execution done in this run, in quanta, by the learnt model.
    pub learnt: Reading<f64>,
    /// Visible progress; `None` if nobody looked at it since the last state.
    pub visible: Option<Reading<Visible>>,
    /// Number of its starts.
    pub runs: u32,
}

/// Activity of a task at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    /// It is placed on these CPUs.
    Runs(&'a CpuSet),
    /// It sleeps, or has stopped itself.
    Sleeps,
    /// It has run and waits to run again.
    Paused,
    /// It has not been started.
    Queued,
    /// It was asked to end.
    Ending,
}
