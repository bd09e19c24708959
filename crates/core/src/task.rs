//! Tasks: the units of scheduling. A task is a spawned job, or an adopted group of processes.

use crate::estimate::{EarlierPhases, Interference};
use crate::expected::Expected;
use crate::solo_trace::SoloTrace;
use crate::topology::CpuSet;
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Number of a task within its run, from 0 in the order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Origin of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Started by this run: its start and its exit are known.
    #[default]
    Spawned,
    /// Found running: its start, exit code and solo time may never be known.
    Adopted,
}

/// Operations that are allowed on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Read its counters.
    pub count: bool,
    /// Pin it to CPUs.
    pub place: bool,
    /// Freeze and thaw it.
    pub freeze: bool,
    /// Kill it.
    pub kill: bool,
}

impl Control {
    /// Everything is allowed: for tasks that this run started.
    pub const FULL: Control = Control {
        count: true,
        place: true,
        freeze: true,
        kill: true,
    };
}

impl Default for Control {
    fn default() -> Control {
        Control::FULL
    }
}

/// The source of a task's width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// Stated: the task gets [`TaskSpec::cpus`] CPUs, and no more.
    #[default]
    Stated,
    /// Measured while the task runs. If a policy gives the task exclusive CPUs, it may also use [spare
    /// CPUs](crate::spare_cpus).
    Measured,
}

impl Width {
    fn is_stated(&self) -> bool {
        *self == Width::Stated
    }
}

/// The usual weight.
pub(crate) fn one() -> f64 {
    1.0
}

pub(crate) fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

/// A task as given to the loop before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Its number in the run.
    pub id: TaskId,
    /// Its unique name.
    pub name: String,
    /// Hardware threads that it needs at the same time, at least 1. A policy allocates this many.
    pub cpus: u32,
    /// The source of its width.
    #[serde(default, skip_serializing_if = "Width::is_stated")]
    pub width: Width,
    /// Arrival time, from the start of the run.
    pub arrives: Nanos,
    /// The CPUs that it may use; `None` for all CPUs of the machine.
    pub allowed: Option<CpuSet>,
    /// Its program, if that is known. Tasks of one program are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
    /// Its share of the time relative to other tasks: greater than 0, usually 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// Whether this run starts it or finds it running.
    pub origin: Origin,
    /// Operations that are allowed on it.
    pub control: Control,
    /// Stated solo bus use of each of its CPUs, in thousandths up to 1,000 (`b` of EFS); `None` if not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_use_milli: Option<u16>,
    /// Measurements from an earlier solo run.
    pub solo: SoloProfile,
    /// Expectations from earlier runs, whatever the co-runners; `None` without earlier runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// The memory that the user says it needs, in bytes. It replaces what is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Learnt demand on caches and memory from an earlier run; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Arc<EarlierPhases>>,
    /// How its program fared beside others in earlier runs; `None` without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
}

/// Solo behaviour of a task, measured before the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SoloProfile {
    /// Time from start to end.
    pub time: Option<Nanos>,
    /// Mean rate of lines read from memory.
    pub mm_reads: Option<Rate>,
    /// Solo IPC, keyed by the instructions done.
    #[serde(default)]
    pub trace: Option<Arc<SoloTrace>>,
}

impl TaskSpec {
    /// Its weight, if that is not 1.
    pub fn given_weight(&self) -> Option<f64> {
        (self.weight != 1.0).then_some(self.weight)
    }

    /// A spawned task of one CPU that arrives at the start of the run.
    pub fn new(id: u32, name: &str) -> TaskSpec {
        TaskSpec {
            id: TaskId(id),
            name: name.to_owned(),
            cpus: 1,
            width: Width::Stated,
            arrives: Nanos::ZERO,
            allowed: None,
            program: None,
            weight: 1.0,
            origin: Origin::Spawned,
            control: Control::FULL,
            bus_use_milli: None,
            solo: SoloProfile::default(),
            expected: None,
            memory: None,
            earlier: None,
            interference: None,
        }
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: i32,
        /// The kernel ended it because memory ran out.
        oom: bool,
    },
    /// It was asked to end early, and then exited with code 0.
    ToldToEnd,
    /// It could not be started, for this reason.
    NotStarted(String),
    /// It ended in an unknown way.
    Unknown,
}

impl Exit {
    /// Whether the task ended with code 0.
    pub fn ok(&self) -> bool {
        *self == Exit::Code(0)
    }

    /// The exit status as in a shell: the code; 128 + n for signal n; 127 for a command that could not be started; `None` if
    /// it is not known.
    pub fn status(&self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(*code),
            Exit::Signal { signal, .. } => Some(128 + signal),
            // As if the signal had ended it.
            Exit::ToldToEnd => Some(128 + 15),
            Exit::NotStarted(_) => Some(127),
            Exit::Unknown => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit {code}"),
            Exit::Signal { signal, oom } => {
                match signal_name(*signal) {
                    Some(name) => write!(f, "{name}")?,
                    None => write!(f, "signal {signal}")?,
                }
                if *oom {
                    f.write_str(" (out of memory)")
                } else {
                    Ok(())
                }
            }
            Exit::ToldToEnd => f.write_str("told to end"),
            Exit::NotStarted(why) => write!(f, "not started: {why}"),
            Exit::Unknown => f.write_str("ended"),
        }
    }
}

/// The name of a Linux signal that ends a process, with the numbers of x86 and Arm.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        19 => "SIGSTOP",
        20 => "SIGTSTP",
        21 => "SIGTTIN",
        22 => "SIGTTOU",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}
