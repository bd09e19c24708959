//! The configuration of a [`Host`](super::Host).

use super::headroom::HeadroomLimits;
use super::kernel::KernelScheduler;
use super::notice::HostNotice;
use super::printed::ProgressPattern;
use crate::counters::CounterSupport;
use crate::neighbours::PlaceAmongRuns;
use crate::root::Root;
use crate::spawn::JobProgram;
use crate::watch::RunRequests;
use cosched_core::{Machine, Nanos};
use serde::Deserialize;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// How jobs are frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Freezing {
    /// By the cgroup freezer if it can be used, otherwise by signals.
    #[default]
    Auto,
    /// By the cgroup freezer; an error if it cannot be used.
    Cgroup,
    /// By SIGSTOP and SIGCONT.
    Signals,
}

/// One job to run.
#[derive(Clone, Debug)]
pub struct HostJob {
    /// Its name, unique in the run; its processes find it in their environment.
    pub name: String,
    /// How it comes to the run.
    pub begin: JobBegin,
    /// The CPUs that it was promised; `None` for its part of those of the run.
    pub cpus: Option<u32>,
    /// The key of its reaper, if it has one: the end of the job is noted there.
    pub key: Option<PathBuf>,
}

/// How a job comes to a run.
#[derive(Clone, Debug)]
pub enum JobBegin {
    /// The run starts this program, with its arguments, environment and files.
    Program(JobProgram),
    /// The run takes over a process that runs already, with all its descendants.
    Adopt(Adoption),
}

/// A process that runs already. It leads a session and is the reaper of its orphans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adoption {
    /// Its number.
    pub pid: i32,
    /// Its start time in clock ticks since the boot. A process with another one is not meant: the job has ended.
    pub start_time: u64,
}

/// The configuration of a [`Host`](super::Host).
pub struct HostConfig {
    /// Root of `/proc` and `/sys`.
    pub root: Root,
    /// The machine, restricted to the usable CPUs.
    pub machine: Machine,
    /// The run's place among other runs; without it, it always uses all CPUs of the machine.
    pub place: Option<Rc<RefCell<PlaceAmongRuns>>>,
    /// Whether it steps back while others want CPUs or memory.
    pub polite: bool,
    /// Whether each job gets a jobserver of GNU make.
    pub jobserver: bool,
    /// With variables that say how many threads to start: the maximum number of live jobs.
    pub threads_env: Option<usize>,
    /// The jobs; task i is the i-th of them.
    pub jobs: Vec<HostJob>,
    /// How to freeze jobs.
    pub freezing: Freezing,
    /// The available counters, with their events.
    pub counters: CounterSupport,
    /// How jobs print their progress, if the user says it.
    pub progress: Option<ProgressPattern>,
    /// When a further job may start.
    pub headroom: HeadroomLimits,
    /// Time after which a job that stopped itself is continued.
    pub max_pause: Nanos,
    /// Whether the jobs are killed when the run dies; otherwise they run on.
    pub ends_jobs: bool,
    /// A scheduler in the kernel that carries out plans. After its removal, jobs are frozen and pinned.
    pub kernel: Option<Box<dyn KernelScheduler>>,
    /// Requests from other processes to the run.
    pub requests: Option<RunRequests>,
    /// Called with each notice for the user.
    pub notice: Box<dyn FnMut(HostNotice)>,
}
