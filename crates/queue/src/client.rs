//! A client of the service.

use crate::protocol::{QueueAnswer, QueueRequest, write_line};
use cosched_linux::root::Root;
use cosched_linux::service::is_stopped;
use rustix::net::sockopt::socket_peercred;
use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the service may take for an answer. It writes to a disk first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a client looks whether the service stands still.
const LOOK: Duration = Duration::from_secs(1);

/// A connection to the service.
#[derive(Debug)]
pub struct QueueClient {
    stream: BufReader<UnixStream>,
    /// The process that listens.
    pid: i32,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No service listens.
    #[error("no service listens at {}; start one with `cosched serve`, or enable cosched.socket (`cosched help queue`)", .0.display())]
    NotServed(PathBuf),
    /// It can't be connected to.
    #[error("{}: {source}", path.display())]
    System {
        /// Its socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It stands still.
    #[error("the service, process {0}, is stopped; `kill -CONT {0}` continues it")]
    Stopped(i32),
    /// It takes too long.
    #[error(
        "the service, process {0}, has not answered for a minute; if it hangs, kill it and start it again: no job is lost"
    )]
    Silent(i32),
    /// It ended.
    #[error("the service has ended; its jobs go on. Start it again with `cosched serve`")]
    Gone,
    /// It refused the request.
    #[error("{0}")]
    Refused(String),
}

impl QueueClient {
    /// Connects to the service that listens at this path.
    ///
    /// # Errors
    /// None listens, or it stands still.
    pub fn connect(path: &Path) -> Result<QueueClient, ClientError> {
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                ClientError::NotServed(path.to_owned())
            }
            _ => ClientError::System {
                path: path.to_owned(),
                source,
            },
        })?;
        let peer = socket_peercred(&stream);
        let pid = peer.map_or(0, |peer| peer.pid.as_raw_nonzero().get());
        if is_stopped(&Root::default(), pid) {
            return Err(ClientError::Stopped(pid));
        }
        let _ = stream.set_read_timeout(Some(LOOK));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let stream = BufReader::new(stream);
        Ok(QueueClient { stream, pid })
    }

    /// Sends a request, and reads the first answer.
    ///
    /// # Errors
    /// There is none, or the service refused the request.
    pub fn ask(&mut self, request: &QueueRequest) -> Result<QueueAnswer, ClientError> {
        if let QueueRequest::Wait(_) = request {
            let _ = self.stream.get_ref().set_read_timeout(None);
        }
        // A service that refuses a client answers before it reads.
        let written = write_line(self.stream.get_ref(), request);
        self.further().map_err(|error| match written {
            Err(why) if why.kind() == ErrorKind::WouldBlock => ClientError::Silent(self.pid),
            _ => error,
        })
    }

    /// Reads a further answer.
    ///
    /// # Errors
    /// There is none, or the service refused the request.
    pub fn further(&mut self) -> Result<QueueAnswer, ClientError> {
        let mut line = Vec::new();
        let end = Instant::now() + PATIENCE;
        loop {
            match self.stream.read_until(b'\n', &mut line) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) | Ok(0) => return Err(ClientError::Gone),
                Ok(_) => break,
            }
            if is_stopped(&Root::default(), self.pid) {
                return Err(ClientError::Stopped(self.pid));
            }
            if Instant::now() > end {
                return Err(ClientError::Silent(self.pid));
            }
        }
        match serde_json::from_slice(&line) {
            Ok(QueueAnswer::Error { error }) => Err(ClientError::Refused(error)),
            Ok(answer) => Ok(answer),
            Err(_) if line.last() != Some(&b'\n') => Err(ClientError::Gone),
            Err(error) => Err(ClientError::Refused(format!(
                "the service has another version: {error}"
            ))),
        }
    }
}
