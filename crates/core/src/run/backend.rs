//! The seam: what the loop asks of whatever runs tasks, be it this machine or a simulated one.

use crate::capability::Capabilities;
use crate::decision::Change;
use crate::plan::Plan;
use crate::sample::Usage;
use crate::task::{Exit, TaskId};
use crate::topology::Machine;
use crate::units::{Nanos, Reading};
use std::sync::Arc;

/// Something that happened to tasks, CPUs or plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task ended, with all its descendants; or it could not be started.
    Ended {
        /// The task.
        task: TaskId,
        /// How.
        exit: Exit,
    },
    /// A task went to sleep of its own accord.
    Slept(TaskId),
    /// A sleeping task woke.
    Woke(TaskId),
    /// CPUs went offline or came back: [`Backend::machine`] answers otherwise than before. What ran on a CPU that is
    /// gone runs elsewhere.
    MachineChanged,
    /// The plan of this generation is in force.
    PlanAdopted {
        /// Its number.
        generation: u64,
    },
    /// A plan was not adopted; the one before it stays in force.
    PlanRefused {
        /// Its number.
        generation: u64,
        /// Why, in words.
        why: String,
    },
    /// What carried out plans was removed (by a watchdog, an error of its own, or somebody else's). No plan is in force
    /// any more, every task that has begun may run on every CPU, and no further plan will be adopted.
    SchedulerEjected {
        /// Why, in words.
        why: String,
    },
    /// The user wants the run to end: the first time in good order, the second time at once.
    Interrupt {
        /// The signal that said so.
        signal: i32,
    },
}

/// How to end a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Ask it to (SIGTERM), thawed so that it can hear.
    Term,
    /// End all of its processes at once.
    Kill,
}

/// Where tasks run: this machine, or a simulated one.
///
/// A backend never invents a value: what it can't read is absent with a reason. It starts a task at its first
/// placement. When it is dropped, nothing stays frozen. No method has a default: a backend that lacks a mechanism says so
/// in [`capabilities`](Backend::capabilities), and a wrapper can't forget to pass a call on.
pub trait Backend {
    /// What can go wrong for good.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The machine.
    fn machine(&self) -> Arc<Machine>;

    /// What it can do, and what not and why.
    fn capabilities(&self) -> Capabilities;

    /// Now, from the start of the run; time in which the whole run was suspended does not count.
    fn now(&mut self) -> Nanos;

    /// A clock to measure the loop's own cost with; `None` where such a cost has no meaning.
    fn stopwatch(&self) -> Option<Nanos>;

    /// Waits until something happens or the instant has come, and appends what happened.
    ///
    /// # Errors
    /// What runs can't be watched any longer.
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Self::Error>;

    /// Reads what these tasks have used since their start; works for a task that has just ended, once. Of a task that
    /// has not started there is nothing to read: all is absent.
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>);

    /// Carries out changes that were checked, as one: first what stops, then what moves, then what starts. A task that
    /// can't be started is reported as ended by the next `wait`. A plan that was in force is over; where its fillers run
    /// then is not said, so the caller names every task that has begun.
    ///
    /// # Errors
    /// Tasks can't be acted upon any longer.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// Hands over a plan, to be carried out at every event until the next one is adopted, in place of what was applied or
    /// planned before. Seated tasks that have not begun are started. The next `wait` tells whether it was adopted. Called
    /// only where there is [`Capability::Plans`].
    ///
    /// # Errors
    /// Tasks can't be acted upon any longer, or the backend carries out no plans.
    fn install(&mut self, plan: &Plan) -> Result<(), Self::Error>;

    /// Ends a task; that it has ended is told by `wait`. One that has not started, or has ended already, has nothing
    /// to end: nothing is told. No plan holds it back from its end.
    fn kill(&mut self, task: TaskId, how: Kill);

    /// Makes a task that has ended well ready to be started anew: its next placement starts it from its beginning, and its
    /// usage counts from zero again. Says whether it can; a backend that can't start a task twice answers `false`.
    fn restart(&mut self, task: TaskId) -> bool;

    /// Whether one more task may be started now (memory, say); if not, the loop asks again later.
    fn may_start(&mut self) -> bool;

    /// Energy of the processor package since the start of the run, in joules.
    fn energy_j(&mut self) -> Reading<f64>;
}
