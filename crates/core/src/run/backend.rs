//! The seam: the loop's interface to a backend, which runs tasks on this machine or on a simulated one.

use crate::bus_admission::Demand;
use crate::capability::Capabilities;
use crate::decision::Change;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::run::{Occupation, Switch};
use crate::sample::{Usage, Wanting};
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::Machine;
use crate::traffic::Traffic;
use crate::units::{Nanos, Reading};
use crate::visible::Visible;
use std::sync::Arc;

/// An event of a task, the CPUs or a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task ended, with all its descendants, or could not be started.
    Ended {
        /// The task that ended.
        task: TaskId,
        /// How the task ended.
        exit: Exit,
    },
    /// The program of a task that was [handed over](Began::Later) began.
    Began {
        /// The task that began.
        task: TaskId,
        /// When it began.
        at: Nanos,
    },
    /// The machine that has the task is gone, or has given it back. It is as before its start, and has to start anew.
    Lost(TaskId),
    /// A task went to sleep by its own choice.
    Slept(TaskId),
    /// A sleeping task woke.
    Woke(TaskId),
    /// CPUs went offline or came back, so [`Backend::machine`] has changed. A task whose CPU is gone runs elsewhere.
    MachineChanged,
    /// The plan of this generation is in force.
    PlanAdopted {
        /// The plan's generation.
        generation: u64,
    },
    /// A plan was rejected; the previous plan stays in force.
    PlanRefused {
        /// The plan's generation.
        generation: u64,
        /// The backend's reason, in words.
        why: String,
    },
    /// The scheduler that carried out plans was removed: by a watchdog, an error of its own, or another process. No
    /// plan is in force any more, every started task may run on every CPU, and no further plan will be adopted.
    SchedulerEjected {
        /// The backend's reason, in words.
        why: String,
    },
    /// New tasks may have come to the run's [`Intake`](super::Intake).
    Arrivals,
    /// The user wants to end this task, or that it never begins. If the name differs, the user saw another batch, and the event is ignored.
    EndTask {
        /// The task.
        task: TaskId,
        /// Its name.
        name: String,
    },
    /// Another machine is to run this task. It goes on if it has begun.
    GiveBack(TaskId),
    /// The user changes the maximum number of admitted tasks. Those already admitted stay.
    JobLimit(usize),
    /// The backend holds all tasks: none runs, and its clock stands still. The loop decides nothing until
    /// [`Event::Continued`].
    Paused,
    /// The tasks that the backend held run again.
    Continued,
    /// No further task is to start: the user wants that, or no CPU is left. Running tasks go on.
    Drain,
    /// The user interrupts the run: the first time it shuts down cleanly, the second time at once.
    Interrupt {
        /// The number of the signal.
        signal: i32,
    },
}

/// Whether a task may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayStart {
    /// It may start, and counts as admitted from now on.
    Yes,
    /// No task may start now.
    Later,
    /// It may not, because free memory is too little for it. Others may.
    NeedsMemory,
}

/// When the program of a task that was just started begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// With the decision, as far as known.
    WithDecision,
    /// At this time: starting a program takes time. It is not later than [`now`](Backend::now).
    At(Nanos),
    /// Later: the task was handed over to another scheduler. [`Event::Began`] will tell.
    Later,
}

/// How to end a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Send SIGTERM, and thaw the task so that it can react.
    Term,
    /// Kill all of its processes at once.
    Kill,
}

/// Runs tasks on this machine, or on a simulated one.
///
/// A backend never invents a value: an unreadable value is absent with a reason. It starts a task at its first
/// placement. When it is dropped, nothing stays frozen. No method has a default: a backend without some mechanism says
/// so in [`capabilities`](Backend::capabilities), and a wrapper cannot forget to forward a call.
pub trait Backend {
    /// An error after which the backend cannot continue.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The machine, with the CPUs that are usable now.
    fn machine(&self) -> Arc<Machine>;

    /// The capabilities that the backend lacks, with reasons; it has all others.
    fn capabilities(&self) -> Capabilities;

    /// The present time, from the start of the run. Time in which the whole run was suspended does not count.
    fn now(&mut self) -> Nanos;

    /// A clock for the cost of the loop itself; `None` where this cost is meaningless.
    fn stopwatch(&self) -> Option<Nanos>;

    /// Waits for an event or for the instant `until`, and appends the events to `events`.
    ///
    /// # Errors
    /// Tasks cannot be watched any longer.
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Self::Error>;

    /// Reads the usage of these tasks since their start. A task that has just ended can be read once more. For a task
    /// that has not started, all values are absent.
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>);

    /// Fills in how long devices have worked for these tasks since they started. Called only if
    /// [`RunConfig::devices`](super::RunConfig::devices) is set.
    fn device_time(&mut self, usages: &mut [Usage]);

    /// Appends the visible progress of these running tasks, as far as the backend looks at it now. No policy sees it.
    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>);

    /// The threads of a running task and its descendants that want a CPU now. The loop asks less often while the answer
    /// is stable.
    fn wanting(&mut self, task: TaskId) -> Reading<Wanting>;

    /// The resources that an ended task used, beyond [`read`](Backend::read); called once after each of its ends.
    fn resources(&mut self, task: TaskId) -> Resources;

    /// Applies checked changes as one: first stops, then moves, then starts. If a task cannot be started, the next
    /// `wait` reports it as ended. A plan in force ends. Its fillers may then run anywhere, so the caller names every
    /// started task.
    ///
    /// # Errors
    /// Tasks cannot be controlled any longer.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// When the task that [`apply`](Backend::apply) has just started begins.
    fn began(&self, task: TaskId) -> Began;

    /// The executor of plans; `None` without [`Capability::Plans`](crate::Capability::Plans).
    fn planner(&mut self) -> Option<&mut dyn Planner<Self::Error>>;

    /// Ends a task; `wait` reports its end. Does nothing if the task has not started or has ended. A plan does not
    /// delay the end.
    fn kill(&mut self, task: TaskId, how: Kill);

    /// Learns that the loop ends all tasks: none is held any more.
    fn ending(&mut self);

    /// Prepares an ended task for another start: its next placement starts it from the beginning, and its usage counts
    /// from zero again. Returns `false` if the backend cannot start a task twice.
    fn restart(&mut self, task: TaskId) -> bool;

    /// Learns that the loop will not name this ended task again.
    fn forget(&mut self, task: TaskId);

    /// Whether this task may start now. If not, the loop asks again later.
    fn may_start(&mut self, task: &TaskSpec) -> MayStart;

    /// Reads the traffic of each memory domain since the start of the run, and appends it in the order of
    /// [`machine`](Backend::machine). Called only if [`RunConfig::traffic`](super::RunConfig::traffic) is set.
    fn traffic(&mut self, out: &mut Vec<Traffic>);

    /// Energy of the processor package since the start of the run, in joules.
    fn energy_j(&mut self) -> Reading<f64>;
}

/// Carries out plans between decisions, like a scheduler in the kernel.
pub trait Planner<E> {
    /// Installs a plan. It replaces earlier changes and plans, and starts tasks with a seat. The next
    /// [`wait`](Backend::wait) reports whether the plan was adopted.
    ///
    /// # Errors
    /// Tasks cannot be controlled any longer, or plans are no longer carried out.
    fn install(&mut self, plan: &Plan) -> Result<(), E>;

    /// Appends the switches since the last call. A switch during a call may appear in the next one.
    fn switches(&mut self, out: &mut Vec<Switch>);

    /// CPU occupation under plans; `None` if it is not observed.
    fn occupation(&mut self) -> Option<Occupation>;

    /// The demands that it has measured, in ascending order of the tasks; `None` unless it admits the tasks of shared
    /// seats to the memory bus by itself, by a plan's [`BusAdmission`](crate::BusAdmission).
    fn admits(&mut self) -> Option<Vec<Demand>>;
}
