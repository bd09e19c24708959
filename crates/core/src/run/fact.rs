//! What happens in a run.

use super::admit::AtOnceState;
use super::result::TaskResult;
use crate::decision::{Decision, WaitReason};
use crate::rng::RngState;
use crate::sample::Sample;
use crate::snapshot::Snapshot;
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::CpuId;
use crate::units::Nanos;

/// Something that happened in a run, as the loop tells it.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// Tasks have come to the run.
    Came(&'a [TaskSpec]),
    /// A task is about to start, for the first time or again. It may run even if this process dies now.
    Starting(&'a TaskSpec),
    /// A task was started.
    Started {
        /// The task.
        task: &'a TaskSpec,
        /// 1 at first, and 1 more each time that it starts again after an end. Lost runs are not counted.
        run: u32,
        /// Whether it had started before.
        again: bool,
    },
    /// A task failed and has attempts left, so it will start again. The result is that of the failed attempt, and its `runs`
    /// include it.
    Failed(&'a TaskResult),
    /// A task ended, for the first time.
    Ended(&'a TaskResult),
    /// The machine that ran a task is gone, and the task is queued again.
    Lost(&'a TaskSpec),
    /// A task does not start in this run.
    LeftOut {
        /// The task.
        task: TaskId,
        /// Why.
        reason: WaitReason,
    },
    /// A decision was checked, and is about to be applied.
    Decided(DecisionRecord<'a>),
    /// The run is over, and these samples are newer than the last decision.
    Sampled(&'a [Sample]),
    /// Assignments of CPUs to tasks, in order of time, up to the next report. A switch may be some microseconds older than
    /// the previous report, because the kernel reports from all CPUs at once.
    Switched(&'a [Switch]),
    /// The backend adopted the plan of this generation.
    PlanAdopted(u64),
    /// The user was warned.
    Warned(&'a Warning),
    /// The result of a task that ended is not kept, because there are too many.
    Forgotten(TaskId),
}

impl Fact<'_> {
    /// The task that it is about, if it is one.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Fact::Starting(task) | Fact::Started { task, .. } | Fact::Lost(task) => Some(task.id),
            Fact::Failed(result) | Fact::Ended(result) => Some(result.spec.id),
            Fact::LeftOut { task, .. } | Fact::Forgotten(task) => Some(*task),
            Fact::Warned(warning) => warning.task(),
            Fact::Came(_)
            | Fact::Decided(_)
            | Fact::Sampled(_)
            | Fact::Switched(_)
            | Fact::PlanAdopted(_) => None,
        }
    }
}

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
