//! `--progress-to`: a JSON line for each start and end of a job, and for the whole run once a second, for a program that
//! follows it. docs/schema/progress-line.json describes the lines.

use crate::exit::usage;
use crate::input::told;
use anyhow::Result;
use cosched_core::{Exit, Nanos, TaskResult, TaskSpec};
use cosched_report::{JobInfo, LiveProgress, Notice, RunWarning, exit_status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the lines go.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressTarget {
    /// A file, a named pipe, or a descriptor as `/dev/fd/3`.
    File(PathBuf),
    /// A socket that another program listens at.
    Socket(PathBuf),
}

impl FromStr for ProgressTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<ProgressTarget, String> {
        if let Ok(number) = text.parse::<u32>() {
            let path = format!("/dev/fd/{number}");
            return Ok(ProgressTarget::File(path.into()));
        }
        match text.strip_prefix("unix:") {
            Some("") => Err("expected a path after `unix:`, as in unix:/run/me.sock".to_owned()),
            Some(path) => Ok(ProgressTarget::Socket(path.into())),
            None => Ok(ProgressTarget::File(text.into())),
        }
    }
}

impl ProgressTarget {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            ProgressTarget::File(path) => Some(path),
            ProgressTarget::Socket(_) => None,
        }
    }
}

/// Connects to a socket that another program listens at.
///
/// # Errors
/// Nobody listens.
pub(crate) fn connect(socket: &Path) -> Result<File> {
    let connected = UnixStream::connect(socket).map_err(|error| {
        let socket = told(socket);
        usage(format!(
            "--progress-to unix:{socket}: {error}; nothing was started; start the program that listens there"
        ))
    })?;
    Ok(OwnedFd::from(connected).into())
}

/// A reader that is behind by more than this gets nothing more.
const MOST_WAITING: usize = 4 << 20;

/// How long the end of the run waits for the reader.
const PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Least time between two lines about the run.
const EVERY: Nanos = Nanos::from_ms(1_000);

/// Writes the lines. A reader that stands still does not hold up the run.
pub(crate) struct ProgressTo {
    /// `None` once nothing more can be written.
    out: Option<File>,
    waiting: Vec<u8>,
    next: Nanos,
    lost: Option<String>,
}

/// A line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    Start {
        #[serde(flatten)]
        job: Who<'a>,
        at_s: f64,
    },
    Retry {
        #[serde(flatten)]
        job: Who<'a>,
        #[serde(flatten)]
        how: How,
        attempt: u32,
    },
    End {
        #[serde(flatten)]
        job: Who<'a>,
        #[serde(flatten)]
        how: How,
    },
    Progress {
        total: usize,
        done: usize,
        failed: usize,
        running: usize,
        waiting: usize,
        queued: usize,
        elapsed_s: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_s: Option<f64>,
    },
}

/// The job of a line.
#[derive(Serialize)]
struct Who<'a> {
    job: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
}

impl<'a> Who<'a> {
    fn of(spec: &'a TaskSpec, info: Option<&'a JobInfo>) -> Who<'a> {
        Who {
            job: info.map_or(u64::from(spec.id.0) + 1, |info| info.seq),
            id: info.and_then(|info| info.id.as_deref()),
            name: &spec.name,
        }
    }
}

/// How a job ended, and what it used. What is not known is left out.
#[derive(Serialize)]
struct How {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    exit_text: String,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rss_bytes: Option<u64>,
}

impl How {
    fn of(result: &TaskResult) -> How {
        let exit = result.exit.as_ref();
        How {
            exit: exit.and_then(exit_status),
            signal: match exit {
                Some(Exit::Signal { signal, .. }) => Some(*signal),
                _ => None,
            },
            exit_text: exit.map(Exit::to_string).unwrap_or_default(),
            timed_out: result.timed_out,
            start_s: result.started.map(Nanos::as_s),
            end_s: result.finished.map(Nanos::as_s),
            cpu_s: result.cpu_time.value().map(Nanos::as_s),
            max_rss_bytes: result.resources.max_rss.value(),
        }
    }
}

impl ProgressTo {
    /// Writes to this file or socket.
    ///
    /// # Errors
    /// It can't be made non-blocking.
    pub(crate) fn new(out: File) -> io::Result<ProgressTo> {
        let flags = fcntl_getfl(&out)?;
        fcntl_setfl(&out, flags | OFlags::NONBLOCK)?;
        Ok(ProgressTo {
            out: Some(out),
            waiting: Vec::new(),
            next: Nanos::ZERO,
            lost: None,
        })
    }

    /// Writes what a notice says to the reader.
    pub(crate) fn report(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Started { task, info, at, .. } => self.write(&Line::Start {
                job: Who::of(task, *info),
                at_s: at.as_s(),
            }),
            Notice::Retried { result, info } => self.write(&Line::Retry {
                job: Who::of(&result.spec, *info),
                how: How::of(result),
                attempt: result.runs,
            }),
            Notice::Ended { result, info, .. } => self.write(&Line::End {
                job: Who::of(&result.spec, *info),
                how: How::of(result),
            }),
            Notice::Progress(progress) => self.progress(progress),
            Notice::Starting { .. }
            | Notice::Lost { .. }
            | Notice::Status(_)
            | Notice::Warning(_) => {}
        }
    }

    fn progress(&mut self, progress: &LiveProgress) {
        if progress.elapsed < self.next {
            return;
        }
        self.next = progress.elapsed + EVERY;
        self.write(&Line::Progress {
            total: progress.total,
            done: progress.done,
            failed: progress.failed,
            running: progress.running,
            waiting: progress.waiting,
            queued: progress.queued,
            elapsed_s: progress.elapsed.as_s(),
            left_s: progress.left.map(Nanos::as_s),
        });
    }

    fn write(&mut self, line: &Line<'_>) {
        if self.out.is_none() {
            return;
        }
        // Plain data: it can't fail to serialise.
        self.waiting
            .extend(serde_json::to_vec(line).unwrap_or_default());
        self.waiting.push(b'\n');
        self.flush();
        if self.waiting.len() > MOST_WAITING {
            self.give_up("its reader stands still".to_owned());
        }
    }

    /// Writes what the target takes now.
    fn flush(&mut self) {
        while let Some(out) = self.out.as_mut().filter(|_| !self.waiting.is_empty()) {
            match out.write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.give_up(error.to_string()),
            }
        }
    }

    fn give_up(&mut self, why: String) {
        self.out = None;
        self.waiting = Vec::new();
        self.lost = Some(why);
    }

    /// The warning that the reader gets nothing more, once.
    pub(crate) fn take_warning(&mut self) -> Option<RunWarning> {
        let why = self.lost.take()?;
        Some(RunWarning::ProgressLost { why })
    }

    /// Writes what is left, if the reader takes it soon.
    pub(crate) fn finish(&mut self) {
        self.flush();
        while !self.waiting.is_empty() {
            let Some(out) = &self.out else { return };
            let mut fds = [PollFd::new(out, PollFlags::OUT)];
            if !matches!(poll(&mut fds, Some(&PATIENCE)), Ok(1..)) {
                return self.give_up("its reader stands still".to_owned());
            }
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::result;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    fn ended(to: &mut ProgressTo) {
        let result = result(1_000, Exit::Code(3), None);
        to.report(&Notice::Ended {
            result: &result,
            info: None,
            progress: &LiveProgress::default(),
        });
    }

    #[test]
    fn a_reader_that_stands_still_or_leaves_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let open = || {
            let to = ProgressTo::new(connect(&path).unwrap()).unwrap();
            (to, listener.accept().unwrap().0)
        };
        let (mut to, reader) = open();
        while to.out.is_some() {
            ended(&mut to);
        }
        let warning = to.take_warning().unwrap().text();
        assert!(warning.contains("stands still"), "{warning}");
        assert!(to.take_warning().is_none());
        let first = BufReader::new(reader).lines().next().unwrap().unwrap();
        let line: serde_json::Value = serde_json::from_str(&first).unwrap();
        assert_eq!((&line["event"], &line["exit"]), (&"end".into(), &3.into()));
        let (mut to, reader) = open();
        drop(reader);
        ended(&mut to);
        ended(&mut to);
        assert!(to.take_warning().is_some());
    }

    #[test]
    fn targets() {
        let of = |text: &str| text.parse::<ProgressTarget>().unwrap();
        assert_eq!(of("3"), ProgressTarget::File("/dev/fd/3".into()));
        assert_eq!(of("a"), ProgressTarget::File("a".into()));
        assert_eq!(of("unix:/a"), ProgressTarget::Socket("/a".into()));
        assert!("unix:".parse::<ProgressTarget>().is_err());
        let nobody = connect(Path::new("/no/such/socket"))
            .unwrap_err()
            .to_string();
        assert!(nobody.contains("--progress-to unix:/no/such/socket: "));
    }
}
