//! Reports from a run in progress, and its result.

use super::at_once::{AtOnceState, RateAt};
use super::histogram::Histogram;
use super::now::RunNow;
use crate::decision::{Decision, WaitReason};
use crate::estimate::Earlier;
use crate::estimate::PredictionErrors;
use crate::resources::Resources;
use crate::rng::RngState;
use crate::sample::{Counts, Sample};
use crate::snapshot::{ProgressBasis, Snapshot};
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::CpuId;
use crate::units::{Nanos, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A decision with its inputs.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRecord<'a> {
    /// The policy's input.
    pub snapshot: &'a Snapshot,
    /// The samples since the last decision.
    pub samples: &'a [Sample],
    /// The policy's state before its decision; `None` unless the recorder asked for it.
    pub policy_state: Option<&'a serde_json::Value>,
    /// The generator's position before the decision.
    pub rng: RngState,
    /// The policy's decision, or its substitute.
    pub decision: &'a Decision,
    /// Whether round-robin stood in, because the policy's decision was invalid, or it had none.
    pub stood_in: bool,
}

/// A warning for the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// A policy's decision was invalid, or it had none; round-robin stood in.
    PolicyFault {
        /// The reason.
        why: String,
    },
    /// A task exceeded its time limit and is ended.
    TimedOut(TaskId),
    /// The user ended a task.
    EndedByUser(TaskId),
    /// A task does not restart although others have not ended yet. Its last run ended in the given way; with `None`,
    /// the backend cannot start a task twice.
    NotRestarted(TaskId, Option<Exit>),
    /// The halt rule applies, so the run halts.
    Halting,
    /// The run's deadline is over.
    DeadlineOver,
    /// The user wants no further task to start.
    Draining,
    /// The first task that does not start in this run.
    LeftOut(TaskId, WaitReason),
    /// A signal interrupts the run.
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// Whether it is a repeated signal, so that everything is killed.
        again: bool,
    },
    /// What is known of the best number of tasks at once.
    AtOnce(AtOnceState),
    /// The first task that waits for memory while a CPU is left for it.
    WaitsForMemory(TaskId),
    /// A task starts although memory is short, because nothing else runs.
    ShortOfMemory(TaskId),
    /// For some time, more threads of one process of a task wanted to run than the task has CPUs.
    FewCpus {
        /// The task.
        task: TaskId,
        /// The threads.
        threads: u32,
        /// The CPUs for them.
        cpus: u32,
    },
    /// A plan was rejected, or the scheduler that carried out plans was removed. The run continues with decisions one
    /// by one.
    PlansGivenUp {
        /// The reason, in the backend's words.
        why: String,
    },
}

impl Warning {
    /// The task that it is about, if it is one.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Warning::TimedOut(task)
            | Warning::EndedByUser(task)
            | Warning::NotRestarted(task, _)
            | Warning::LeftOut(task, _)
            | Warning::WaitsForMemory(task)
            | Warning::ShortOfMemory(task)
            | Warning::FewCpus { task, .. } => Some(*task),
            Warning::PolicyFault { .. }
            | Warning::Halting
            | Warning::DeadlineOver
            | Warning::Draining
            | Warning::Interrupted { .. }
            | Warning::AtOnce(_)
            | Warning::PlansGivenUp { .. } => None,
        }
    }
}

/// Records a run. All methods do nothing by default.
pub trait Recorder {
    /// Whether the recorder wants the policy's state with each decision, which costs time.
    fn wants_policy_state(&self) -> bool {
        false
    }
    /// Tasks have come to the run.
    fn taken(&mut self, _now: Nanos, _tasks: &[TaskSpec]) {}
    /// A task is about to start, for the first time or again. It may run even if this process dies now.
    fn starting(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// A task was started.
    fn started(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// An ended or lost task restarted; `run` counts from 1, and does not count lost runs.
    fn restarted(&mut self, _now: Nanos, _task: &TaskSpec, _run: u32) {}
    /// A task failed and has attempts left, so it will restart. `result` describes the failed attempt, and
    /// `result.runs` includes it. The next start is reported by `restarted`.
    fn retried(&mut self, _now: Nanos, _result: &TaskResult) {}
    /// The machine that ran a task is gone, and the task is queued again. `restarted` reports its next start.
    fn lost(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// A decision was checked, and is about to be applied.
    fn decided(&mut self, _record: DecisionRecord<'_>) {}
    /// A task is left out: it does not start in this run.
    fn left_out(&mut self, _now: Nanos, _task: TaskId, _reason: WaitReason) {}
    /// A task ended, for the first time.
    fn ended(&mut self, _now: Nanos, _result: &TaskResult) {}
    /// The result of a task that ended is not kept, because there are too many.
    fn forgotten(&mut self, _task: TaskId) {}
    /// The run is over; these samples are newer than the last decision.
    fn left(&mut self, _samples: &[Sample]) {}
    /// Called after every wait, at least once a quantum.
    fn tick(&mut self, _snapshot: &Snapshot, _queued: usize) {}
    /// Whether it holds what a slow reader has not taken. It is then [asked](Recorder::tick) again soon, even if nothing
    /// happens.
    fn is_behind(&self) -> bool {
        false
    }
    /// The backend adopted the plan of this generation.
    fn plan_adopted(&mut self, _now: Nanos, _generation: u64) {}
    /// Assignments of CPUs to tasks, in order of time, up to the next report. A switch may be some microseconds older
    /// than the previous report, because the kernel reports from all CPUs at once.
    fn switched(&mut self, _switches: &[Switch]) {}
    /// Whether the recorder wants the state of the run, at most once a second.
    fn wants_state(&self) -> bool {
        false
    }
    /// The state of the run: after its first decision, then at most once a second, and at its end.
    fn state(&mut self, _now: &RunNow<'_>) {}
    /// A warning for the user.
    fn warn(&mut self, _now: Nanos, _warning: &Warning) {}
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}

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
    pub learnt: Option<Arc<Earlier>>,
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

/// A change of a CPU's task, as seen by a scheduler in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Time of the switch.
    pub at: Nanos,
    /// Kind of the switch.
    pub what: Switched,
}

/// Kinds of [`Switch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// A CPU went to a task, or to no task of the run.
    To {
        /// The CPU.
        cpu: CpuId,
        /// The task; `None` for none.
        task: Option<TaskId>,
    },
    /// Switches are not reported from now on.
    Untold,
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
