//! The state of a run that goes on, for those who look at it: [`build`] makes it, [`over`] brings it to the end of the run,
//! [`tables`] shows it in words, [`metrics`] as metrics.

mod build;
mod metrics;
mod over;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use build::Live;
pub use metrics::{MetricsFormat, metrics_text};
pub use tables::{RunLine, jobs_text, runs_text};

use crate::figures::{Absences, Figures};
use crate::progress::{LeftFrom, OVERDUE, left_clock};
use crate::record::Energy;
use crate::text::{clock, visible};
use serde::{Deserialize, Serialize};

/// The schema of the state of a run.
pub const STATUS_SCHEMA: &str = "cosched.status/1";

/// The state of a run at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`STATUS_SCHEMA`].
    pub schema: String,
    /// The version that runs.
    pub cosched_version: String,
    /// What does not change.
    pub run: RunFacts,
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// How many jobs do what.
    pub totals: LiveTotals,
    /// Energy so far.
    pub energy: Energy,
    /// What the run itself has used.
    pub own: OwnUse,
    /// Who has each CPU, in ascending order.
    pub cpus: Vec<CpuNow>,
    /// Jobs: those that have been let in, by their numbers; then those that come next; then those that have ended, the last
    /// first.
    pub jobs: Vec<JobNow>,
    /// Jobs that are not among them, since there are too many.
    pub left_out: LeftOut,
}

/// What does not change while a run goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFacts {
    /// Its identity, as in `COSCHED_RUN` of its jobs.
    pub run_id: String,
    /// Its process.
    pub pid: u32,
    /// The policy that decides.
    pub policy: String,
    /// `together`, or `alone` while each job runs alone first.
    pub phase: String,
    /// The machine's name.
    pub machine: String,
    /// The CPUs of the run.
    pub cpus: String,
    /// When it started, RFC 3339 in UTC.
    pub started_at: Option<String>,
    /// The policy's ordinary quantum in seconds.
    pub quantum_s: f64,
    /// For how long a job that has begun stays without a place, in seconds.
    pub max_pause_s: f64,
    /// Its log folder.
    pub folder: Option<String>,
    /// The run record that it will write.
    pub record: Option<String>,
    /// The series that it writes.
    pub series: Option<String>,
    /// The words of the command line, each as a shell would take it.
    pub command_line: Option<Vec<String>>,
    /// Why what is null is absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// How many jobs do what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveTotals {
    /// All jobs of this run.
    pub jobs: usize,
    /// Those that have ended, well or not.
    pub done: usize,
    /// Those of them that have failed.
    pub failed: usize,
    /// Those that have a place on CPUs.
    pub running: usize,
    /// Those that have begun and wait for their turn.
    pub waiting: usize,
    /// Those that sleep, or have stopped themselves.
    pub sleeping: usize,
    /// Those that were asked to end.
    pub ending: usize,
    /// Those that have not begun.
    pub queued: usize,
    /// Those that are not started any more, since the run is to end.
    pub dropped: usize,
    /// Jobs of the batch that earlier runs did.
    pub earlier: usize,
    /// Estimated seconds until the end of the run.
    pub left_s: Option<f64>,
    /// What that rests on.
    pub left_from: Option<LeftFrom>,
    /// Why what is null is absent.
    #[serde(flatten)]
    pub absent: Absences,
}

/// What a run itself has used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnUse {
    /// `cpu_s`, CPU time of its process in seconds; `cpu_share`, that over the time since its start.
    pub figures: Figures<f64>,
    /// Decisions made.
    pub decisions: u64,
}

/// Who has a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuNow {
    /// Its number.
    pub cpu: u32,
    /// The job that has it for itself; null if nobody has.
    pub job: Option<u32>,
    /// Since when that job has run without a break, in seconds since the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// The kernel shares it out among jobs.
    pub shared: bool,
    /// How many jobs may use it now; how many have it, where a scheduler in the kernel tells.
    pub jobs: u32,
}

/// Jobs that a state leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Those that have been let in.
    pub live: usize,
    /// Those that have not.
    pub queued: usize,
    /// Those that have ended.
    pub ended: usize,
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// It has a place on CPUs.
    Running,
    /// It has begun and waits for its turn.
    Waiting,
    /// It sleeps, or has stopped itself.
    Sleeping,
    /// It was asked to end.
    Ending,
    /// It has not begun.
    Queued,
    /// It has ended.
    Ended,
}

impl JobState {
    /// All of them.
    pub const ALL: [JobState; 6] = [
        JobState::Running,
        JobState::Waiting,
        JobState::Sleeping,
        JobState::Ending,
        JobState::Queued,
        JobState::Ended,
    ];

    /// The word for it.
    pub fn text(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Waiting => "waiting",
            JobState::Sleeping => "sleeping",
            JobState::Ending => "ending",
            JobState::Queued => "queued",
            JobState::Ended => "ended",
        }
    }
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
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
    /// Its command, as a shell would take it; cut off where it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it does.
    pub state: JobState,
    /// The CPUs that it may use now; those that it has, where a scheduler in the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How it ended, as in a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_text: Option<String>,
    /// How often it has been started, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// What progress and slowdown rest on: `trace`, `learnt`, `ipc` or `cpu-time`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_from: Option<String>,
    /// Whose times `share` and `left_s` rest on: `solo`, or as in `expected` of a run record `same`, `changed` or `program`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_from: Option<String>,
    /// Everything that is a number, see `docs/formats.md`.
    #[serde(default)]
    pub figures: Figures<f64>,
}

impl JobNow {
    /// How much of its work is done, in per cent: never all of it, and with `~` by what is known of other commands.
    pub fn share_text(&self) -> Option<String> {
        let share = self.figures.get("share")?;
        Some(format!("{}{:.0} %", self.about(), (100.0 * share).floor()))
    }

    /// The time until its end, in the same way. Of a job that has taken longer than expected it is `late`.
    pub fn left_text(&self) -> Option<String> {
        match self.figures.get("left_s") {
            Some(left_s) => Some(format!("{}{}", self.about(), clock(*left_s))),
            None => (self.figures.why("left_s") == Some(OVERDUE)).then(|| "late".to_owned()),
        }
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
    /// The time until the end of the run and what it rests on; why it is not known is not told here.
    pub fn left_text(&self) -> Option<String> {
        match (self.left_s, self.left_from) {
            (Some(left_s), Some(from)) => Some(format!(
                "{} left {}",
                left_clock(left_s, from == LeftFrom::Program),
                from.text()
            )),
            (Some(left_s), None) => Some(format!("{} left", clock(left_s))),
            (None, _) => (self.absent.why("left_s") == Some(OVERDUE)).then(|| OVERDUE.to_owned()),
        }
    }
}

impl Status {
    /// Reads a state.
    ///
    /// # Errors
    /// It is none, or of a version that this one does not know.
    pub fn from_json(text: &[u8]) -> Result<Status, String> {
        let status: Status = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if status.schema == STATUS_SCHEMA {
            Ok(status)
        } else {
            Err(format!(
                "expected `{STATUS_SCHEMA}`, found `{}`",
                status.schema
            ))
        }
    }

    /// The same with all text that is shown made [`visible`]. Whoever owns a run can have anything in its state, and root looks at
    /// the runs of others.
    pub fn made_visible(mut self) -> Status {
        let show = |text: &mut String| *text = visible(text);
        let run = &mut self.run;
        [
            &mut run.run_id,
            &mut run.policy,
            &mut run.phase,
            &mut run.machine,
            &mut run.cpus,
        ]
        .into_iter()
        .for_each(show);
        let paths = [
            &mut run.started_at,
            &mut run.folder,
            &mut run.record,
            &mut run.series,
        ];
        paths.into_iter().flatten().for_each(show);
        run.command_line.iter_mut().flatten().for_each(show);
        for job in &mut self.jobs {
            show(&mut job.name);
            let texts = [
                &mut job.command,
                &mut job.cpus,
                &mut job.exit_text,
                &mut job.progress_from,
                &mut job.share_from,
            ];
            texts.into_iter().flatten().for_each(show);
            job.reason.iter_mut().for_each(|reason| {
                [&mut reason.why, &mut reason.text]
                    .into_iter()
                    .for_each(show)
            });
        }
        self
    }

    /// The job of that number, if it is in the state.
    pub fn job(&self, job: u32) -> Option<&JobNow> {
        self.jobs.iter().find(|row| row.job == job)
    }
}
