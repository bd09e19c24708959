//! What a run tells of itself while it goes on, and what it leaves behind.

use super::histogram::Histogram;
use crate::check::InvalidDecision;
use crate::decision::Decision;
use crate::rng::RngState;
use crate::sample::{Counts, Sample};
use crate::snapshot::{ProgressBasis, Snapshot};
use crate::task::{Exit, TaskId, TaskSpec};
use crate::units::{Nanos, Reading};

/// A decision with all that led to it.
#[derive(Clone, Copy, Debug)]
pub struct DecisionRecord<'a> {
    /// What the policy saw.
    pub snapshot: &'a Snapshot,
    /// The samples that are new in it.
    pub samples: &'a [Sample],
    /// The policy's state before it decided; `None` unless the recorder asked for it.
    pub policy_state: Option<&'a serde_json::Value>,
    /// The generator's position before the policy decided.
    pub rng: RngState,
    /// What it decided, or what was done in its place.
    pub decision: &'a Decision,
    /// Its own decision could not be carried out, and round-robin stood in.
    pub stood_in: bool,
}

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// A policy's decision could not be carried out; round-robin decided instead.
    PolicyFault(InvalidDecision),
    /// A task ran out of the time that it was allowed, and is ended.
    TimedOut(TaskId),
    /// A task that was to be started again until the others have ended is not: its next run ended so, or, with `None`,
    /// the backend can't start it twice.
    NotRestarted(TaskId, Option<Exit>),
    /// The run halts, because the halt rule was met.
    Halting,
    /// The run ends, because a signal asked for it.
    Interrupted {
        /// The signal.
        signal: i32,
        /// Not the first one: everything is killed.
        again: bool,
    },
    /// A plan was not adopted, or what carried out plans was removed. The run goes on with decisions one by one.
    PlansGivenUp {
        /// The backend's own words.
        why: String,
    },
}

/// Takes note of a run. Every method has a default that does nothing.
pub trait Recorder {
    /// Whether the policy's state is wanted with each decision (costs time).
    fn wants_policy_state(&self) -> bool {
        false
    }
    /// A task was started.
    fn started(&mut self, _now: Nanos, _task: &TaskSpec) {}
    /// A task that had ended was started again; `run` counts from 1, so it is at least 2. Nobody is told of the end of such
    /// a run.
    fn restarted(&mut self, _now: Nanos, _task: &TaskSpec, _run: u32) {}
    /// A decision was made and checked, and is about to be applied.
    fn decided(&mut self, _record: DecisionRecord<'_>) {}
    /// A task ended, for the first time.
    fn ended(&mut self, _now: Nanos, _result: &TaskResult) {}
    /// The run is over, and these samples are newer than the last decision.
    fn left(&mut self, _samples: &[Sample]) {}
    /// Time has passed; called after every wait, at least once a quantum.
    fn tick(&mut self, _snapshot: &Snapshot, _queued: usize) {}
    /// The backend adopted the plan of this generation.
    fn plan_adopted(&mut self, _now: Nanos, _generation: u64) {}
    /// Something that the user should know.
    fn warn(&mut self, _now: Nanos, _warning: &Warning) {}
}

/// Takes no note of anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}

/// What became of a task; of its first run, where tasks are started again.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The task.
    pub spec: TaskSpec,
    /// When it was started; `None` if it never was.
    pub started: Option<Nanos>,
    /// When it ended; `None` if it did not.
    pub finished: Option<Nanos>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// It was ended because its time was over.
    pub timed_out: bool,
    /// It was asked to end by the run itself, because of the halt rule or a signal: how it ended says nothing of it.
    pub told_to_end: bool,
    /// CPU time of its whole tree.
    pub cpu_time: Reading<Nanos>,
    /// Longest time without a CPU between two placements.
    pub waited_max: Nanos,
    /// Time that it was placed.
    pub ran: Nanos,
    /// What was counted over its whole life.
    pub counts: Counts,
    /// Some counts are scaled estimates.
    pub multiplexed: bool,
    /// Quanta' worth of solo execution done.
    pub progress: Reading<f64>,
    /// What the progress is based on.
    pub progress_basis: ProgressBasis,
    /// How many times it was started: more than once only under [`UntilLast`](super::Restart::UntilLast).
    pub runs: u32,
}

impl TaskResult {
    /// Launch to end: from its arrival to its end.
    pub fn turnaround(&self) -> Option<Nanos> {
        self.finished.map(|finished| finished - self.spec.arrives)
    }
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Every task ended.
    Completion,
    /// The halt rule.
    Halt,
    /// A signal.
    Signal(i32),
}

/// Cost of the loop itself.
#[derive(Clone, Debug, Default)]
pub struct Overhead {
    /// Decisions made.
    pub decisions: u64,
    /// Quanta that came to their end.
    pub quanta: u64,
    /// Times of asking the policy.
    pub decide: Histogram,
    /// Times of reading and estimating.
    pub observe: Histogram,
    /// Times of applying.
    pub apply: Histogram,
}

/// What became of the plans of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Plans that were handed to the backend.
    pub installed: u64,
    /// Plans that it adopted.
    pub adopted: u64,
    /// When the run went on without plans; `None` if it never did.
    pub given_up: Option<Nanos>,
}

/// What a run leaves behind.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Every task, in the order in which they were given.
    pub tasks: Vec<TaskResult>,
    /// Launch to the end of the last task; to its first end, where tasks are started again.
    pub turnaround: Nanos,
    /// What ended it.
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
