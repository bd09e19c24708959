//! The options and inputs of a run: all that distinguishes two runs of the same jobs.

use crate::figures::Absences;
use cosched_core::ParamValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run was started. A simulation has neither paths nor hosts in it, so that the same seed gives the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSetting {
    /// The words of the command line, each as a shell would take it.
    pub command_line: Option<Vec<String>>,
    /// The folder in which the run was started, and so its jobs unless they have one of their own.
    pub cwd: Option<String>,
    /// Where the jobs come from.
    pub input: RunInput,
    /// Other files that were read: simulated machines and programs, a profile, solo times.
    pub files: Vec<SettingFile>,
    /// The command that simulated the machine, as `--on` had it; `None` for any other machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// The host's name.
    pub host: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// The allocation of Slurm in which it ran, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<AllocationSetting>,
    /// Every parameter of the policy.
    pub params: Vec<ParamSetting>,
    /// The options that can change the result.
    pub options: RunOptions,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// What a batch job of Slurm asked for, on all of its nodes. The run may have had a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationSetting {
    /// The number of the batch job.
    pub job: String,
    /// How often Slurm had started it again.
    pub restarts: u32,
    /// The number of its nodes.
    pub nodes: Option<u64>,
    /// The number of its CPUs.
    pub cpus: Option<u64>,
    /// Its memory on each node, in bytes.
    pub memory_bytes: Option<u64>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// Where the jobs of a run come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInput {
    /// `mix`, `list` or `command`.
    pub kind: String,
    /// The absolute path of the file.
    pub path: Option<String>,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: Option<String>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A file beside that of the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingFile {
    /// `machine`, `program`, `profile` or `solo`.
    pub kind: String,
    /// The file as it was named, on the command line or in the mix file.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// A parameter of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ParamValue,
    /// `default` (the policy's own), `machine` (the simulated machine's file), `profile` (the file of `--profile`) or
    /// `param` (`--param`).
    pub origin: String,
}

/// Options that can change what jobs do or how long they take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// The policy that was asked for: a name, or `auto`.
    pub policy: String,
    /// What the machine lacks for the policy that `auto` would take where everything is there.
    pub policy_lacks: Option<String>,
    /// Jobs that may be live at once.
    pub jobs_at_once: usize,
    /// In which order jobs are let in: `auto`, `given` or `random`.
    pub order: String,
    /// The CPUs that the run used, in the kernel's list format.
    pub cpus: String,
    /// What `--cpus-per-job` says: a number, `auto` or `all`.
    pub cpus_per_job: String,
    /// What `--threads-env` says: `auto` or `off`.
    pub threads_env: String,
    /// What `--freeze` says: `auto`, `cgroup` or `signals`.
    pub freeze: String,
    /// `decisions` or `plans`.
    pub actuation: String,
    /// What let jobs run and wait: `freezer`, or a scheduler in the kernel (`sched-ext`, or `sched-ext-all` if it had all
    /// ordinary processes of the machine).
    pub actuator: String,
    /// `never` or `until-last`.
    pub restart: String,
    /// How often a job that fails is started in all.
    pub attempts: u32,
    /// The rule of `--halt`.
    pub halt: String,
    /// Longest pause of a job that has been started, in seconds.
    pub max_pause_s: f64,
    /// From SIGTERM to SIGKILL, in seconds.
    pub grace_s: f64,
    /// Between the starts of two jobs, in seconds; 0 without `--delay`.
    pub delay_s: f64,
    /// The limit of `--timeout`, such as `90s` or `200%`.
    pub timeout: Option<String>,
    /// The time of `--deadline` in seconds.
    pub deadline_s: Option<f64>,
    /// The memory to keep free in bytes.
    pub mem_keep_bytes: Option<u64>,
    /// The load of `--load`.
    pub load: Option<f64>,
    /// Where solo times come from: `measure` or `file`.
    pub solo: Option<String>,
    /// The shell of `--shell`, as it was named.
    pub shell: Option<String>,
    /// The events of `--event`.
    pub events: Vec<String>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A job's environment beside its command, with absolute paths. Jobs with one command and another environment are
/// different jobs. Parts that the user did not give are left out of the JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct JobGiven {
    /// Its working folder; without it, that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables that were added to its environment, each with a digest of its value, which may be a secret: the first 16
    /// hexadecimal digits of its SHA-256.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The file that it read as standard input; without it, `/dev/null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

impl JobGiven {
    /// Whether the job was given a command and nothing else.
    pub fn is_empty(&self) -> bool {
        *self == JobGiven::default()
    }
}
