//! A connection to the window of a run.

use cosched_report::Status;
use cosched_run::{Request, WINDOW_SCHEMA};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// No answer is longer.
const MOST_ANSWER: usize = 256 << 20;

/// A connection to a run, on which one request is answered after the other.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    heard: Vec<u8>,
    /// So much of it holds no end of a line.
    looked_at: usize,
}

/// What a window answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The state of the run, and how old it is in seconds.
    Status(Box<Status>, f64),
    /// There is no state, in words why.
    Absent(String),
    /// The run was told of a wish.
    Done,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    schema: String,
    #[serde(default)]
    age_s: Option<f64>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(default)]
    status_absent: Option<String>,
    #[serde(default)]
    done: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Client {
    /// A connection that never blocks.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Client> {
        stream.set_nonblocking(true)?;
        Ok(Client {
            stream,
            heard: Vec::new(),
            looked_at: 0,
        })
    }

    /// Asks for something.
    ///
    /// # Errors
    /// The run takes nothing. That it has ended is told when the answer is taken.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        // A request is far shorter than what a socket takes at once. Who is refused is told why, after which nothing more
        // is taken: that is for [`Client::take`].
        match self.stream.write_all(&line) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            asked => asked,
        }
    }

    /// Takes what has come; the answer, once it is whole. Does not wait.
    ///
    /// # Errors
    /// `UnexpectedEof` where the run has ended; `InvalidData` where it answers what this version does not understand.
    pub(crate) fn take(&mut self) -> io::Result<Option<Answer>> {
        let mut piece = [0; 64 << 10];
        loop {
            if let Some(end) = self.heard[self.looked_at..]
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let end = self.looked_at + end;
                let answer = read(&self.heard[..end]);
                self.heard.drain(..=end);
                self.looked_at = 0;
                return answer.map(Some);
            }
            self.looked_at = self.heard.len();
            if self.heard.len() > MOST_ANSWER {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => self.heard.extend_from_slice(&piece[..got]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// As [`Client::take`]; `TimedOut` where none comes in time.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<Answer> {
        let end = Instant::now() + limit;
        loop {
            if let Some(answer) = self.take()? {
                return Ok(answer);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(
                &mut [PollFd::new(&self.stream, PollFlags::IN)],
                Some(&timeout),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn read(line: &[u8]) -> io::Result<Answer> {
    let envelope: Envelope<'_> =
        serde_json::from_slice(line).map_err(|error| invalid(error.to_string()))?;
    if envelope.schema != WINDOW_SCHEMA {
        return Err(invalid(format!(
            "it speaks `{}`, and this is `{WINDOW_SCHEMA}`",
            envelope.schema
        )));
    }
    if let Some(error) = envelope.error {
        return Err(invalid(error));
    }
    if envelope.done.is_some() {
        return Ok(Answer::Done);
    }
    match envelope.status {
        Some(status) if status.get() != "null" => {
            let status = Status::from_json(status.get().as_bytes()).map_err(invalid)?;
            Ok(Answer::Status(
                Box::new(status),
                envelope.age_s.unwrap_or(0.0),
            ))
        }
        _ => Ok(Answer::Absent(
            envelope
                .status_absent
                .unwrap_or_else(|| "it tells no reason".to_owned()),
        )),
    }
}
