//! What a [`Host`](super::Host) is made from.

use super::kernel::KernelScheduler;
use super::notice::Notice;
use crate::counters::CounterSupport;
use crate::root::Root;
use crate::spawn::Program;
use crate::watch::Requests;
use cosched_core::{Machine, Nanos};

/// How jobs are frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Freezing {
    /// By the cgroup freezer where it can be used, else by signals.
    #[default]
    Auto,
    /// By the cgroup freezer; an error where it can't be used.
    Cgroup,
    /// By SIGSTOP and SIGCONT.
    Signals,
}

/// One job to run.
#[derive(Clone, Debug)]
pub struct HostJob {
    /// Its name, unique in the run; its processes find it in their environment.
    pub name: String,
    /// The program to start, with its arguments, environment and files.
    pub program: Program,
}

/// Everything that a [`Host`](super::Host) needs.
pub struct HostConfig {
    /// Where `/proc` and `/sys` are.
    pub root: Root,
    /// The machine, restricted to the CPUs that may be used.
    pub machine: Machine,
    /// The jobs; task i is the i-th of them.
    pub jobs: Vec<HostJob>,
    /// How to freeze jobs.
    pub freezing: Freezing,
    /// What can be counted, and by which events.
    pub counters: CounterSupport,
    /// Starts no further job while less memory than this is available, in bytes.
    pub mem_keep: Option<u64>,
    /// Starts no further job while the load average of the last minute is above this.
    pub most_load: Option<f64>,
    /// A job that stopped itself is continued after this time.
    pub max_pause: Nanos,
    /// A scheduler in the kernel that carries out plans. When it is removed, jobs are frozen and bound.
    pub kernel: Option<Box<dyn KernelScheduler>>,
    /// The requests of others to the run.
    pub requests: Option<Requests>,
    /// Called with everything that the user should know.
    pub notice: Box<dyn FnMut(Notice)>,
}
