//! The keeper: a small process between a comparison and each program that it runs on this machine. It measures how long the
//! program takes, and ends all of it if the comparison dies, however it dies, so that nothing goes on or stays stopped.
//!
//! The program is its child, and orphans of the program become its children, so that it finds them in whatever session they are,
//! also when the comparison is gone. It takes orders from standard input, a line each, and answers on standard output. When
//! standard input closes, the comparison is gone. Signals are meant for the comparison, and it ignores them.
//!
//! It stays in the session of the comparison: where the kernel shares CPU time out by sessions, a program must get as much as if
//! the comparison had started it.

use super::earlier::{self, GRACE, RUN_GRACE};
use clap::{Args, ValueEnum};
use cosched_linux::orphans::{end_left_by, run_led_by};
use cosched_linux::root::Root;
use cosched_linux::{Interrupts, Leftovers, settle_child};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Runs a program of a comparison; started by `cosched compare` for itself
#[derive(Args, Debug)]
pub(crate) struct KeepArgs {
    #[arg(value_enum)]
    kind: Kind,

    /// The folder of the comparison
    folder: PathBuf,

    #[arg(last = true)]
    command: Vec<OsString>,
}

/// What a keeper runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// A `cosched run`, which pauses and ends its jobs by itself.
    Run,
    /// Something else: all that descends from it is stopped, continued and ended with it.
    Command,
}

/// What a keeper is told, and answers.
pub(super) const STOP: &str = "stop";
pub(super) const CONTINUE: &str = "continue";
pub(super) const SIGNAL: &str = "signal ";
/// The answer to [`STOP`], when the program stands still.
pub(super) const STOPPED: &str = "stopped";

/// What a keeper says at last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The status of the program, as the kernel tells it.
    pub(super) status: i32,
    /// From the program's start to its end.
    pub(super) passed: Duration,
    /// For how long of that it was suspended.
    pub(super) suspended: Duration,
    /// Processes that a command had left behind. They were ended.
    pub(super) left: usize,
    /// Jobs of a run that was killed, which went on. They were ended.
    pub(super) ended_jobs: Vec<String>,
    /// Those among them that could not be ended.
    pub(super) live_jobs: Vec<String>,
}

/// How often it is looked whether processes have ended.
const LOOK: Duration = Duration::from_millis(10);

/// Whoever has not stopped after this time is not waited for any longer. `cosched run` stops when its jobs have.
pub(super) const STOPS: Duration = Duration::from_secs(30);

pub(crate) fn main(args: KeepArgs) -> anyhow::Result<ExitCode> {
    cosched_linux::settle_signals();
    let signals = Interrupts::hold_all()?;
    cosched_linux::become_helper(c"run-keeper");
    cosched_linux::adopt_orphans();
    let lock = earlier::let_others_wait(&args.folder);
    let leftovers = Leftovers::before();
    let Some((program, words)) = args.command.split_first() else {
        anyhow::bail!("this is a part of `cosched compare`, which starts it by itself");
    };
    let mut command = Command::new(program);
    if args.kind == Kind::Run {
        command.arg0("cosched");
    }
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    settle_child(&mut command, &signals);
    let began = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| anyhow::anyhow!("can't start {}: {error}", program.display()))?;
    let pid = Pid::from_child(&child);
    if args.kind == Kind::Run {
        earlier::name_run(
            lock.as_ref(),
            run_led_by(&Root::default(), pid.as_raw_nonzero().get()),
        );
    }
    let handle = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| drop(child.kill()))?;
    let mut keeper = Keeper {
        kind: args.kind,
        pid,
        handle,
        leftovers,
        paused: None,
        suspended: Duration::ZERO,
    };
    let is_alone = keeper.serve();
    let passed = began.elapsed();
    keeper.go_on();
    if is_alone {
        keeper.ask_to_end();
    }
    let (left, (ended, live)) = keeper.clear();
    let status = child.wait()?.into_raw();
    let names = |all: Vec<cosched_linux::orphans::Orphan>| {
        all.into_iter().map(|orphan| orphan.job).collect()
    };
    let (ended_jobs, live_jobs) = (names(ended), names(live));
    let kept = Kept {
        status,
        passed,
        suspended: keeper.suspended,
        left,
        ended_jobs,
        live_jobs,
    };
    say(&serde_json::to_string(&kept)?);
    Ok(ExitCode::SUCCESS)
}

/// Tells the comparison something, if it is still there.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

struct Keeper {
    kind: Kind,
    /// The program's first process, which leads its group.
    pid: Pid,
    handle: OwnedFd,
    leftovers: Leftovers,
    /// Since when it is suspended.
    paused: Option<Instant>,
    suspended: Duration,
}

impl Keeper {
    fn leader(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Carries out orders until the program has ended, or the comparison is gone: then it returns true.
    fn serve(&mut self) -> bool {
        let mut line = Vec::new();
        loop {
            let input = std::io::stdin();
            let mut fds = [
                PollFd::new(&self.handle, PollFlags::IN),
                PollFd::new(&input, PollFlags::IN),
            ];
            let polled = poll(&mut fds, None);
            let heard = fds.map(|fd| polled.is_ok() && !fd.revents().is_empty());
            if heard[0] {
                return false;
            }
            let mut bytes = [0; 256];
            match heard[1].then(|| rustix::io::read(&input, &mut bytes)) {
                None => {}
                Some(Err(Errno::INTR)) => {}
                Some(Ok(count @ 1..)) => {
                    line.extend_from_slice(&bytes[..count]);
                    while let Some(end) = line.iter().position(|&byte| byte == b'\n') {
                        let order: Vec<u8> = line.drain(..=end).collect();
                        self.obey(String::from_utf8_lossy(&order[..end]).as_ref());
                    }
                }
                Some(_) => return true,
            }
        }
    }

    fn obey(&mut self, order: &str) {
        match order {
            STOP => {
                self.paused.get_or_insert_with(Instant::now);
                match self.kind {
                    // A run knows how to pause its jobs. Others may not hear SIGTSTP, or leave a part of them running.
                    Kind::Run => self.to_group(Signal::TSTP),
                    Kind::Command => self.leftovers.signal(self.leader(), Signal::STOP),
                }
                // One that was continued before it has stopped would stop afterwards, and for ever.
                wait_for_stop(self.pid);
                say(STOPPED);
            }
            CONTINUE => self.go_on(),
            order => {
                let number = order
                    .strip_prefix(SIGNAL)
                    .and_then(|number| number.parse().ok());
                if let Some(signal) = number.and_then(Signal::from_named_raw) {
                    self.to_group(signal);
                }
            }
        }
    }

    /// Continues the program if it was suspended.
    fn go_on(&mut self) {
        if let Some(paused) = self.paused.take() {
            self.signal(Signal::CONT);
            self.suspended += paused.elapsed();
        }
    }

    /// Sends a signal to the run, or to all processes of the command.
    fn signal(&self, signal: Signal) {
        match self.kind {
            Kind::Run => self.to_group(signal),
            Kind::Command => self.leftovers.signal(self.leader(), signal),
        }
    }

    fn to_group(&self, signal: Signal) {
        // It may have ended.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Asks the program to end, and waits until it has, but not for ever.
    fn ask_to_end(&self) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        let (is_there, patience): (&dyn Fn() -> bool, Duration) = match self.kind {
            Kind::Run => (&|| !has_ended(&self.handle), RUN_GRACE),
            Kind::Command => (&|| self.leftovers.any(self.leader()), GRACE),
        };
        while is_there() && began.elapsed() < patience {
            std::thread::sleep(LOOK);
        }
        // A run that has not ended by now does not know how to.
        self.to_group(Signal::KILL);
        let _ = poll(
            &mut [PollFd::new(&self.handle, PollFlags::IN)],
            Some(&timespec(GRACE)),
        );
    }

    /// Ends what a command has left, or the jobs of a run that could not end them: how many processes that were, and which jobs
    /// were ended and are left.
    fn clear(
        &self,
    ) -> (
        usize,
        (
            Vec<cosched_linux::orphans::Orphan>,
            Vec<cosched_linux::orphans::Orphan>,
        ),
    ) {
        match self.kind {
            Kind::Command => (self.leftovers.end(self.leader()), Default::default()),
            Kind::Run if was_killed(self.pid) => {
                let jobs = end_left_by(&Root::default(), self.leader(), GRACE);
                // Its guardian and its console, which have nothing left to do.
                self.leftovers.end(self.leader());
                (0, jobs)
            }
            Kind::Run => Default::default(),
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn has_ended(handle: &OwnedFd) -> bool {
    poll(
        &mut [PollFd::new(handle, PollFlags::IN)],
        Some(&Timespec::default()),
    )
    .is_ok_and(|ready| ready > 0)
}

/// Whether a signal has ended a child.
fn was_killed(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), options)
        .ok()
        .flatten()
        .is_some_and(|status| status.terminating_signal().is_some())
}

/// Waits until a process that was asked to has stopped, or has ended.
pub(super) fn wait_for_stop(pid: Pid) {
    let options = WaitIdOptions::STOPPED
        | WaitIdOptions::EXITED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    let began = Instant::now();
    while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) && began.elapsed() < STOPS {
        std::thread::sleep(Duration::from_millis(1));
    }
}
