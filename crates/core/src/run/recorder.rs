//! What a run reports while it goes on, and its result.

use super::histogram::Histogram;
use super::now::RunNow;
use crate::check::InvalidDecision;
use crate::decision::Decision;
use crate::estimate::Earlier;
use crate::resources::Resources;
use crate::rng::RngState;
use crate::sample::{Counts, Sample};
use crate::snapshot::{ProgressBasis, Snapshot};
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::CpuId;
use crate::units::{Nanos, Reading};
use std::sync::Arc;

/// A decision with everything that led to it.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRecord<'a> {
    /// What the policy saw.
    pub snapshot: &'a Snapshot,
    /// The samples that were taken since the last decision.
    pub samples: &'a [Sample],
    /// The policy's state before it decided; `None` unless the recorder asked for it.
    pub policy_state: Option<&'a serde_json::Value>,
    /// The generator's position before the policy decided.
    pub rng: RngState,
    /// The policy's decision, or the one that stands in for it.
    pub decision: &'a Decision,
    /// The policy's own decision could not be carried out, and round-robin stood in.
    pub stood_in: bool,
}

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// A policy's decision could not be carried out; round-robin decided instead.
    PolicyFault(InvalidDecision),
    /// A task has used up its time limit, and is ended.
    TimedOut(TaskId),
    /// The user ends a task.
    EndedByUser(TaskId),
    /// A task is not started again, although others have not ended yet. Its last run ended in the way given; with
    /// `None`, the backend can't start a task twice.
    NotRestarted(TaskId, Option<Exit>),
    /// The halt rule was met, so the run halts.
    Halting,
    /// A signal asked for the end of the run.
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// It is not the first signal, so everything is killed.
        again: bool,
    },
    /// A task is not started yet, because it is expected to need more memory than there is now. Told of the first one.
    WaitsForMemory(TaskId),
    /// A task is expected to need more memory than there is. It is started anyway, since nothing else runs.
    ShortOfMemory(TaskId),
    /// A plan was not adopted, or the scheduler that carried out plans was removed. The run goes on with decisions one
    /// by one.
    PlansGivenUp {
        /// The reason, in the backend's words.
        why: String,
    },
}

/// Records a run. Every method has a default that does nothing.
pub trait Recorder {
    /// Whether the recorder wants the policy's state with each decision, which costs time.
    fn wants_policy_state(&self) -> bool {
        false
    }
    /// A task is about to be started, for the first time or again. Whatever becomes of this process from now on, the task
    /// may run.
    fn starting(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// A task was started.
    fn started(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// A task that had ended was started again; `run` counts from 1, so it is at least 2. The end of such a run is not
    /// reported.
    fn restarted(&mut self, _now: Nanos, _task: &TaskSpec, _run: u32) {}
    /// A task failed and will be started again, since it has attempts left; `result` tells of the attempt that failed,
    /// and `result.runs` counts it. The next start is reported by `restarted`.
    fn retried(&mut self, _now: Nanos, _result: &TaskResult) {}
    /// A decision was made and checked, and is about to be applied.
    fn decided(&mut self, _record: DecisionRecord<'_>) {}
    /// A task ended, for the first time.
    fn ended(&mut self, _now: Nanos, _result: &TaskResult) {}
    /// The run is over; these samples are newer than the last decision.
    fn left(&mut self, _samples: &[Sample]) {}
    /// Time has passed; called after every wait, at least once a quantum.
    fn tick(&mut self, _snapshot: &Snapshot, _queued: usize) {}
    /// The backend adopted the plan of this generation.
    fn plan_adopted(&mut self, _now: Nanos, _generation: u64) {}
    /// What CPUs went to which tasks, in the order of time, up to the moment of what is told next. One may be older by some
    /// microseconds than what was told before: the kernel tells from all CPUs at once.
    fn switched(&mut self, _switches: &[Switch]) {}
    /// Whether the recorder wants the state of the run, at most once a second.
    fn wants_state(&self) -> bool {
        false
    }
    /// The state of the run: after its first decision, then at most once a second, and at its end.
    fn state(&mut self, _now: &RunNow<'_>) {}
    /// Something that the user should know.
    fn warn(&mut self, _now: Nanos, _warning: &Warning) {}
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}

/// The result of a task; where tasks are started again, of its first run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The task as it was given.
    pub spec: TaskSpec,
    /// When it was started; `None` if it never was.
    pub started: Option<Nanos>,
    /// When it ended; `None` if it did not.
    pub finished: Option<Nanos>,
    /// How it ended; `None` if it did not.
    pub exit: Option<Exit>,
    /// It was ended because it had used up its time limit.
    pub timed_out: bool,
    /// The run itself asked it to end, because of the halt rule or a signal. So its exit says nothing about its work.
    pub told_to_end: bool,
    /// The user ended it in the middle of the run.
    pub ended_by_user: bool,
    /// CPU time of its whole tree.
    pub cpu_time: Reading<Nanos>,
    /// Longest time without a CPU between two placements.
    pub waited_max: Nanos,
    /// Time for which it was placed.
    pub ran: Nanos,
    /// The kernel shared its CPUs out among it and others ([`Placement::Shared`](crate::Placement::Shared)), so that it
    /// was placed while it waited for a CPU as well.
    pub shared: bool,
    /// What was counted over its whole life.
    pub counts: Counts,
    /// Some counts are scaled estimates.
    pub multiplexed: bool,
    /// What else it had used by its end.
    pub resources: Resources,
    /// Quanta' worth of solo execution done.
    pub progress: Reading<f64>,
    /// What the progress is based on.
    pub progress_basis: ProgressBasis,
    /// Quanta' worth of solo execution done, as learnt from what it did beside others.
    pub progress_learnt: Reading<f64>,
    /// How many times it was started: more than once only under [`UntilLast`](super::Restart::UntilLast) and where it
    /// has several [`attempts`](super::RunConfig::attempts).
    pub runs: u32,
    /// CPUs that it uses: as stated, or how many of its threads were found to want one at the same time. It may have
    /// had fewer.
    pub width: Reading<u32>,
    /// What was learnt of what it asks of caches and memory, for a later run; `None` if nothing was measured.
    pub learnt: Option<Arc<Earlier>>,
}

impl TaskResult {
    /// The time from its arrival to its end; `None` if it did not end.
    pub fn turnaround(&self) -> Option<Nanos> {
        self.finished.map(|finished| finished - self.spec.arrives)
    }
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Every task ended.
    Completion,
    /// The halt rule was met.
    Halt,
    /// A signal with this number asked for the end.
    Signal(i32),
}

/// The cost of the loop itself.
#[derive(Clone, Debug, Default)]
pub struct Overhead {
    /// Decisions made.
    pub decisions: u64,
    /// Quanta that came to their end.
    pub quanta: u64,
    /// Times that the policy took to decide.
    pub decide: Histogram,
    /// Times that reading and estimating took.
    pub observe: Histogram,
    /// Times that applying the decisions took.
    pub apply: Histogram,
}

/// What became of the plans of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Plans that were handed to the backend.
    pub installed: u64,
    /// Plans that it adopted.
    pub adopted: u64,
    /// When plans were given up; `None` if they never were.
    pub given_up: Option<Nanos>,
    /// What the tasks had of the CPUs; `None` if the backend does not tell.
    pub occupation: Option<Occupation>,
}

/// Numbers of tasks with a CPU at once that are told apart, 0 among them.
const AT_ONCE: usize = 17;

/// What the tasks of a run had of the CPUs while plans were carried out, as a scheduler in the kernel sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupation {
    /// For how long 0, 1, 2, ... tasks had a CPU at once, from the first process of a task on; the last of so many or more.
    pub at_once: [Nanos; AT_ONCE],
    /// The longest time for which a task wanted a CPU and had none.
    pub longest_wait: Nanos,
}

/// What a scheduler in the kernel saw of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// When it was.
    pub at: Nanos,
    /// What it was.
    pub what: Switched,
}

/// What happened at a [`Switch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// A CPU went to a task, or to none of the run.
    To {
        /// The CPU.
        cpu: CpuId,
        /// The task; `None` for none.
        task: Option<TaskId>,
    },
    /// From now on this is not told any more.
    Untold,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Every task, in the order in which they were given.
    pub tasks: Vec<TaskResult>,
    /// Launch to the end of the last task; to its first end, where tasks are started again.
    pub turnaround: Nanos,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// Cost of the loop; its times are empty in a simulation.
    pub overhead: Overhead,
    /// Decisions that could not be carried out.
    pub policy_faults: u64,
    /// What became of the plans; `None` where decisions were carried out one by one from the beginning.
    pub plans: Option<PlanCounts>,
    /// Energy of the package in joules, until the last task had ended once.
    pub energy_j: Reading<f64>,
}
