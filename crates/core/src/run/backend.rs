//! The seam: what the loop asks of a backend, which runs tasks on this machine or on a simulated one.

use crate::admission::Demand;
use crate::capability::Capabilities;
use crate::decision::Change;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::run::{Occupation, Switch};
use crate::sample::Usage;
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::Machine;
use crate::traffic::Traffic;
use crate::units::{Nanos, Reading};
use std::sync::Arc;

/// Something that happened to tasks, CPUs or plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task ended, with all its descendants; or it could not be started.
    Ended {
        /// The task that ended.
        task: TaskId,
        /// How it ended.
        exit: Exit,
    },
    /// A task went to sleep of its own accord.
    Slept(TaskId),
    /// A sleeping task woke.
    Woke(TaskId),
    /// CPUs went offline or came back, so [`Backend::machine`] has a new answer. A task whose CPU is gone runs
    /// elsewhere.
    MachineChanged,
    /// The plan of this generation is in force.
    PlanAdopted {
        /// The plan's generation.
        generation: u64,
    },
    /// A plan was not adopted; the one before it stays in force.
    PlanRefused {
        /// The plan's generation.
        generation: u64,
        /// The backend's reason, in words.
        why: String,
    },
    /// The scheduler that carried out plans was removed (by a watchdog, by an error of its own, or by somebody else).
    /// No plan is in force any more, every task that has begun may run on every CPU, and no further plan will be
    /// adopted.
    SchedulerEjected {
        /// The backend's reason, in words.
        why: String,
    },
    /// The user wants a task to end. A task of another name is not meant: the user saw another batch.
    EndTask {
        /// The task.
        task: TaskId,
        /// Its name.
        name: String,
    },
    /// The user wants the run to end: in good order the first time, at once the second time.
    Interrupt {
        /// The number of the signal that asked for it.
        signal: i32,
    },
}

/// Whether a task may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayStart {
    /// It may, and counts as live from now on.
    Yes,
    /// No task may.
    Later,
    /// It may not, since it is [expected](crate::Expected::memory) to need more memory than there is. Others may.
    NeedsMemory,
}

/// How to end a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Ask the task to end (SIGTERM), and thaw it so that it can react.
    Term,
    /// End all of its processes at once.
    Kill,
}

/// Where tasks run: this machine, or a simulated one.
///
/// A backend never invents a value: what it can't read is absent with a reason. It starts a task at its first
/// placement. When it is dropped, nothing stays frozen. No method has a default: a backend that lacks a mechanism says
/// so in [`capabilities`](Backend::capabilities), and a wrapper can't forget to pass a call on.
pub trait Backend {
    /// An error after which the backend can't go on.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The machine, with the CPUs that may be used now.
    fn machine(&self) -> Arc<Machine>;

    /// What the backend can't do, and why; it can do everything else.
    fn capabilities(&self) -> Capabilities;

    /// The present time, from the start of the run. Time in which the whole run was suspended does not count.
    fn now(&mut self) -> Nanos;

    /// A clock to measure the loop's own cost with; `None` where such a cost has no meaning.
    fn stopwatch(&self) -> Option<Nanos>;

    /// Waits until something happens or until the instant `until`, and appends what happened to `events`.
    ///
    /// # Errors
    /// The tasks can't be watched any longer.
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Self::Error>;

    /// Reads what these tasks have used since their start. A task that has just ended can be read once more. A task
    /// that has not started has nothing to read: all its values are absent.
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>);

    /// How many threads of a running task, with all its descendants, want a CPU at this moment: those that run and those
    /// that wait for one. The loop asks only for tasks of [`Width::Measured`](crate::Width), and the less often the
    /// steadier the answer.
    fn wanting(&mut self, task: TaskId) -> Reading<u32>;

    /// What a task that has ended had used, beside what [`read`](Backend::read) tells; asked once after each of its ends.
    fn resources(&mut self, task: TaskId) -> Resources;

    /// Carries out changes that were checked, as one: first what stops, then what moves, then what starts. A task that
    /// can't be started is reported as ended by the next `wait`. A plan that was in force ends. Where its fillers run
    /// then is not defined, so the caller names every task that has begun.
    ///
    /// # Errors
    /// Tasks can't be acted upon any longer.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// When the task that [`apply`](Backend::apply) has just started began, where that is known to be later than the
    /// decision: starting a program takes time. It is no later than [`now`](Backend::now).
    fn began(&self, task: TaskId) -> Option<Nanos>;

    /// What carries out plans here; `None` without [`Capability::Plans`](crate::Capability::Plans).
    fn planner(&mut self) -> Option<&mut dyn Planner<Self::Error>>;

    /// Ends a task; `wait` reports its end. For a task that has not started or has ended already, this does nothing and
    /// `wait` reports nothing. A plan does not delay the end.
    fn kill(&mut self, task: TaskId, how: Kill);

    /// Makes a task that has ended ready to be started again: its next placement starts it from its beginning, and
    /// its usage counts from zero again. Returns whether it can; a backend that can't start a task twice returns
    /// `false`.
    fn restart(&mut self, task: TaskId) -> bool;

    /// Whether this task may be started now. If not, the loop asks again later.
    fn may_start(&mut self, task: &TaskSpec) -> MayStart;

    /// Reads what each memory domain has moved since the start of the run, and appends it in the order of
    /// [`machine`](Backend::machine). The loop asks only if [`RunConfig::traffic`](super::RunConfig::traffic) says so.
    fn traffic(&mut self, out: &mut Vec<Traffic>);

    /// Energy of the processor package since the start of the run, in joules.
    fn energy_j(&mut self) -> Reading<f64>;
}

/// Carries out plans between decisions, as a scheduler in the kernel does.
pub trait Planner<E> {
    /// Hands over a plan. It replaces what was applied or planned before, and tasks with a seat start. The next
    /// [`wait`](Backend::wait) reports whether the plan was adopted.
    ///
    /// # Errors
    /// Tasks can't be acted upon any longer, or plans are no longer carried out.
    fn install(&mut self, plan: &Plan) -> Result<(), E>;

    /// Appends the switches since the last call. A switch at the time of a call may come with the next.
    fn switches(&mut self, out: &mut Vec<Switch>);

    /// How the tasks occupied the CPUs under plans; `None` if that is not observed.
    fn occupation(&mut self) -> Option<Occupation>;

    /// The demands that it has measured, in ascending order of the tasks; `None` unless it admits the tasks of shared
    /// seats to the memory bus by itself, by a plan's [`Admission`](crate::Admission).
    fn admits(&mut self) -> Option<Vec<Demand>>;
}
