//! Jobs that come while the run goes on: each line is a command, or a value for a command.

use super::command::os;
use super::job::JobInput;
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
    /// The job, or why there is none.
    pub(crate) job: Result<JobInput>,
}

impl Arriving {
    /// Commands that come at this path; `None` if the list there is complete.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn commands(path: &Path) -> Result<Option<Arriving>> {
        let Some(mut lines) = Lines::open(path, b'\n')? else {
            return Ok(None);
        };
        lines.wait()?;
        let each = Each::Command;
        Ok(Some(Arriving { lines, each }))
    }

    /// Commands for values that come.
    pub(crate) fn values(lines: Lines, jobs: Box<ValueJobs>) -> Arriving {
        let each = Each::Value(jobs);
        Arriving { lines, each }
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

    /// The next job, if it is there.
    pub(crate) fn next(&mut self) -> Option<Arrived> {
        while let Some(Line { place, bytes }) = self.lines.next() {
            let bytes = bytes.map_err(anyhow::Error::msg);
            let job = match &mut self.each {
                Each::Command => bytes.and_then(|line| list::job(&line, &place)),
                Each::Value(jobs) => bytes.and_then(|value| jobs.take(os(&value))),
            };
            if let Some(job) = job.transpose() {
                return Some(Arrived { place, job });
            }
        }
        match &mut self.each {
            Each::Value(jobs) if self.lines.has_ended() => {
                let job = jobs.rest()?;
                let place = "the last values".to_owned();
                Some(Arrived { place, job })
            }
            _ => None,
        }
    }
}
