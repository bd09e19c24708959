//! The run record: one JSON object with the results of a run, without the details of single quanta.
//!
//! Times are seconds as JSON numbers, printed so that they read back to the same bits. A value that is absent is null, or left
//! out of a job's end, with the reason beside it under the same name and `_absent`.

mod build;
mod earlier;
mod of_series;
#[cfg(test)]
mod tests;

use crate::figures::{Absences, Figures};
use crate::json::{self, JsonError};
use crate::last_line::last_line;
use crate::machine_load::MachineLoad;
use crate::setting::{JobGiven, RunSetting};
use crate::source::{BackendKind, EnergySource, SoloSource};
pub use build::record;
pub(crate) use build::rfc3339;
use cosched_core::{Expected, ExpectedFrom, JobEnd, PredictionErrors, Width};
pub use earlier::{EarlierJob, Rebuilt};
pub use of_series::{NoRecord, record_of_series};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::Path;

/// The format's name and version.
pub const RECORD_SCHEMA: &str = "cosched.run/2";

/// A run record; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// Tells the run from every other on its host, as the variable `COSCHED_RUN` of its processes.
    pub run_id: Option<String>,
    /// The policy that decided, never `auto`.
    pub policy: String,
    /// Real processes, or a simulation.
    pub backend: BackendKind,
    /// The machine's name.
    pub machine: String,
    /// The machine's CPUs, cores, caches and memory domains.
    pub machine_details: MachineDetails,
    /// Seed of the run's generator.
    pub seed: u64,
    /// When the run began, RFC 3339 in UTC; absent in a simulation.
    pub started_at: Option<String>,
    /// The unit of progress in seconds.
    pub quantum_s: f64,
    /// How the run was started.
    pub setting: RunSetting,
    /// What ended the run: `completion`, `halt`, `deadline`, `drain`, `allocation` or `signal`; `killed` if it left no record, since it was killed or could not
    /// write one.
    pub finished_by: String,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The counters in use, in words.
    pub counters: Option<String>,
    /// How jobs were frozen, in words.
    pub freezing: Option<String>,
    /// All the capabilities that the run lacked, and why.
    pub missing: Vec<MissingCapability>,
    /// Numbers of jobs by how they ended.
    pub totals: JobTotals,
    /// Every job of this run, in the order in which they were given, except those in `left_out`, and all but the first
    /// 1,000 that were never started.
    pub jobs: Vec<JobRecord>,
    /// Jobs that `jobs` leaves out because there were too many; the job log and the series have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutRecord>,
    /// Jobs of the batch that earlier runs did, in the order in which they were given.
    pub earlier_jobs: Vec<EarlierJob>,
    /// What the metrics are computed over: `all-jobs`, or `this-run` if earlier runs did some of the jobs.
    pub metrics_over: String,
    /// Every metric of [`cosched_core::metric::METRICS`].
    pub metrics: Figures<f64>,
    /// The metrics over slowdowns, estimated from progress measured by IPC; only if solo times are missing.
    pub metrics_estimated: Option<Figures<f64>>,
    /// Energy and its source.
    pub energy: EnergyRecord,
    /// Cost of cosched itself.
    pub overhead: OverheadRecord,
    /// How well the speeds of jobs beside others were predicted, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<PredictionErrors>,
    /// How far the run had its CPUs for itself.
    pub machine_load: MachineLoad,
    /// The use of plans, if decisions were carried out as plans.
    pub plans: Option<PlansRecord>,
    /// What the user was warned of.
    pub warnings: Vec<WarningRecord>,
    /// The run left no record, and this was written later from its series.
    pub rebuilt: Option<Rebuilt>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A machine in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineDetails {
    /// Usable hardware threads.
    pub cpus: usize,
    /// Cores with at least one usable hardware thread.
    pub cores: usize,
    /// Last-level caches.
    pub llcs: usize,
    /// Memory domains (NUMA nodes).
    pub memory_domains: usize,
    /// Types of core, the fastest first.
    pub core_types: Vec<String>,
    /// Size of one last-level cache in bytes.
    pub llc_bytes: Option<u64>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A capability that the machine lacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCapability {
    /// Its code.
    pub capability: String,
    /// What it is, in words.
    pub what: String,
    /// Why it is missing, in words.
    pub why: String,
}

/// Numbers of jobs by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTotals {
    /// Number of all jobs.
    pub jobs: usize,
    /// Jobs that ended with code 0, in time.
    pub succeeded: usize,
    /// Jobs that ended otherwise, or could not be started.
    pub failed: usize,
    /// Failed jobs that were ended because they ran out of their `--timeout`.
    pub timed_out: usize,
    /// Jobs that did not end, or were never started.
    pub unfinished: usize,
    /// Those of them that were never started. The record has at most the first 1,000 of these.
    #[serde(default)]
    pub not_started: usize,
    /// Jobs of `earlier_jobs`, which the other numbers leave out.
    pub earlier: usize,
}

/// Jobs that a record leaves out, and the times of all jobs that ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutRecord {
    /// Number of jobs left out.
    pub jobs: usize,
    /// Median time from start to end of all jobs that ended, in seconds.
    pub time_p50_s: f64,
    /// The time that 95 % of them did not exceed.
    pub time_p95_s: f64,
    /// The longest time.
    pub time_max_s: f64,
}

/// The expected times of a job, from earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedOfJob {
    /// For how long it would be placed on CPUs of its own, in seconds.
    pub time_s: f64,
    /// The least time known, in seconds.
    pub least_s: f64,
    /// The greatest time known, in seconds.
    pub greatest_s: f64,
    /// Greatest resident memory of any one of its processes in bytes; left out if nothing was known of this command itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    /// Whose runs this comes from.
    pub from: ExpectedFrom,
    /// The number of runs that the times are of.
    pub runs: u32,
}

impl ExpectedOfJob {
    /// The same in the units of a record.
    pub fn of(expected: &Expected) -> ExpectedOfJob {
        ExpectedOfJob {
            time_s: expected.time.as_s(),
            least_s: expected.least.as_s(),
            greatest_s: expected.greatest.as_s(),
            max_rss_bytes: expected.memory,
            from: expected.from,
            runs: expected.runs,
        }
    }
}

/// The result of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its unique name.
    pub name: String,
    /// The program profile that it simulates.
    pub program: Option<String>,
    /// Its command as a shell would take it.
    pub command: Option<String>,
    /// What else it was given.
    pub given: JobGiven,
    /// Hardware threads that it needs at once.
    pub cpus: u32,
    /// How its `width` is known.
    pub width_source: Width,
    /// Its weight; left out if it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The node that ran it; left out for a run on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its expected times from earlier runs; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedOfJob>,
    /// When it arrived, in seconds from the start of the run.
    pub arrival_s: f64,
    /// How it ended, and what it used. With `restart` in the mix file all values are of its first run; with `--retries`, of its
    /// last attempt, and `arrival_s` of its first.
    #[serde(flatten)]
    pub end: JobEnd,
    /// Whether it ran when the series of a run without a record ended, so that its end is not known.
    pub lost: bool,
    /// Instructions per cycle over its whole life.
    pub ipc: Option<f64>,
    /// Its time alone on the machine, in seconds.
    pub solo_s: Option<f64>,
    /// Where its solo time comes from.
    pub solo_source: Option<SoloSource>,
    /// (end_s - arrival_s) / solo_s.
    pub slowdown: Option<f64>,
    /// Without a solo time: (end_s - arrival_s) / (progress x quantum_s), from progress measured by IPC.
    pub slowdown_estimate: Option<f64>,
    /// The file that its standard output went to.
    pub log: Option<String>,
    /// The file that its standard error went to.
    pub log_stderr: Option<String>,
    /// Why values are absent: those that are null, and those of its end that are left out, its counters among them.
    #[serde(flatten)]
    pub absent: Absences,
}

impl JobRecord {
    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        !self.end.exit_text.is_empty()
    }

    /// Whether it ended otherwise than with code 0, or ran out of its time.
    pub fn failed(&self) -> bool {
        self.end.failed()
    }

    /// How it ended, in words, or why that is not known.
    pub fn end_text(&self) -> String {
        if self.has_ended() {
            self.end.text()
        } else {
            let why = self.absent.why("exit");
            why.unwrap_or("did not end").to_owned()
        }
    }

    /// The last line of its standard error in the logs, at most 200 characters of it.
    pub fn last_error(&self) -> Option<String> {
        last_line(Path::new(self.log_stderr.as_ref()?), 200)
    }

    /// From its start to its end in seconds.
    pub fn time_s(&self) -> Option<f64> {
        Some(self.end.end_s? - self.end.start_s?)
    }

    /// From its arrival to its end in seconds.
    pub fn turnaround_s(&self) -> Option<f64> {
        self.end.end_s.map(|end| end - self.arrival_s)
    }

    /// Compares jobs by what a reader wants to see first: those that did not end, then those that were slowed down most,
    /// then those whose slowdown is not known, the longest turnaround first.
    pub fn worst_first(&self, other: &JobRecord) -> Ordering {
        let order = other.badness().partial_cmp(&self.badness());
        order.unwrap_or(Ordering::Equal)
    }

    fn badness(&self) -> [f64; 3] {
        let slowdown = self.slowdown.or(self.slowdown_estimate);
        [
            f64::from(self.end.end_s.is_none()),
            slowdown.unwrap_or(0.0),
            self.turnaround_s().unwrap_or(0.0),
        ]
    }
}

/// Energy of the processor package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyRecord {
    /// Energy over the run in joules.
    pub joules: Option<f64>,
    /// Where the figure comes from.
    pub source: EnergySource,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// The use of plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlansRecord {
    /// Plans that were handed to the backend.
    pub installed: u64,
    /// Plans that it adopted.
    pub adopted: u64,
    /// Time from which decisions were carried out one by one, because a plan was refused or the scheduler was ejected;
    /// in seconds from the start of the run.
    pub given_up_s: Option<f64>,
    /// For how long 0, 1, 2, ... jobs had a CPU at once, in seconds, up to the most that did; the last of 16 or more. It
    /// begins with the first process of a job.
    pub at_once_s: Option<Vec<f64>>,
    /// The longest time for which a job wanted a CPU and had none, in seconds, as the scheduler in the kernel saw it.
    pub longest_wait_s: Option<f64>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// Cost of cosched itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverheadRecord {
    /// Quanta that ended.
    pub quanta: u64,
    /// Decisions made.
    pub decisions: u64,
    /// Decisions that could not be carried out; round-robin stood in for them.
    pub policy_faults: u64,
    /// Times of asking the policy in microseconds: `p50` and `p99`.
    pub decide_us: Figures<f64>,
    /// Times of reading and estimating in microseconds: `p50` and `p99`.
    pub observe_us: Figures<f64>,
    /// Times of applying decisions in microseconds: `p50` and `p99`.
    pub apply_us: Figures<f64>,
    /// CPU time of cosched itself / (turnaround x 1 CPU), from 0 to 1.
    pub cpu_share: Option<f64>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// A warning that the user was given during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningRecord {
    /// The code of this kind of warning.
    pub code: String,
    /// The warning as a sentence.
    pub text: String,
}

impl RunRecord {
    /// Number of jobs that the user ended.
    pub fn cancelled(&self) -> usize {
        let jobs = self.jobs.iter();
        let cancelled = jobs.filter(|job| job.end.ended_by_user && job.failed());
        cancelled.count()
    }

    /// Whether the user asked for slowdowns. A simulation always has them.
    pub fn asks_for_slowdowns(&self) -> bool {
        self.backend == BackendKind::Sim || self.setting.options.solo.is_some()
    }

    /// The record as indented JSON text with a newline at its end.
    pub fn to_json(&self) -> String {
        // A record can't fail to serialise: its maps have text keys, and none of its types refuses.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a record. Unknown keys are ignored.
    ///
    /// # Errors
    /// The text is no run record of this version. The error names the line and the key.
    pub fn from_json(text: &str) -> Result<RunRecord, JsonError> {
        let schema = json::schema_of(text)?;
        if schema.as_deref() == Some(RECORD_SCHEMA) {
            return json::parse(text);
        }
        let found = schema.map_or("no `schema`".to_owned(), |schema| format!("`{schema}`"));
        let problem = format!("expected a run record (`{RECORD_SCHEMA}`); found {found}");
        Err(JsonError::at("schema", problem))
    }
}
