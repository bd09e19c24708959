//! Jobs that come while the run goes on: each line is a command, or a value for a command.

use super::command::os;
use super::job::JobInput;
use super::json_line::{self, Withdrawal, withdrawal};
use super::lines::{Line, Lines};
use super::list;
use super::template::ValueJobs;
use anyhow::Result;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Jobs that come while the run goes on.
pub(crate) struct Arriving {
    lines: Lines,
    each: Each,
    withdrawn: Vec<Withdrawal>,
}

/// What each line is.
enum Each {
    Command,
    Value(Box<ValueJobs>),
}

/// A job that has come.
pub(crate) struct Arrived {
    /// The line, for messages.
    pub(crate) place: String,
    /// What the user calls it, if the line says that and is no job.
    pub(crate) id: Option<String>,
    /// The job, or why there is none.
    pub(crate) job: Result<JobInput>,
}

impl Arriving {
    /// Commands that come at this path; `None` if the list there is complete, and has at most `most` bytes. With `waits` the first
    /// has come on return, or none will.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn commands(path: &Path, waits: bool, most: u64) -> Result<Option<Arriving>> {
        let Some(mut lines) = Lines::open(path, b'\n', most)? else {
            return Ok(None);
        };
        if waits {
            lines.wait()?;
        }
        let each = Each::Command;
        Ok(Some(Arriving {
            lines,
            each,
            withdrawn: Vec::new(),
        }))
    }

    /// Whether commands may come at this path while a run goes on.
    pub(crate) fn may_come(path: &Path) -> bool {
        Lines::may_come(path)
    }

    /// Commands for values that come.
    pub(crate) fn values(lines: Lines, jobs: Box<ValueJobs>) -> Arriving {
        let each = Each::Value(jobs);
        Arriving {
            lines,
            each,
            withdrawn: Vec::new(),
        }
    }

    /// Whether all jobs are one command with different values.
    pub(crate) fn is_of_one_command(&self) -> bool {
        matches!(self.each, Each::Value(_))
    }

    /// Whether no job will come.
    pub(crate) fn has_ended(&self) -> bool {
        let holds_some = match &self.each {
            Each::Command => false,
            Each::Value(jobs) => jobs.holds_some(),
        };
        self.lines.has_ended() && !holds_some
    }

    /// A descriptor that is readable once there may be more.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.lines.descriptor()
    }

    /// Whether each job is made from values.
    pub(crate) fn takes_values(&self) -> bool {
        matches!(self.each, Each::Value(_))
    }

    /// Begins a turn, in which only so much is read.
    pub(crate) fn begin_turn(&mut self) {
        self.lines.begin_turn();
    }

    /// Whether the turn ended before what is there was read.
    pub(crate) fn was_cut(&self) -> bool {
        self.lines.was_cut()
    }

    /// The withdrawals that came before the last job.
    pub(crate) fn withdrawn(&mut self) -> Vec<Withdrawal> {
        std::mem::take(&mut self.withdrawn)
    }

    /// The next job, if it is there.
    pub(crate) fn next(&mut self) -> Option<Arrived> {
        while let Some(Line { place, bytes }) = self.lines.next() {
            let line = bytes.as_deref().unwrap_or_default();
            if let (Each::Command, Some(withdrawal)) = (&self.each, withdrawal(line)) {
                self.withdrawn.push(withdrawal);
                continue;
            }
            let job = match (&bytes, &mut self.each) {
                (Err(why), _) => Err(anyhow::Error::msg(why.clone())),
                (Ok(line), Each::Command) => list::job(line, &place),
                (Ok(value), Each::Value(jobs)) => jobs.take(os(value)),
            };
            if let Some(job) = job.transpose() {
                let id = job.is_err().then(|| json_line::id(line)).flatten();
                return Some(Arrived { place, id, job });
            }
        }
        match &mut self.each {
            Each::Value(jobs) if self.lines.has_ended() => {
                let job = jobs.rest()?;
                let place = "the last values".to_owned();
                let id = None;
                Some(Arrived { place, id, job })
            }
            _ => None,
        }
    }
}
