//! The results of a run and of its tasks.

use super::admit::RateAt;
use super::histogram::Histogram;
use crate::estimate::{EarlierPhases, PredictionErrors};
use crate::resources::Resources;
use crate::sample::Counts;
use crate::snapshot::ProgressBasis;
use crate::task::{Exit, TaskSpec};
use crate::units::{Nanos, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of a task; with restarts, of its first run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The task as it was given.
    pub spec: TaskSpec,
    /// Start time; `None` if it never started.
    pub started: Option<Nanos>,
    /// End time; `None` if it did not end.
    pub finished: Option<Nanos>,
    /// How it ended; `None` if it did not end.
    pub exit: Option<Exit>,
    /// Whether it was ended at its time limit.
    pub timed_out: bool,
    /// Whether the run asked it to end, because of the halt rule, the deadline or a signal. Its exit then says nothing
    /// about its work.
    pub told_to_end: bool,
    /// Whether the user ended it during the run.
    pub ended_by_user: bool,
    /// CPU time of its whole tree.
    pub cpu_time: Reading<Nanos>,
    /// Longest time without a CPU between two placements.
    pub waited_max: Nanos,
    /// Total time placed.
    pub ran: Nanos,
    /// Whether the kernel time-shared its CPUs ([`Placement::Shared`](crate::Placement::Shared)), so that time placed
    /// includes waiting for a CPU.
    pub shared: bool,
    /// Events counted over its whole life.
    pub counts: Counts,
    /// Whether some counts are scaled estimates.
    pub multiplexed: bool,
    /// Other resources used by its end.
    pub resources: Resources,
    /// Solo execution done, in quanta.
    pub progress: Reading<f64>,
    /// Basis of `progress`.
    pub progress_basis: ProgressBasis,
    /// Solo execution done, in quanta, by the learnt model.
    pub progress_learnt: Reading<f64>,
    /// Number of its starts: more than one only under [`UntilLast`](super::Restart::UntilLast), or with several
    /// [`attempts`](super::RunConfig::attempts).
    pub runs: u32,
    /// Its width: as stated, or as measured. It may have had fewer CPUs.
    pub width: Reading<u32>,
    /// Its learnt demand on caches and memory, for a later run; `None` if nothing was measured.
    pub learnt: Option<Arc<EarlierPhases>>,
    /// How long it ran beside tasks of each program; `None` if that was not noted all the time.
    pub beside: Option<BTreeMap<Arc<str>, Nanos>>,
}

impl TaskResult {
    /// Whether it ended by itself, well and in time.
    pub fn succeeded(&self) -> bool {
        self.exit.as_ref().is_some_and(Exit::ok) && !self.timed_out
    }

    /// Time from its arrival to its end; `None` if it did not end.
    pub fn turnaround(&self) -> Option<Nanos> {
        self.finished.map(|finished| finished - self.spec.arrives)
    }
}

/// Tasks whose results were not kept, because there were too many; and the times of all.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// Number of them that succeeded.
    pub succeeded: usize,
    /// Number of them that failed.
    pub failed: usize,
    /// Number of those that were ended at their time limit.
    pub timed_out: usize,
    /// Times from start to end of all tasks of the run that have ended, kept or not.
    pub times: Histogram,
}

impl LeftOut {
    /// Notes a task that has ended.
    pub(super) fn note(&mut self, result: &TaskResult, is_left_out: bool) {
        if let (Some(started), Some(finished)) = (result.started, result.finished) {
            self.times.add((finished - started).0);
        }
        if !is_left_out {
            return;
        }
        if result.succeeded() {
            self.succeeded += 1;
        } else {
            self.failed += 1;
        }
        self.timed_out += usize::from(result.timed_out);
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.succeeded + self.failed
    }
}

/// Cause of a run's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Every task ended.
    Completion,
    /// The halt rule.
    Halt,
    /// The deadline.
    Deadline,
    /// The user wanted no further task to start, and some did not.
    Drain,
    /// Every task ended that could, before the machine is taken away; some did not start.
    NoTime,
    /// Every task ended that could, on the nodes that are left; some did not start.
    NoNode,
    /// A signal with this number.
    Signal(i32),
}

/// The cost of the loop itself.
#[derive(Clone, Debug, Default)]
pub struct Overhead {
    /// Decisions made.
    pub decisions: u64,
    /// Quanta completed.
    pub quanta: u64,
    /// Times of the policy's decisions.
    pub decide: Histogram,
    /// Times of reading and estimating.
    pub observe: Histogram,
    /// Times of applying decisions.
    pub apply: Histogram,
}

/// Counts of a run's plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Plans given to the backend.
    pub installed: u64,
    /// Plans that it adopted.
    pub adopted: u64,
    /// Time at which plans were given up; `None` if never.
    pub given_up: Option<Nanos>,
    /// CPU occupation; `None` if the backend does not observe it.
    pub occupation: Option<Occupation>,
}

/// Number of entries for concurrent tasks, 0 included.
const AT_ONCE: usize = 17;

/// CPU occupation by the tasks of a run under plans, as seen by a scheduler in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupation {
    /// Time with 0, 1, 2, ... tasks on a CPU since the first task started; the last entry counts that many or more.
    pub at_once: [Nanos; AT_ONCE],
    /// Longest time for which a task wanted a CPU and had none.
    pub longest_wait: Nanos,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Every task whose result was kept, in the order of submission.
    pub tasks: Vec<TaskResult>,
    /// The others.
    pub left_out: LeftOut,
    /// Time from launch to the end of the last task; with restarts, to the last first end.
    pub turnaround: Nanos,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// Cost of the loop; its times are empty in a simulation.
    pub overhead: Overhead,
    /// Number of invalid decisions.
    pub policy_faults: u64,
    /// Counts of plans; `None` if decisions were carried out one by one from the start.
    pub plans: Option<PlanCounts>,
    /// The rates with different numbers of tasks at once, for later runs; empty if nothing was learnt.
    pub rates: Vec<RateAt>,
    /// How well speeds were predicted; `None` where nothing was.
    pub predictions: Option<PredictionErrors>,
    /// Energy of the package in joules, until every task had ended once.
    pub energy_j: Reading<f64>,
}
