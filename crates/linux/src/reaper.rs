//! The reaper: the parent of one job's processes, which outlives the run that started it. It notes who it is before the
//! job starts, so that no job starts twice, and how the job ended. It ends as the job did.
#![allow(unsafe_code)]

use crate::interrupts;
use crate::meminfo;
use crate::process::Process;
use crate::reaped::{Ending, Reaper};
use crate::root::Root;
use crate::sys::{self, RawPid, Side, SignalMask, Status, Used};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, getpid, getppid, set_child_subreaper};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Exit code if the end of the job is unknown, or the reaper itself failed.
const UNKNOWN: i32 = 125;
/// Longest delay before the end is written again, after the first attempts have failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often, and with what delay, a reaper looks for what an earlier one of the same job is just writing.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The main function of a reaper. Starts a program with these arguments, the first of which is its name, unless the job
/// with this key was started before. Waits for all its processes, notes their end beside the key, and ends as the first
/// of them did.
pub fn reap(key: &Path, program: &OsStr, args: &[OsString]) -> ! {
    let root = Root::default();
    let ignored = interrupts::inherited();
    sys::ignore_signals();
    let _ = rustix::thread::set_name(c"job-reaper");
    match begin(&root, key) {
        Ok(begun) => {
            let status = begun.run(program, args, ignored);
            end_as(status.unwrap_or_else(|error| give_up(&error)))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => end_as(end_of_other(&root, key)),
        Err(error) => give_up(&error),
    }
}

/// A reaper that is the only one of its job.
struct Begun<'a> {
    key: &'a Path,
    at: f64,
    /// Whoever started it.
    parent: Option<Pid>,
    /// The end of a child, and being continued.
    signals: OwnedFd,
    /// The mask for the job.
    mask: SignalMask,
    /// Peak memory of the reaper itself.
    own_max_rss: u64,
}

fn begin<'a>(root: &Root, key: &'a Path) -> io::Result<Begun<'a>> {
    let parent = getppid();
    let (signals, mask) = sys::take_signals(&[libc::SIGCHLD, libc::SIGCONT])?;
    set_child_subreaper(Some(getpid()))?;
    let own = Reaper::own(root).ok_or(ErrorKind::NotFound)?;
    own.claim(key)?;
    Ok(Begun {
        key,
        at: own.at,
        parent,
        signals,
        mask,
        own_max_rss: meminfo::own_peak(root).unwrap_or_else(sys::own_max_rss),
    })
}

impl Begun<'_> {
    /// Runs the program and notes its end.
    fn run(self, program: &OsStr, args: &[OsString], ignored: &[i32]) -> io::Result<Status> {
        // SAFETY: this process has one thread.
        let status = match unsafe { sys::fork() }? {
            Side::Child => {
                sys::default_signals(&self.mask, ignored);
                execute(program, args)
            }
            Side::Parent(main) => self.wait(main),
        };
        let used = Used::of_children();
        let is_told = used.max_rss > self.own_max_rss + meminfo::RSS_ERROR;
        let max_rss = if is_told { used.max_rss } else { 0 };
        let ending = Ending::new(status, Used { max_rss, ..used }, self.at);
        let mut pause = Duration::from_secs(1);
        while ending.write(self.key).is_err() {
            std::thread::sleep(pause);
            pause = (2 * pause).min(PATIENCE);
        }
        Ok(status)
    }

    /// Waits for all descendants. Returns how this one ended.
    fn wait(&self, main: RawPid) -> Status {
        let mut ended = Status::Stopped;
        let mut parent_lives = true;
        loop {
            sys::pending_signals::<2>(self.signals.as_fd());
            while let Some(waited) = sys::wait_any() {
                if waited.pid == main {
                    ended = waited.status;
                }
            }
            if !sys::has_children() {
                return ended;
            }
            if parent_lives && getppid() != self.parent {
                parent_lives = false;
                // Its death has continued this process, and it may have stopped the job.
                let _ = sys::kill(0, libc::SIGCONT);
            }
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], None);
        }
    }
}

/// Becomes the program, in the child.
fn execute(program: &OsStr, args: &[OsString]) -> ! {
    let (name, args) = args
        .split_first()
        .map_or((program, args), |(name, args)| (name, args));
    let error = Command::new(program).arg0(name).args(args).exec();
    say(format_args!("{}: {error}", program.display()));
    let is_missing = error.kind() == ErrorKind::NotFound;
    sys::exit_now(if is_missing { 127 } else { 126 })
}

/// Waits for the end of a job that another reaper has started.
fn end_of_other(root: &Root, key: &Path) -> Status {
    let mut other = Reaper::of(key);
    for _ in 0..LOOKS {
        if other.is_some() {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS);
        other = Reaper::of(key);
    }
    let process = other
        .filter(|other| other.lives(root))
        .and_then(|other| Process::find(root, other.pid, other.start_time));
    if let Some(handle) = process.and_then(|process| process.handle(root)) {
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], None);
    }
    let status = Ending::of(key).and_then(|ending| ending.status());
    status.unwrap_or(Status::Exited(UNKNOWN))
}

/// Ends this process in the same way.
fn end_as(status: Status) -> ! {
    match status {
        Status::Exited(code) => sys::exit_now(code),
        Status::Signaled(signal) => sys::end_by(signal),
        Status::Stopped | Status::Continued => {}
    }
    sys::exit_now(UNKNOWN)
}

fn give_up(error: &io::Error) -> ! {
    say(format_args!("{error}"));
    sys::exit_now(UNKNOWN)
}

fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "cosched: {what}");
}
