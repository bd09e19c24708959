//! Where a run takes place: the factory of its backend, and what is known of the machine.
//!
//! - `host`: this machine, with `allotted`: what was given of it; `kernel`: a scheduler in the kernel; `host_warnings`: what users
//!   are told of it
//! - `nodes`: several nodes, with `launch`: the command that leads to a worker on each
//! - `simulated`: the built-in simulation; `world`: one in a process of its own; `simulation`: what both share
//! - `program`, `keys`: the programs of real jobs, and how the history identifies them

mod allotted;
mod host;
mod host_warnings;
mod kernel;
mod keys;
mod launch;
pub(crate) mod nodes;
mod program;
mod simulated;
pub(crate) mod simulation;
mod world;

pub use allotted::Allotted;
pub(crate) use host::{HostPlatform, threads_env};
pub use launch::Nodes;
pub(crate) use nodes::NodesPlatform;
pub(crate) use program::NO_PROGRAM;
pub(crate) use simulated::SimPlatform;
pub(crate) use world::WorldPlatform;

use crate::exit::Failure;
use crate::input::Job;
use crate::policy::PolicyChoice;
use crate::screen::Screen;
use anyhow::Result;
use cosched_core::{
    Absence, Actuation, Backend, Capabilities, Event, Machine, Nanos, SoloProfile, TaskId,
};
use cosched_linux::{Allocation, RunRequests};
use cosched_memory::CommandKey;
use cosched_report::{BackendKind, EnergySource, JobInfos, RunWarning, SettingFile, SoloSource};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known about a machine before a run.
pub(crate) struct MachineView {
    /// Real processes, or a simulation.
    pub(crate) kind: BackendKind,
    /// The machine, restricted to the CPUs that the run uses at first.
    pub(crate) machine: Arc<Machine>,
    /// How many of its CPUs the run uses because of a quota, in words; `None` without one.
    pub(crate) quota: Option<String>,
    /// What Slurm gave the run, a line each; none outside of an allocation.
    pub(crate) by_slurm: Vec<String>,
    /// The allocation of Slurm in which the run takes place; `None` outside of one, and in a simulation.
    pub(crate) allocation: Option<Allocation>,
    /// Memory that its jobs may use, in bytes; `None` in a simulation, or if it is unknown.
    pub(crate) memory: Option<u64>,
    /// The machine with all CPUs that the run may come to use while it goes on: the record names them.
    pub(crate) whole: Arc<Machine>,
    /// What it can't do. Solo bandwidths are missing until jobs have run alone.
    pub(crate) capabilities: Capabilities,
    /// Parameters of policies that belong to the machine, as its file says; none on this machine.
    pub(crate) params: Vec<(String, String)>,
    /// The counters in use, in words; `None` if there are none.
    pub(crate) counters: Option<String>,
    /// How jobs are frozen, in words.
    pub(crate) freezing: String,
    /// Where the energy figure of the run will come from.
    pub(crate) energy: EnergySource,
    /// Whether it can be measured how many CPUs a job uses.
    pub(crate) measures_width: bool,
    /// Why a run would be refused here as things stand; a plan of it can be shown all the same.
    pub(crate) refused: Option<Failure>,
    /// The command of a simulation in a process of its own; `None` for any other machine.
    pub(crate) world: Option<String>,
    /// The files of simulated machines and programs.
    pub(crate) files: Vec<SettingFile>,
    /// The folders that a run makes in its log folder: one for each node.
    pub(crate) folders: Vec<String>,
    /// What the user should know of the machine before anything is started.
    pub(crate) warnings: Vec<RunWarning>,
}

impl MachineView {
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == BackendKind::Sim
    }

    /// Whether each job writes to files of its own in the log folder of this run.
    pub(crate) fn has_job_files(&self) -> bool {
        self.kind == BackendKind::Host
    }

    /// Prefix of lines about jobs on the screen.
    pub(crate) fn mark(&self) -> &'static str {
        if self.is_simulated() {
            "[simulated] "
        } else {
            ""
        }
    }

    /// Why figures of the real machine are absent.
    pub(crate) fn unmeasured(&self) -> Absence {
        match self.kind {
            BackendKind::Host => Absence::NotTold,
            BackendKind::Nodes => Absence::NotOffered,
            BackendKind::Sim => Absence::Simulated,
        }
    }
}

/// What has to be done to learn how each job does alone.
pub(crate) enum SoloWork {
    /// No run is needed: the platform knows the solo profiles already.
    Known {
        /// The solo profile of each job, with its time, in the order of the jobs.
        profiles: Vec<SoloProfile>,
        /// Where the times come from.
        source: SoloSource,
    },
    /// Each distinct job has to be run alone.
    RunEach,
}

/// Makes backends for jobs: on this machine, over nodes, or in a simulation.
pub(crate) trait Platform {
    /// A job in the backend's own form.
    type Job: Clone;
    /// What carries out decisions while a run goes on.
    type Backend: Backend;

    /// What is known about its machine.
    fn view(&self) -> &MachineView;

    /// Does what takes long and leaves nothing behind: a plan that is only shown needs none of it. Called once, before
    /// anything is written.
    ///
    /// # Errors
    /// The user interrupted it.
    fn prepare(&self) -> Result<()>;

    /// Makes the backend's own form of a job, and checks it as far as possible before anything is started. The job's
    /// output goes to files in `logs`.
    ///
    /// # Errors
    /// The job can't run here.
    fn job(&self, job: &Job, logs: &Path) -> Result<Self::Job>;

    /// The files that the jobs read, as far as that is known: programs, and what they have as standard input. Of a
    /// simulation, the machine and the programs. Paths that do not exist may be among them.
    fn reads(&self, jobs: &[(u64, Job)], tasks: &[Self::Job]) -> Vec<PathBuf>;

    /// Which command a job is, for what is known of it from earlier runs; `None` if it runs none.
    fn key(&self, job: &Job, task: &Self::Job) -> Option<CommandKey>;

    /// Forgets what was found about programs and files: they may have changed.
    fn look_anew(&self);

    /// What a job runs, in words.
    fn shown(&self, job: &Job) -> String;

    /// Makes the backend; nothing is started yet.
    ///
    /// # Errors
    /// The machine can't be used.
    fn backend(&self, of: BackendOf<'_, Self::Job>) -> Result<Self::Backend>;

    /// The way in for jobs that come while the run goes on; `None` in a simulation, which knows its jobs beforehand.
    fn arrivals(backend: &mut Self::Backend) -> Option<&mut dyn Arrivals<Self::Job>>;

    /// What has to be done to learn how each job does alone. With `trace_step` solo traces are made as well, with one
    /// point for each interval of this length.
    ///
    /// # Errors
    /// The platform could not make the solo profiles, or the user interrupted it.
    fn solo_work(&self, trace_step: Option<Nanos>) -> Result<SoloWork>;

    /// An error of its backend that the run could not notice any more.
    fn late_failure(backend: &mut Self::Backend) -> Option<<Self::Backend as Backend>::Error>;

    /// An error of its backend, worded for the user.
    fn failure(error: <Self::Backend as Backend>::Error) -> anyhow::Error;
}

/// What a backend is made of. A simulation has its jobs already, and needs none of it.
pub(crate) struct BackendOf<'a, J> {
    pub(crate) choice: &'a PolicyChoice,
    pub(crate) actuation: Actuation,
    pub(crate) jobs: Vec<J>,
    pub(crate) screen: &'a Screen,
    /// The requests of others to the run.
    pub(crate) requests: Option<RunRequests>,
    /// The folder that it writes into.
    pub(crate) logs: &'a Path,
    /// What is known of the jobs. Another host notes there that it has a job, and what it has learnt of it.
    pub(crate) infos: &'a JobInfos,
}

/// A backend to which jobs come while the run goes on.
pub(crate) trait Arrivals<J> {
    /// Takes a job that has come, or why it can't be started.
    fn add(&mut self, task: TaskId, job: Result<J, String>);

    /// Reports an event of the input with the next wait.
    fn post(&mut self, event: Event);

    /// Takes the input of the jobs.
    fn watch_input(&mut self, input: OwnedFd);

    /// Ends the next wait once that input is readable.
    fn wake_at_input(&mut self);
}
