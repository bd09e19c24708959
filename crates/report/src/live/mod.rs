//! The state of a running batch: [`build`] makes it, [`over`] brings it to the end of the run, [`tables`] renders it in
//! words, [`metrics`] as metrics. [`queue`] renders the jobs of the queue.

mod build;
mod metrics;
mod over;
mod queue;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use build::Live;
pub use metrics::metrics_text;
pub use queue::{QueueRow, queue_run_text, queue_text};
pub use tables::{RunLine, jobs_text, live_job_table, runs_text};

use crate::figures::{Absences, Figures};
use crate::progress::{LeftFrom, OVERDUE, left_clock, percent};
use crate::record::EnergyRecord;
use crate::text::{clock, count, seconds, visible};
use cosched_core::JobEnd;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema of the state of a run.
pub const STATUS_SCHEMA: &str = "cosched.status/2";

/// Age in seconds from which a state is marked as old.
const OLD_S: f64 = 3.0;

/// The state of a run at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStatus {
    /// [`STATUS_SCHEMA`].
    pub schema: String,
    /// The version of cosched that runs.
    pub cosched_version: String,
    /// The constants of the run.
    pub run: RunFacts,
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Whether all jobs are held.
    #[serde(default)]
    pub paused: bool,
    /// Age of the state in seconds when it was read; absent in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// The run is suspended, as by Ctrl-Z; absent in the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Numbers of jobs by state.
    pub totals: LiveTotals,
    /// Energy so far.
    pub energy: EnergyRecord,
    /// Resources that the run itself used.
    pub own: OwnUse,
    /// The use of each CPU, in ascending order.
    pub cpus: Vec<CpuNow>,
    /// Jobs: the live ones by number, then the next ones, then those that ended, the latest first.
    pub jobs: Vec<JobNow>,
    /// Numbers of jobs left out, since there are too many.
    pub left_out: LeftOut,
}

/// The constants of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFacts {
    /// Its identity, as in `COSCHED_RUN` of its jobs.
    pub run_id: String,
    /// Its process.
    pub pid: u32,
    /// Its policy.
    pub policy: String,
    /// `together`, or `alone` while each job runs alone first.
    pub phase: String,
    /// The machine's name.
    pub machine: String,
    /// The CPUs of the run.
    pub cpus: String,
    /// When it started, RFC 3339 in UTC.
    pub started_at: Option<String>,
    /// Its log folder.
    pub folder: Option<String>,
    /// Its future run record.
    pub record: Option<String>,
    /// Its series.
    pub series: Option<String>,
    /// Reasons of absence of null values.
    #[serde(flatten)]
    pub absent: Absences,
}

/// Numbers of jobs by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveTotals {
    /// All jobs of this run.
    pub jobs: usize,
    /// Jobs that have succeeded, failed or been cancelled.
    pub done: usize,
    /// Jobs that have failed, without those that were cancelled.
    pub failed: usize,
    /// Jobs that the user has ended.
    pub cancelled: usize,
    /// Jobs that have CPUs.
    pub running: usize,
    /// Jobs that have started and wait for CPUs.
    pub waiting: usize,
    /// Jobs that sleep, or have stopped themselves.
    pub sleeping: usize,
    /// Jobs that are being ended.
    pub ending: usize,
    /// Jobs that have not started.
    pub queued: usize,
    /// Maximum number of live jobs; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_live: Option<usize>,
    /// Jobs that will not start, since the run is ending.
    pub dropped: usize,
    /// Jobs of the batch that earlier runs did.
    pub earlier: usize,
    /// Estimated seconds until the end of the run.
    pub left_s: Option<f64>,
    /// The basis of the estimate.
    pub left_from: Option<LeftFrom>,
    /// Reasons of absence of null values.
    #[serde(flatten)]
    pub absent: Absences,
}

/// Resources that a run itself used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnUse {
    /// `cpu_s`, CPU time of its process in seconds; `cpu_share`, CPU time per time since its start.
    pub figures: Figures<f64>,
    /// Decisions made.
    pub decisions: u64,
}

/// The use of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuNow {
    /// Its number.
    pub cpu: u32,
    /// The job that has it for itself; null if none has.
    pub job: Option<u32>,
    /// Begin of that job's present stay, in seconds since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// The kernel time-shares it among jobs.
    pub shared: bool,
    /// Number of jobs that may use it now; that hold it, if a scheduler in the kernel says.
    pub jobs: u32,
}

impl CpuNow {
    /// A CPU without a job.
    pub(crate) fn idle(cpu: u32) -> CpuNow {
        CpuNow {
            cpu,
            job: None,
            since_s: None,
            shared: false,
            jobs: 0,
        }
    }
}

/// Numbers of jobs that a state leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Live jobs.
    pub live: usize,
    /// Jobs that wait to be let in.
    pub queued: usize,
    /// Jobs that have ended.
    pub ended: usize,
}

/// The state of a job.
#[derive(
    Clone, Copy, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum JobState {
    /// It has CPUs.
    Running,
    /// It has started and waits for CPUs.
    Waiting,
    /// It sleeps, or has stopped itself.
    Sleeping,
    /// It is being ended.
    Ending,
    /// It has not started.
    Queued,
    /// It has ended.
    Ended,
}

impl JobState {
    /// Return its word.
    pub fn text(self) -> &'static str {
        self.into()
    }
}

/// The reason of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonNow {
    /// The code, as in the events.
    pub why: String,
    /// The same in words, with its numbers.
    pub text: String,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobNow {
    /// Its number in the run.
    pub job: u32,
    /// Its unique name.
    pub name: String,
    /// Its command, quoted for a shell and clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its state.
    pub state: JobState,
    /// The CPUs that it may use now; that it holds, if a scheduler in the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The reason of its wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonNow>,
    /// How it ended, and what it used. Of a job that has not ended, when and how often it was started, and what it used so far.
    #[serde(flatten)]
    pub end: JobEnd,
    /// The basis of progress and slowdown: `trace`, `learnt`, `ipc` or `cpu-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_from: Option<String>,
    /// The basis of `share` and `left_s`: `solo`; `input` or `output`, if it is visible; or `same`, `changed` or `program`, as
    /// in `expected` of a run record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_from: Option<String>,
    /// Its numbers; see `docs/schema/status.json`.
    #[serde(default)]
    pub figures: Figures<f64>,
}

impl JobNow {
    /// Return the share of its work that is done in per cent, with `~` if other commands are the basis.
    pub fn share_text(&self) -> Option<String> {
        let percent = percent(*self.figures.get("share")?);
        Some(format!("{}{percent}", self.about()))
    }

    /// Return the time until its end; `late` if it has taken longer than expected.
    pub fn left_text(&self) -> Option<String> {
        match self.figures.entry("left_s")? {
            Ok(left_s) => Some(format!("{}{}", self.about(), clock(*left_s))),
            Err(OVERDUE) => Some("late".to_owned()),
            Err(_) => None,
        }
    }

    /// Return for how long it has waited, in seconds.
    pub fn waited_s(&self, now_s: f64) -> Option<f64> {
        let since_s = self.figures.get("waiting_since_s")?;
        Some((now_s - since_s).max(0.0))
    }

    /// Return when its turn comes at the latest, after a blank.
    pub fn turn_text(&self, now_s: f64) -> Option<String> {
        let left_s = self.figures.get("latest_s")? - now_s;
        if left_s <= 0.0 {
            return Some(" It comes before all others now.".to_owned());
        }
        let left = seconds(left_s);
        Some(format!(
            " In {left} at the latest it comes before all others."
        ))
    }

    fn about(&self) -> &'static str {
        if self.share_from.as_deref() == Some("program") {
            "~"
        } else {
            ""
        }
    }
}

impl LiveTotals {
    /// Return the numbers of jobs by state, in words.
    pub fn texts(&self) -> Vec<String> {
        let jobs = count(self.jobs as u64, "job");
        let mut texts = vec![format!("{} of {jobs} done", self.done)];
        for (number, what) in [
            (self.failed, "failed"),
            (self.cancelled, "cancelled"),
            (self.running, "running"),
            (self.waiting, "waiting"),
            (self.sleeping, "sleeping"),
            (self.ending, "to end"),
            (self.queued, "queued"),
            (self.dropped, "not to be started"),
            (self.earlier, "by earlier runs"),
        ] {
            if number > 0 {
                texts.push(format!("{number} {what}"));
            }
        }
        if let Some(most) = self.most_live
            && self.queued > 0
        {
            texts.push(format!("at most {most} live"));
        }
        texts
    }

    /// Return the time until the end of the run and its basis.
    pub fn left_text(&self) -> Option<String> {
        if self.absent.why("left_s") == Some(OVERDUE) {
            return Some(OVERDUE.to_owned());
        }
        let from = self.left_from?;
        let left = left_clock(self.left_s?, from == LeftFrom::Program);
        Some(format!("{left} left {}", from.text()))
    }
}

impl RunStatus {
    /// Parse a state, and make its text [`visible`]: root reads the states of other users' runs.
    ///
    /// # Errors
    /// The text is no state, or of an unknown version.
    pub fn from_json(text: &[u8]) -> Result<RunStatus, String> {
        let mut value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        make_visible(&mut value);
        let schema = value["schema"].as_str().unwrap_or_default();
        if schema != STATUS_SCHEMA {
            return Err(format!("expected `{STATUS_SCHEMA}`, found `{schema}`"));
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// Return its age in seconds, if the run should have written a newer one. A paused run writes none, nor does an idle one.
    pub fn old_s(&self) -> Option<f64> {
        let is_still = self.paused || self.is_idle();
        self.age_s.filter(|age_s| *age_s > OLD_S && !is_still)
    }

    /// Return whether the run waits for jobs to come.
    fn is_idle(&self) -> bool {
        let totals = &self.totals;
        totals.running + totals.waiting + totals.sleeping + totals.ending + totals.queued == 0
    }

    /// Note the age of the state. The time of an idle run goes on meanwhile.
    pub fn set_age(&mut self, age_s: f64) {
        self.age_s = Some(age_s);
        if self.is_idle() && !self.paused {
            self.elapsed_s += age_s;
        }
    }

    /// Return who has a CPU.
    pub fn holder_text(&self, cpu: &CpuNow) -> String {
        match cpu.job {
            Some(job) => match self.job(job) {
                Some(row) => row.name.clone(),
                None => format!("job {job}"),
            },
            None if cpu.shared => format!("shared by {}", count(cpu.jobs.into(), "job")),
            None if cpu.jobs > 0 => "lent".to_owned(),
            None => "idle".to_owned(),
        }
    }

    /// Return each CPU with who has it.
    pub fn holders_text(&self) -> String {
        let mut texts = Vec::new();
        for cpu in &self.cpus {
            texts.push(format!("{} {}", cpu.cpu, self.holder_text(cpu)));
        }
        texts.join(", ")
    }

    /// Return the job with this number, if the state has it.
    pub fn job(&self, job: u32) -> Option<&JobNow> {
        self.jobs.iter().find(|row| row.job == job)
    }
}

fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text),
        Value::Array(values) => values.iter_mut().for_each(make_visible),
        Value::Object(values) => values.values_mut().for_each(make_visible),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
