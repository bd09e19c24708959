//! A `cosched run` of real jobs, as a child process of a comparison.
//!
//! It gets SIGTERM if the comparison dies, and ends its jobs then. If it is killed itself, the comparison ends its jobs.

use super::user::{User, interrupted};
use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result};
use cosched_linux::orphans::{Orphan, end_left_by};
use cosched_linux::root::Root;
use cosched_linux::{Interrupt, settle_child};
use cosched_report::visible;
use cosched_run::ending_command;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time between two checks for signals.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The number of requests after which a run is killed. It hurries after the second.
const PATIENCE: u32 = 3;

/// Grace period for the jobs of a killed run.
const GRACE: Duration = Duration::from_secs(2);

/// Longest wait for a run to stop: it stops when its jobs have.
const STOPS: Duration = Duration::from_secs(30);

/// How a run ended.
pub struct Ended {
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub errors: String,
}

/// Runs a `cosched run` to its end. `what` names it; `line` is the progress meanwhile.
///
/// # Errors
/// It could not be started, it was killed, or the user interrupted it.
pub fn run(mut command: Command, what: &str, line: &str, user: &User) -> Result<Ended> {
    // A pipe would have to be emptied meanwhile.
    let mut errors = File::from(memfd_create("errors", MemfdFlags::CLOEXEC)?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.try_clone()?);
    settle_child(&mut command);
    let mut child = command.spawn().context("can't start `cosched run`")?;
    let pid = Pid::from_child(&child);
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let signal = wait(pid, &handle, line, user);
    // Until somebody waits for the child, its number is its own.
    let left = if was_killed(pid) {
        end_left_by(&Root::default(), pid.as_raw_nonzero().get(), GRACE)
    } else {
        Default::default()
    };
    let status = child.wait()?;
    if let Some(signal) = signal {
        return Err(interrupted(signal));
    }
    if status.signal().is_some() {
        return Err(killed(status, what, left).into());
    }
    let mut text = String::new();
    errors.rewind()?;
    errors.read_to_string(&mut text)?;
    Ok(Ended {
        status,
        errors: text,
    })
}

/// Waits for the end of a run and passes signals on. Returns the last one that asked for its end.
fn wait(pid: Pid, handle: &OwnedFd, line: &str, user: &User) -> Option<i32> {
    let mut ending = None;
    let mut asked = 0;
    while !ends_soon(handle) {
        match user.look(line) {
            Some(Interrupt::End(signal)) => {
                ending = Some(signal);
                asked += 1;
                ask_to_end(pid, signal, asked);
            }
            Some(Interrupt::Suspend) => {
                user.screen.clear();
                suspend(pid);
            }
            None => {}
        }
    }
    user.screen.clear();
    ending
}

/// Whether a process ends before the next check for signals.
fn ends_soon(handle: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    poll(&mut fds, Some(&LOOK)).is_ok_and(|ready| ready > 0)
}

fn ask_to_end(pid: Pid, signal: i32, asked: u32) {
    let signal = if asked < PATIENCE {
        Signal::from_named_raw(signal)
    } else {
        Some(Signal::KILL)
    };
    if let Some(signal) = signal {
        to_group(pid, signal);
    }
}

/// Suspends a run, and this process, until somebody continues it.
fn suspend(pid: Pid) {
    to_group(pid, Signal::TSTP);
    // A run that was continued before it has stopped would stop afterwards, and for ever.
    wait_for_stop(pid);
    let _ = kill_process(rustix::process::getpid(), Signal::STOP);
    to_group(pid, Signal::CONT);
}

fn to_group(pid: Pid, signal: Signal) {
    // It may have ended.
    let _ = kill_process_group(pid, signal);
}

fn wait_for_stop(pid: Pid) {
    let began = Instant::now();
    while has_neither_stopped_nor_ended(pid) && began.elapsed() < STOPS {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn has_neither_stopped_nor_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::STOPPED
        | WaitIdOptions::EXITED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Whether a signal has ended a child.
fn was_killed(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), options).ok().flatten();
    status.is_some_and(|status| status.terminating_signal().is_some())
}

/// The error of a run that somebody else has killed. Its jobs were ended, or could not be.
fn killed(status: ExitStatus, what: &str, (ended, live): (Vec<Orphan>, Vec<Orphan>)) -> Failure {
    let mut message = format!("{what}: its `cosched run` was killed ({status})");
    if status.signal() == Some(Signal::KILL.as_raw()) {
        message.push_str(", as the kernel does when memory runs out");
    }
    if !live.is_empty() {
        let names = names(&live);
        let end = ending_command(&live);
        message.push_str(&format!(
            "; this user can't end its jobs {names}: end them with `{end}` as root"
        ));
    } else if !ended.is_empty() {
        let names = names(&ended);
        message.push_str(&format!("; its jobs were ended: {names}"));
    }
    Failure {
        exit: Exit::Failure,
        message,
    }
}

fn names(jobs: &[Orphan]) -> String {
    let names: Vec<String> = jobs.iter().map(|orphan| visible(&orphan.job)).collect();
    names.join(", ")
}

impl Ended {
    /// The error that `cosched run` reported, with its exit code.
    pub fn failure(&self, what: &str) -> anyhow::Error {
        let exit = match self.status.code() {
            Some(2) => Exit::Usage,
            Some(3) => Exit::Incapable,
            Some(4) => Exit::Permission,
            _ => Exit::Failure,
        };
        let lines = self.errors.lines().filter(|line| !line.trim().is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        let why = match text.strip_prefix("cosched: ").unwrap_or(&text) {
            "" => self.status.to_string(),
            why => why.to_owned(),
        };
        let message = format!("{what}: {why}");
        Failure { exit, message }.into()
    }
}
