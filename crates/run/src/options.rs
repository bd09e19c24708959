//! The options of a run. `cosched run` fills them in from its command line, and messages use its names for them.

use crate::cpus::{CpuChoice, CpusPerJob};
use crate::input::Reading;
use crate::limits::{JobLimit, LoadLimit};
use crate::platform::Nodes;
use crate::progress_to::ProgressTarget;
use cosched_core::{Actuation, Halt, Nanos, Order, RunConfig, TimeLimit};
use cosched_linux::ProgressPattern;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use strum::{EnumIter, EnumMessage, EnumString, IntoStaticStr};

/// All options of a run. The default runs no job, on this machine, under the best policy.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Where the jobs come from. An error if it can't be read, or holds no job.
    pub jobs: JobSource,
    /// Shell for lines: a path, or a name in `PATH`; by default `/bin/sh`. An error if it is not a POSIX shell.
    pub shell: Option<OsString>,
    /// Working folder of jobs that have none of their own; by default that of the caller.
    pub cwd: Option<PathBuf>,
    /// Niceness of the jobs; by default that of the caller.
    pub nice: Option<i8>,
    /// The machine, and how it is used.
    pub machine: MachineOptions,
    /// Several nodes that run the jobs; by default this machine does.
    pub nodes: Option<NodeOptions>,
    /// The policy.
    pub policy: PolicyOptions,
    /// Limits on the run and its jobs.
    pub limits: LimitOptions,
    /// What is printed, and which files are written.
    pub output: OutputOptions,
    /// Where solo times come from. A simulation always has them.
    pub solo: SoloTimes,
    /// The history of commands; by default none is read or written.
    pub history: Option<PathBuf>,
    /// Skip jobs that succeeded according to the job log, which is in the log folder unless it is named, and treat live jobs of
    /// a killed run so; by default no job is skipped.
    pub resume: Option<Orphans>,
    /// Start nothing; print the plan.
    pub dry_run: bool,
    /// Leave signals to the caller. A run of real jobs takes them all the same.
    pub leaves_signals: bool,
}

/// Where the jobs come from.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// A mix file (TOML); `-` for standard input.
    Mix(PathBuf),
    /// A file with a shell command on each line; `-` for standard input.
    List(PathBuf),
    /// A command and its arguments, with the reading of its values.
    Command(Vec<OsString>, Reading),
}

impl Default for JobSource {
    fn default() -> JobSource {
        JobSource::Command(Vec::new(), Reading::default())
    }
}

/// The machine, and how it is used.
#[derive(Clone, Debug, Default)]
pub struct MachineOptions {
    /// Simulated machine: a built-in name, or the path of a file; by default the jobs run on this machine.
    pub on: Option<String>,
    /// CPUs to use; by default those that no other run of cosched uses. An error if one of them does not exist.
    pub cpus: Option<CpuChoice>,
    /// Use fewer CPUs while others on the machine want them.
    pub polite: bool,
    /// Give each job a jobserver of GNU make. An error with a scheduler in the kernel.
    pub jobserver: bool,
    /// Whether variables say how many threads a job should start.
    pub threads_env: ThreadsEnv,
    /// CPUs of a job without `cpus` in a mix file.
    pub cpus_per_job: CpusPerJob,
    /// Further counter events, as in `mm=0x4844`. An error if one can't be parsed.
    pub events: Vec<String>,
    /// How jobs are frozen.
    pub freeze: Freeze,
    /// How jobs are scheduled.
    pub actuator: Actuator,
    /// How decisions are carried out; always as plans by a scheduler in the kernel.
    pub actuation: Actuation,
    /// A coordinator gives it the jobs of a node.
    pub is_worker: bool,
    /// Folder in which a reaper of each job notes its start and its end, under the job's `id`. The jobs outlive the run. Their
    /// output is in the folder `logs` beside it; by default there are no reapers.
    pub reaper: Option<PathBuf>,
}

/// The nodes of a run.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Which.
    pub which: Nodes,
    /// Words of the command line for the runs on the nodes.
    pub worker: Vec<OsString>,
    /// How many times a job starts again because its node was lost.
    pub retries_lost: u32,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// Name in the table of policies; by default the best that the machine supports.
    pub name: Option<String>,
    /// Parameters: name and value. An error if the policy has no such parameter, or one is given twice.
    pub params: Vec<(String, String)>,
    /// TOML file with parameters for this machine.
    pub profile: Option<PathBuf>,
    /// Seed of everything random; 1 by default.
    pub seed: u64,
}

impl Default for PolicyOptions {
    fn default() -> PolicyOptions {
        PolicyOptions {
            name: None,
            params: Vec::new(),
            profile: None,
            seed: 1,
        }
    }
}

/// Limits on the run and its jobs.
#[derive(Clone, Debug)]
pub struct LimitOptions {
    /// Maximum number of live jobs; by default the number of CPUs, or twice that if the policy shares time.
    pub jobs: Option<JobLimit>,
    /// Which jobs start first.
    pub order: Order,
    /// Start no job while less memory than this is available, in bytes; 0 for no limit, by default 5 % of the memory.
    pub mem_keep: Option<u64>,
    /// Start no job while the load average is above this; no limit by default.
    pub load: Option<LoadLimit>,
    /// Time between the starts of two jobs; 0 by default.
    pub delay: Nanos,
    /// Longest time that a job may run; by default there is no limit.
    pub timeout: Option<TimeLimit>,
    /// Longest time of the whole run; by default there is no limit.
    pub deadline: Option<Nanos>,
    /// Attempts of a job that fails; 1 by default.
    pub attempts: u32,
    /// Time from SIGTERM to SIGKILL; 5 s by default.
    pub grace: Nanos,
    /// Longest pause of a started job; 30 s by default.
    pub max_pause: Nanos,
    /// When to give up early; never by default.
    pub halt: Halt,
}

impl LimitOptions {
    /// The settings of the loop that these are.
    pub(crate) fn config(&self) -> RunConfig {
        RunConfig {
            order: self.order,
            delay: self.delay,
            timeout: self.timeout,
            deadline: self.deadline,
            attempts: self.attempts,
            grace: self.grace,
            max_pause: self.max_pause,
            halt: self.halt,
            ..RunConfig::default()
        }
    }

    /// Memory to keep free if jobs may use so much, both in bytes. A simulated machine has none.
    pub(crate) fn kept_memory(&self, memory: Option<u64>) -> Option<u64> {
        self.mem_keep.or(memory.map(|memory| memory / 20))
    }

    /// From how many live jobs on a further one starts only if memory suffices by a guess. A job a CPU is what users expect;
    /// more are our own choice.
    pub(crate) fn guess_from(&self, cpus: usize) -> usize {
        match (self.mem_keep, self.jobs) {
            (Some(0), _) | (None, Some(_)) => usize::MAX,
            (Some(_), _) => 1,
            (None, None) => cpus,
        }
    }
}

impl Default for LimitOptions {
    fn default() -> LimitOptions {
        let config = RunConfig::default();
        LimitOptions {
            jobs: None,
            order: config.order,
            mem_keep: None,
            load: None,
            delay: config.delay,
            timeout: config.timeout,
            deadline: config.deadline,
            attempts: config.attempts,
            grace: config.grace,
            max_pause: config.max_pause,
            halt: config.halt,
        }
    }
}

/// What is printed, and which files are written. A file that can't be written is an error before any job starts.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Folder for the jobs' output, the record and the series.
    pub logs: Logs,
    /// How the jobs' output is shown; by default in one piece when a job ends, and that of a single job as it comes. Hidden if
    /// the record is printed.
    pub show: Option<Show>,
    /// Show the output in the order of the jobs.
    pub keep_order: bool,
    /// What is printed at the end.
    pub format: AnswerFormat,
    /// File for the record. The series is written beside it.
    pub record: Option<PathBuf>,
    /// File for every decision with its snapshot.
    pub events: Option<PathBuf>,
    /// File for the job log; by default it is in the log folder.
    pub joblog: Option<PathBuf>,
    /// File of metrics, in the text format of Prometheus.
    pub metrics: Option<PathBuf>,
    /// Where a JSON line for each start and end of a job goes.
    pub progress_to: Option<ProgressTarget>,
    /// How jobs print their progress; by default only the file that a job reads shows it.
    pub progress_pattern: Option<ProgressPattern>,
    /// Standard output gets frames for a coordinator, the jobs' output among them, and no log folder stays. The jobs end with
    /// the run. An error with several attempts, solo runs, `resume` or a simulation.
    pub frames: bool,
    /// Print no progress, no warnings and no summary.
    pub quiet: bool,
    /// Print each job's start and end, and more in the summary.
    pub verbose: bool,
}

/// The log folder of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Logs {
    /// A new folder in `cosched-logs`.
    #[default]
    New,
    /// This folder.
    At(PathBuf),
    /// None: the jobs' output is in a temporary folder while they run.
    Nowhere,
}

/// Where solo times come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SoloTimes {
    /// None are needed.
    #[default]
    Nothing,
    /// Each distinct job runs alone first.
    Measured,
    /// The same, and the jobs do not run together.
    OnlyMeasured,
    /// The record or the solo profiles of an earlier run.
    File(PathBuf),
}

/// What to do with live jobs of a killed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, EnumIter, EnumMessage, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Orphans {
    /// List them and start nothing
    Refuse,
    /// Wait until they end, then run their commands again
    Wait,
    /// End them (SIGTERM, after --grace SIGKILL), then run their commands again
    Kill,
    /// Leave them alone; their commands run a second time
    Ignore,
}

/// Whether jobs get variables that say how many threads to start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, EnumIter, EnumMessage, IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum ThreadsEnv {
    /// As many as the job has CPUs, where the user has set no number
    #[default]
    Auto,
    /// No variables
    Off,
}

/// How jobs are frozen.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, EnumIter, EnumMessage, IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Freeze {
    /// The cgroup freezer where it works, else signals
    #[default]
    Auto,
    /// The cgroup freezer, or an error
    Cgroup,
    /// SIGSTOP and SIGCONT
    Signals,
}

/// How jobs are scheduled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, EnumIter, EnumMessage, IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Actuator {
    /// Jobs are frozen and bound to CPUs
    #[default]
    Freezer,
    /// A scheduler in the kernel
    SchedExt,
    /// A scheduler in the kernel, for all ordinary processes of the machine
    SchedExtAll,
}

/// What a run prints at the end.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, EnumIter, EnumMessage, IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum AnswerFormat {
    /// A summary, on standard error
    #[default]
    Text,
    /// The run record, on standard output
    Json,
    /// A table of the jobs, on standard output
    Csv,
}

/// How the jobs' output is shown.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    EnumString,
    EnumIter,
    EnumMessage,
    IntoStaticStr,
    serde::Serialize,
    serde::Deserialize,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Show {
    /// Each job's output in one piece when it ends
    Group,
    /// Lines as they come, each with its job's values, or its name without any
    Tag,
    /// Lines as they come
    Live,
    /// Nothing; the log folder has it
    #[strum(serialize = "none")]
    Nothing,
}

impl RunOptions {
    /// Whether the machine is simulated.
    pub(crate) fn is_simulated(&self) -> bool {
        self.machine.on.is_some()
    }

    /// Whether the job log is in the log folder. A simulation is not resumed.
    pub(crate) fn has_own_joblog(&self) -> bool {
        self.output.joblog.is_none() && self.output.keeps_logs() && !self.is_simulated()
    }

    /// The folder of the mix file, from which names of files in it count.
    pub(crate) fn mix_folder(&self) -> &Path {
        match &self.jobs {
            JobSource::Mix(file) => file.parent().unwrap_or(Path::new("")),
            _ => Path::new(""),
        }
    }

    /// How the output of so many jobs is shown; `None` if it is not. Simulated jobs have none.
    pub(crate) fn show(&self, jobs: usize) -> Option<Show> {
        let output = &self.output;
        let show = output.show.unwrap_or(output.show_by_default(jobs));
        (show != Show::Nothing && !self.is_simulated()).then_some(show)
    }
}

impl OutputOptions {
    /// Whether a log folder stays.
    pub(crate) fn keeps_logs(&self) -> bool {
        self.logs != Logs::Nowhere
    }

    /// Whether the run ends with a summary, which names the failed jobs with their commands.
    pub(crate) fn has_summary(&self) -> bool {
        self.format == AnswerFormat::Text && !self.quiet
    }

    fn show_by_default(&self, jobs: usize) -> Show {
        if self.keep_order || !self.keeps_logs() {
            Show::Group
        } else if self.format != AnswerFormat::Text {
            Show::Nothing
        } else if jobs == 1 {
            Show::Live
        } else {
            Show::Group
        }
    }
}

impl MachineOptions {
    /// How decisions are carried out.
    pub(crate) fn actuation(&self) -> Actuation {
        match self.actuator {
            Actuator::Freezer => self.actuation,
            Actuator::SchedExt | Actuator::SchedExtAll => Actuation::Plans,
        }
    }
}
