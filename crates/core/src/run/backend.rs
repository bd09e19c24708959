//! The seam: what the loop asks of a world, be it this machine or a simulated one.

use crate::counter::Counter;
use crate::decision::Change;
use crate::sample::Usage;
use crate::task::{Exit, TaskId};
use crate::topology::Machine;
use crate::units::{Absence, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that a policy can need of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// CPU time per task.
    CpuTime,
    /// Cycles and instructions per task.
    Ipc,
    /// A counter per task. Cycles and instructions are [`Capability::Ipc`] instead: see [`Capability::of`].
    Counter(Counter),
    /// Tasks can be frozen and thawed.
    Freeze,
    /// Tasks can be bound to CPUs.
    Affinity,
    /// Energy of the processor package.
    Energy,
    /// Bandwidth of each task when alone, from a run before this one.
    SoloBandwidth,
    /// What each task does alone, instruction by instruction, from a run before this one.
    SoloTrace,
    /// The machine has at least two types of core.
    CoreTypes,
}

impl Capability {
    /// The capability that a counter belongs to. Cycles or instructions alone are of no use to any policy, so that they
    /// are one capability.
    pub const fn of(counter: Counter) -> Capability {
        match counter {
            Counter::Cycles | Counter::Instructions => Capability::Ipc,
            other => Capability::Counter(other),
        }
    }

    /// The code in a run record, for example `mm-reads`.
    pub fn code(self) -> String {
        let code = match self {
            Capability::CpuTime => "cpu-time",
            Capability::Ipc => "ipc",
            Capability::Counter(counter) => return counter.name().replace('_', "-"),
            Capability::Freeze => "freeze",
            Capability::Affinity => "affinity",
            Capability::Energy => "energy",
            Capability::SoloBandwidth => "solo-bandwidth",
            Capability::SoloTrace => "solo-trace",
            Capability::CoreTypes => "core-types",
        };
        code.to_owned()
    }

    /// The capability in words.
    pub fn text(self) -> &'static str {
        match self {
            Capability::CpuTime => "CPU time per job",
            Capability::Ipc => "instructions per cycle",
            Capability::Counter(counter) => counter.text(),
            Capability::Freeze => "freezing of jobs",
            Capability::Affinity => "binding of jobs to CPUs",
            Capability::Energy => "package energy",
            Capability::SoloBandwidth => "solo bandwidth of each job",
            Capability::SoloTrace => "solo trace of each job",
            Capability::CoreTypes => "cores of two types",
        }
    }

    /// Whether it comes from hardware performance counters.
    pub fn is_counter(self) -> bool {
        matches!(self, Capability::Ipc | Capability::Counter(_))
    }
}

/// The capabilities that a backend lacks, and why; it has all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The capabilities that are missing.
    pub missing: BTreeMap<Capability, Absence>,
}

impl Capabilities {
    /// Why a capability is missing, if it is.
    pub fn why_missing(&self, capability: Capability) -> Option<Absence> {
        self.missing.get(&capability).copied()
    }
}

/// Something that happened in the backend's world.
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

/// A world with tasks in it.
///
/// A backend never invents a value: what it can't read is absent with a reason. It starts a task at its first
/// placement. When it is dropped, nothing stays frozen.
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
    /// The world can't be watched any longer.
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Self::Error>;

    /// Reads what these tasks have used since their start; works for a task that has just ended, once. Of a task that
    /// has not started there is nothing to read: all is absent.
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>);

    /// Carries out changes that were checked, as one: first what stops, then what moves, then what starts. A task that
    /// can't be started is reported as ended by the next `wait`.
    ///
    /// # Errors
    /// The world can't be acted upon any longer.
    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error>;

    /// Ends a task; that it has ended is told by `wait`. One that has not started, or has ended already, has nothing
    /// to end: nothing is told.
    fn kill(&mut self, task: TaskId, how: Kill);

    /// Makes a task that has ended well ready to be started anew: its next placement starts it from its beginning, and its
    /// usage counts from zero again. Says whether it can; a world that can't start a task twice need not.
    fn restart(&mut self, _task: TaskId) -> bool {
        false
    }

    /// Whether one more task may be started now (memory, say); if not, the loop asks again later.
    fn may_start(&mut self) -> bool {
        true
    }

    /// Energy of the processor package since the start of the run, in joules.
    fn energy_j(&mut self) -> crate::units::Reading<f64>;
}
