//! A job of the queue.

use cosched_core::{Exit, JobEnd};
use cosched_linux::unix_time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What a run exits with, and timeout(1), if a job took too long.
const TIMED_OUT: u8 = 124;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueuedJobState {
    /// It has not started.
    Queued,
    /// It has started.
    Running,
    /// It ended; its exit or signal is known.
    Ended,
    /// A user cancelled it.
    Cancelled,
    /// It ended, and its exit is not known: its reaper was killed.
    Unknown,
    /// The machine restarted while it ran.
    Lost,
}

impl QueuedJobState {
    /// Whether nothing more happens to a job.
    pub fn is_over(self) -> bool {
        !matches!(self, QueuedJobState::Queued | QueuedJobState::Running)
    }

    /// Its name.
    pub fn text(self) -> &'static str {
        match self {
            QueuedJobState::Queued => "queued",
            QueuedJobState::Running => "running",
            QueuedJobState::Ended => "ended",
            QueuedJobState::Cancelled => "cancelled",
            QueuedJobState::Unknown => "unknown",
            QueuedJobState::Lost => "lost",
        }
    }
}

/// A job of the queue. What is not known is left out. Moments are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedJob {
    /// Its number.
    pub id: u64,
    /// How often it was queued: 1, and 1 more each time that it is run again.
    pub attempt: u32,
    /// Its name.
    pub name: String,
    /// Its command, as a shell would take it.
    pub command: String,
    /// Where it stands.
    pub state: QueuedJobState,
    /// Whether a user wants it to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// The boot of the machine in which it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// When it was submitted.
    pub submitted_at: f64,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<f64>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<f64>,
    /// Whether an earlier worker may have started a reaper for it that has not begun yet.
    #[serde(skip)]
    pub(crate) has_late_reaper: bool,
    /// Whether the worker has said that it ended.
    #[serde(skip)]
    pub(crate) is_end_told: bool,
    /// How it ended.
    #[serde(flatten)]
    pub end: JobEnd,
    /// The file of its output. The service fills it in.
    #[serde(default)]
    pub out: PathBuf,
    /// The file of its error output.
    #[serde(default)]
    pub err: PathBuf,
}

impl QueuedJob {
    /// A job that was just submitted. It has no number yet.
    pub(crate) fn queued(name: String, command: String) -> QueuedJob {
        QueuedJob {
            id: 0,
            attempt: 1,
            name,
            command,
            state: QueuedJobState::Queued,
            cancel: false,
            boot: None,
            submitted_at: unix_time().as_secs_f64(),
            started_at: None,
            ended_at: None,
            has_late_reaper: false,
            is_end_told: false,
            end: JobEnd::default(),
            out: PathBuf::new(),
            err: PathBuf::new(),
        }
    }

    /// Queues a job that was over.
    pub(crate) fn queue_again(&mut self) {
        self.attempt += 1;
        self.state = QueuedJobState::Queued;
        (self.boot, self.started_at, self.ended_at) = (None, None, None);
        self.has_late_reaper = false;
        self.is_end_told = false;
        self.end = JobEnd::default();
    }

    /// The name of its files: its number and its attempt.
    pub(crate) fn key(&self) -> String {
        format!("{}-{}", self.id, self.attempt)
    }

    /// Its name in the run, with number and attempt.
    pub fn name_in_run(&self) -> String {
        format!("{}#{}", self.name, self.key())
    }

    /// When it came into its state.
    pub fn since(&self) -> f64 {
        let started = match self.state {
            QueuedJobState::Queued => None,
            _ => self.started_at,
        };
        self.ended_at.or(started).unwrap_or(self.submitted_at)
    }

    /// Its exit code, as a shell has it: 128 + n for signal n, and 124 if it took too long. `None` if it was cancelled or
    /// lost, or is unknown.
    pub fn code(&self) -> Option<u8> {
        if self.state != QueuedJobState::Ended {
            return None;
        }
        if self.end.timed_out {
            return Some(TIMED_OUT);
        }
        self.end.exit?.try_into().ok()
    }

    /// Why it could not be started, if that is so.
    pub fn why_not_started(&self) -> Option<String> {
        match self.end.exit() {
            Exit::NotStarted(why) => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for QueuedJob {
    /// What became of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.state != QueuedJobState::Ended {
            return f.write_str(self.state.text());
        }
        match self.end.exit() {
            Exit::NotStarted(_) => f.write_str("not started"),
            _ => f.write_str(&self.end.text()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A job that was just queued.
    pub(crate) fn job(id: u64) -> QueuedJob {
        QueuedJob {
            id,
            submitted_at: 1e9,
            out: format!("/logs/{id}-1.out").into(),
            err: format!("/logs/{id}-1.err").into(),
            ..QueuedJob::queued("sleep".to_owned(), "sleep 1".to_owned())
        }
    }

    #[test]
    fn ends_are_told_as_a_shell_does() {
        let mut job = job(7);
        assert_eq!((job.code(), job.since()), (None, 1e9));
        job.state = QueuedJobState::Ended;
        let (signal, oom) = (9, false);
        job.end = JobEnd::of_exit(&Exit::Signal { signal, oom });
        assert_eq!((job.code(), &*job.to_string()), (Some(137), "SIGKILL"));
        job.end.timed_out = true;
        assert_eq!(
            (job.code(), &*job.to_string()),
            (Some(124), "timed out with SIGKILL")
        );
        job.end = JobEnd::of_exit(&Exit::Code(3));
        job.ended_at = Some(2e9);
        assert_eq!((job.code(), &*job.to_string()), (Some(3), "exit 3"));
        assert_eq!((job.since(), &*job.key()), (2e9, "7-1"));
        job.state = QueuedJobState::Lost;
        assert_eq!((job.code(), &*job.to_string()), (None, "lost"));
    }
}
