//! The worker of a node: relays the coordinator's orders to a run, and ends the run if the coordinator is gone.
//!
//! The run writes its frames straight to standard output. It dies with the worker, and its guardian then kills its jobs.

use crate::protocol::NodeOrder;
use cosched_linux::service::kill_with_parent;
use cosched_linux::{become_helper, settle_child, settle_signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A worker.
#[derive(Clone, Debug)]
pub struct NodeWorker {
    /// Words after `cosched` that start the run.
    pub run: Vec<OsString>,
    /// Longest silence of the coordinator.
    pub silence: Duration,
    /// Time from SIGTERM to SIGKILL for the jobs of the run.
    pub grace: Duration,
}

/// Time that a run has after its jobs' grace period, to write what is left.
const LEEWAY: Duration = Duration::from_secs(5);

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The end of a worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerEnd {
    /// Exit code of the run.
    pub code: i32,
    /// The coordinator was lost before the run ended.
    pub is_lost: bool,
}

/// Relays orders from standard input until the run has ended.
///
/// # Errors
/// The run can't be started or waited for, or the coordinator sends something else than orders. No run goes on then.
pub fn work(worker: &NodeWorker) -> io::Result<WorkerEnd> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("cosched").args(&worker.run);
    settle_child(&mut command);
    kill_with_parent(&mut command);
    // The run takes signals. This process lives as long as the coordinator wants it.
    settle_signals();
    become_helper(c"cosched-worker");
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    let mut relay = Relay::new(child.stdin.take())?;
    let end = handle(&child)?;
    let lost = relay.run_until_end(&end, worker.silence);
    if !matches!(lost, Ok(false)) {
        end_run(&mut child, &end, worker.grace + LEEWAY)?;
    }
    let is_lost = lost?;
    let status = child.wait()?;
    let signal = status.signal().unwrap_or(0);
    Ok(WorkerEnd {
        code: status.code().unwrap_or(128 + signal),
        is_lost,
    })
}

/// A descriptor that is readable once a child has ended.
fn handle(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_child(child);
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Ends the run with SIGTERM, and with SIGKILL if it has not ended after `patience`.
fn end_run(child: &mut Child, end: &OwnedFd, patience: Duration) -> io::Result<()> {
    // It may have ended meanwhile, and has not been waited for.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let until = Instant::now() + patience;
    while Instant::now() < until {
        let mut fds = [PollFd::new(end, PollFlags::IN)];
        if wait(&mut fds, Some(until))? {
            return Ok(());
        }
    }
    child.kill()
}

/// Waits for one of these descriptors; returns whether one is ready.
fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // Too long for the kernel is no limit.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(fds, left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The lines from the coordinator to the run.
struct Relay {
    /// `None` once no more jobs will come.
    run: Option<ChildStdin>,
    /// Whole lines that the run has not taken.
    waiting: Vec<u8>,
    /// What has come of a line.
    begun: Vec<u8>,
    /// No more jobs will come.
    is_complete: bool,
    /// Standard input is open.
    is_open: bool,
    /// When something came last.
    heard: Instant,
}

impl Relay {
    fn new(run: Option<ChildStdin>) -> io::Result<Relay> {
        if let Some(run) = &run {
            fcntl_setfl(run, OFlags::NONBLOCK)?;
        }
        Ok(Relay {
            run,
            waiting: Vec::new(),
            begun: Vec::new(),
            is_complete: false,
            is_open: true,
            heard: Instant::now(),
        })
    }

    /// Relays until the run has ended; returns whether the coordinator is lost before.
    fn run_until_end(&mut self, end: &OwnedFd, silence: Duration) -> io::Result<bool> {
        loop {
            let stdin = io::stdin();
            let mut fds = vec![PollFd::new(end, PollFlags::IN)];
            // A closed input is always ready.
            if self.is_open {
                fds.push(PollFd::new(&stdin, PollFlags::IN));
            }
            let to_run = self.run.as_ref().filter(|_| !self.waiting.is_empty());
            fds.extend(to_run.map(|run| PollFd::new(run, PollFlags::OUT)));
            let until = self.is_open.then_some(self.heard + silence);
            wait(&mut fds, until)?;
            if !fds[0].revents().is_empty() {
                return Ok(false);
            }
            if self.is_open && !fds[1].revents().is_empty() {
                self.read()?;
            }
            self.pass();
            let is_silent = self.is_open && self.heard.elapsed() >= silence;
            if is_silent || !self.is_open && !self.is_complete {
                return Ok(true);
            }
        }
    }

    /// Reads what has come.
    fn read(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let got = match rustix::io::read(io::stdin(), &mut piece) {
            Ok(got) => got,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            // A terminal that hangs up, for one.
            Err(_) => 0,
        };
        if got == 0 {
            self.is_open = false;
            return Ok(());
        }
        self.heard = Instant::now();
        for part in piece[..got].split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.begun);
                self.obey(&line)?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, line: &[u8]) -> io::Result<()> {
        // The run would take another line for a command of a shell.
        let order = NodeOrder::parse(line).map_err(|error| {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            io::Error::other(format!("expected an order, found `{line}`: {error}"))
        })?;
        match order {
            NodeOrder::Job(_) | NodeOrder::Cancel(_) | NodeOrder::GiveBack(_) => {
                self.waiting.extend_from_slice(line);
            }
            NodeOrder::End => self.is_complete = true,
            NodeOrder::Beat => {}
        }
        Ok(())
    }

    /// Writes what the run takes now.
    fn pass(&mut self) {
        while let Some(run) = self.run.as_mut().filter(|_| !self.waiting.is_empty()) {
            match run.write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It is ending.
                Err(_) => self.waiting.clear(),
            }
        }
        if self.is_complete {
            self.run = None;
        }
    }
}
