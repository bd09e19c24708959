//! Where a run takes place: this machine or a simulated one, behind one trait. All differences between them are in the
//! implementations `host`, `nodes`, and `simulation` with `simulated` and `world`.

use super::gauge::Gauge;
use super::options::RunOptions;
use super::screen::Screen;
use crate::exit::Failure;
use crate::input::Job;
use anyhow::Result;
use cosched_core::{Absence, Backend, Capabilities, Event, Machine, Nanos, SoloProfile, TaskId};
use cosched_linux::{Allocation, RunRequests};
use cosched_memory::CommandKey;
use cosched_report::{
    BackendKind, EnergySource, Given, JobInfos, RunWarning, SettingFile, SoloSource,
};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What is known about a machine before a run.
pub(crate) struct View {
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
    /// What the user should know of the machine before anything is started.
    pub(crate) warnings: Vec<RunWarning>,
}

impl View {
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == BackendKind::Sim
    }
}

/// Identity and start of a run; empty in a simulation.
#[derive(Default)]
pub(crate) struct RunIdentity {
    pub(crate) run_id: Option<String>,
    /// Start of the backend's clock.
    pub(crate) started_at: Option<SystemTime>,
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

/// The part that a scheduler in the kernel has in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KernelPart {
    /// None: decisions are carried out one by one.
    None,
    /// It carries out plans.
    Plans,
    /// It decides at each event, as EFS, by these factors of Eqs. 22 and 23.
    Efs {
        /// `c_l`.
        local: u64,
        /// `c_g`.
        global: u64,
        /// Lines of memory that the bus of a memory domain moves in a microsecond, if demands are measured.
        lines_per_us: Option<f64>,
    },
}

impl KernelPart {
    /// Whether it measures the demands of jobs.
    pub(crate) fn measures(self) -> bool {
        match self {
            KernelPart::Efs { lines_per_us, .. } => lines_per_us.is_some(),
            KernelPart::None | KernelPart::Plans => false,
        }
    }
}

/// A machine on which jobs can run.
pub(crate) trait Platform {
    /// A job in the platform's own form.
    type Job: Clone;
    /// What carries out decisions while a run goes on.
    type Backend: Backend;

    /// Whether jobs run alone first even if the user does not ask for it.
    const SOLO_BY_DEFAULT: bool;
    /// Whether jobs write output.
    const HAS_OUTPUT: bool;
    /// Whether each job writes to files of its own in the log folder.
    const HAS_FILES: bool;
    /// Prefix of lines about jobs on the screen.
    const MARK: &'static str;
    /// Why figures of the real machine are absent.
    const UNMEASURED: Absence;

    /// What is known about its machine.
    fn view(&self) -> &View;

    /// Does what takes long and leaves nothing behind: a plan that is only shown needs none of it. Called once, before
    /// anything is written.
    ///
    /// # Errors
    /// The user interrupted it.
    fn prepare(&self) -> Result<()>;

    /// The folders that it makes in the log folder.
    fn folders(&self) -> &[String];

    /// Makes the platform's own form of a job, and checks it as far as possible before anything is started. The job's
    /// output goes to files in `logs`.
    ///
    /// # Errors
    /// The job can't run here.
    fn job(&self, job: &Job, logs: &Path) -> Result<Self::Job>;

    /// The files that the jobs read, as far as that is known: programs, and what they have as standard input. Of a
    /// simulation, the machine and the programs. Paths that do not exist may be among them.
    fn reads(options: &RunOptions, jobs: &[(u64, Job)], tasks: &[Self::Job]) -> Vec<PathBuf>;

    /// Which command a job is, for what is known of it from earlier runs; `None` if it runs none.
    fn key(&self, job: &Job, task: &Self::Job) -> Option<CommandKey>;

    /// What a job runs, in words.
    fn shown(&self, job: &Job) -> String;

    /// What a job is given beside its command, for its identity; nothing in a simulation.
    fn given(job: &Job) -> Given;

    /// The run's identity and start, for the record.
    fn identity(backend: &mut Self::Backend) -> RunIdentity;

    /// Reads the machine's counters at the start of a run; `None` in a simulation.
    fn gauge(&self) -> Option<Gauge>;

    /// Makes the backend for these jobs; nothing is started yet. It takes `requests`, if it runs real jobs, and writes into
    /// the folder `logs`.
    ///
    /// # Errors
    /// The machine can't be used.
    fn backend(
        &self,
        options: &RunOptions,
        part: KernelPart,
        jobs: Vec<Self::Job>,
        screen: &Screen,
        requests: Option<RunRequests>,
        logs: &Path,
    ) -> Result<Self::Backend>;

    /// Notes the host of each job, and what that has learnt of it, in what is known of the jobs, if that is not this one.
    fn note_hosts(backend: &mut Self::Backend, infos: &JobInfos);

    /// Gives the backend a job that has come while the run goes on, or why it can't be started.
    fn add(backend: &mut Self::Backend, task: TaskId, job: Result<Self::Job, String>);

    /// Has the backend report an event of its input.
    fn post(backend: &mut Self::Backend, event: Event);

    /// The input of jobs that come while the run goes on.
    fn watch_input(backend: &mut Self::Backend, input: OwnedFd);

    /// Ends the backend's next wait once that input is readable.
    fn wake_at_input(backend: &mut Self::Backend);

    /// Forgets what was found about programs and files: they may have changed.
    fn look_anew(&self);

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
