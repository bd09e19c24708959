//! The coordinator's connection to the worker of a node: the process that carries the pipes, which never block.

use crate::protocol::{FrameError, FramePiece, FrameReader, NodeOrder};
use cosched_linux::settle_child;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time between two beats to a worker.
pub(crate) const BEAT: Duration = Duration::from_secs(5);

/// A worker that says nothing for so long is lost. It beats every 3 s.
const SILENCE: Duration = Duration::from_secs(10);

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// Reads of one worker before others have their turn.
const TURN: usize = 16;

/// How often, and after which pauses, the end of a process is awaited that has closed its output.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Longest text of the last error message.
const MOST_OF_ERROR: usize = 500;

/// A running worker.
pub(crate) struct WorkerLink {
    child: Child,
    /// `None` once it takes nothing more.
    input: Option<ChildStdin>,
    output: ChildStdout,
    errors: ChildStderr,
    to_send: Vec<u8>,
    frames: FrameReader,
    /// The last that came from standard error.
    complaint: Vec<u8>,
    heard: Instant,
    beaten: Instant,
}

/// What a read of a worker found.
pub(crate) enum WorkerRead {
    /// It goes on.
    Goes,
    /// It has closed its output.
    Ended,
}

/// Why a worker can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The system refused it.
    #[error("{0}")]
    System(#[from] io::Error),
    /// It says something else than frames.
    #[error("{0}")]
    Frame(#[from] FrameError),
}

impl WorkerLink {
    /// Starts the process that leads to a worker. A Ctrl-C of the terminal does not reach it.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) fn start(words: &[OsString]) -> io::Result<WorkerLink> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        settle_child(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        for pipe in [input.as_fd(), output.as_fd(), errors.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(WorkerLink {
            child,
            input: Some(input),
            output,
            errors,
            to_send: Vec::new(),
            frames: FrameReader::default(),
            complaint: Vec::new(),
            heard: Instant::now(),
            beaten: Instant::now(),
        })
    }

    /// Sends an order, now or once there is room.
    pub(crate) fn send(&mut self, order: &NodeOrder) {
        self.add_line(&order.line());
        self.flush();
    }

    /// Adds a line, with its end, to what the next flush sends.
    pub(crate) fn add_line(&mut self, line: &[u8]) {
        self.to_send.extend_from_slice(line);
    }

    /// Sends a beat if one is due.
    pub(crate) fn beat(&mut self, now: Instant) {
        if now.duration_since(self.beaten) >= BEAT {
            self.beaten = now;
            self.send(&NodeOrder::Beat);
        }
    }

    /// Writes what the worker takes now.
    pub(crate) fn flush(&mut self) {
        while let Some(input) = self.input.as_mut().filter(|_| !self.to_send.is_empty()) {
            match input.write(&self.to_send) {
                Ok(written) => drop(self.to_send.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Its output ends as well.
                Err(_) => self.input = None,
            }
        }
    }

    /// Its input, if something waits to be written.
    pub(crate) fn unsent(&self) -> Option<BorrowedFd<'_>> {
        let input = self.input.as_ref()?;
        (!self.to_send.is_empty()).then(|| input.as_fd())
    }

    /// What it says, and what goes wrong.
    pub(crate) fn outputs(&self) -> [BorrowedFd<'_>; 2] {
        [self.output.as_fd(), self.errors.as_fd()]
    }

    /// Reads what has come, a limited part of it.
    ///
    /// # Errors
    /// It is no worker of cosched.
    pub(crate) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(FramePiece<'_>),
    ) -> Result<WorkerRead, LinkError> {
        self.listen_to_errors();
        buffer.resize(PIECE, 0);
        for _ in 0..TURN {
            let read = match self.output.read(buffer) {
                Ok(0) => return Ok(WorkerRead::Ended),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            };
            self.heard = Instant::now();
            let mut input = &buffer[..read];
            while let Some(piece) = self.frames.next(&mut input)? {
                take(piece);
            }
        }
        Ok(WorkerRead::Goes)
    }

    /// Keeps the last of what goes wrong.
    fn listen_to_errors(&mut self) {
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = self.errors.read(&mut piece) {
            self.complaint.extend_from_slice(&piece[..read]);
            let surplus = self.complaint.len().saturating_sub(MOST_OF_ERROR);
            self.complaint.drain(..surplus);
        }
    }

    /// Whether it has said nothing for too long.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        now.duration_since(self.heard) >= SILENCE
    }

    /// How it ended, in words. It is killed if it has not ended.
    pub(crate) fn end(&mut self) -> String {
        self.listen_to_errors();
        let _ = self.child.kill();
        let how = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let complaint = String::from_utf8_lossy(&self.complaint);
        let complaint = complaint.trim_end();
        let last = complaint.lines().last().unwrap_or_default();
        if last.is_empty() {
            how
        } else {
            format!("{how}: {last}")
        }
    }

    /// Collects the process of a worker that has closed its output.
    pub(crate) fn wait(&mut self) {
        self.input = None;
        for _ in 0..LOOKS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        self.end();
    }
}
