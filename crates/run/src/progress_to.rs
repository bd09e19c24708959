//! `--progress-to`: a JSON line for each start and end of a job, and for the whole run once a second, for a program that
//! follows it. docs/schema/progress-line.json describes the lines.

use crate::exit::usage;
use crate::input::told;
use crate::job_frames::Events;
use anyhow::Result;
use cosched_nodes::protocol::WorkerFrame;
use cosched_report::{RunNews, RunWarning};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
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
const MOST_WAITING: usize = 16 << 20;

/// How long the end of the run waits for the reader.
const PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Writes the lines. A reader that stands still does not hold up the run.
pub(crate) struct ProgressTo {
    /// `None` once nothing more can be written.
    out: Option<File>,
    waiting: Vec<u8>,
    events: Events,
    lost: Option<String>,
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
            events: Events::default(),
            lost: None,
        })
    }

    /// Writes what is told to the reader, and what it has not taken before.
    pub(crate) fn report(&mut self, told: &RunNews<'_>) {
        match self.events.frame(told) {
            Some(frame) => self.write(&frame),
            None => self.flush(),
        }
    }

    /// Whether its reader has not taken all yet.
    pub(crate) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn write(&mut self, frame: &WorkerFrame) {
        if self.out.is_none() {
            return;
        }
        // Plain data: it can't fail to serialise.
        self.waiting
            .extend(serde_json::to_vec(frame).unwrap_or_default());
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
    use cosched_core::{Exit, Fact, Nanos};
    use cosched_report::LiveProgress;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    fn ended(to: &mut ProgressTo) {
        let result = result(1_000, Exit::Code(3), None);
        to.report(&RunNews::Fact {
            at: Nanos::from_s(1.0),
            fact: Fact::Ended(&result),
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
    fn a_slow_reader_gets_all_once_it_reads_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut to = ProgressTo::new(connect(&path).unwrap()).unwrap();
        let mut sent = 0;
        while !to.is_behind() {
            ended(&mut to);
            sent += 1;
        }
        let mut lines = BufReader::new(listener.accept().unwrap().0).lines();
        assert!(lines.next().unwrap().is_ok());
        // Nothing new happens, but the loop asks again.
        let first = LiveProgress::default();
        to.report(&RunNews::Progress(&first));
        while to.is_behind() {
            assert!(lines.next().unwrap().is_ok());
            sent -= 1;
            to.report(&RunNews::Progress(&first));
        }
        drop(to);
        let told = lines.map_while(Result::ok);
        let ends = told.filter(|line| line.contains("\"end\"")).count();
        assert_eq!(ends + 1, sent);
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
