//! The reaper: the parent of one job's processes, which outlives the run that started it. It notes who it is before the
//! job starts, so that no job starts twice, and how the job ended. It ends as the job did.
#![allow(unsafe_code)]

use crate::inherited::InheritedAttributes;
use crate::interrupts;
use crate::meminfo;
use crate::process::{self, Process};
use crate::reaped::{ReapedEnd, Reaper};
use crate::root::Root;
use crate::sys::{self, ChildStatus, ProcessUsage, RawPid, SignalMask};
use cosched_core::Exit;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, getpid, getppid, set_child_subreaper};
use std::ffi::{CStr, OsStr, OsString};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

/// Exit code if the end of the job is unknown, or the reaper itself failed.
const UNKNOWN: i32 = 125;
/// Longest delay before the end is written again, after the first attempts have failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often, and with what delay, a reaper looks for what an earlier one of the same job is just writing.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The name of a reaper in `ps`.
const NAME: &CStr = c"job-reaper";

/// Whether a process has the name of a reaper.
pub(crate) fn is(root: &Root, pid: RawPid) -> bool {
    process::name(root, pid).is_some_and(|name| name.as_bytes() == NAME.to_bytes())
}

/// The main function of a reaper. Starts a program with these arguments, the first of which is its name, unless the job
/// with this key was started before. `inherited` is what it gets besides this process's folder and environment: an
/// [`InheritedAttributes`] or `null`, as JSON. Waits for all its processes, notes their end beside the key, and ends as the first of
/// them did.
pub fn reap(key: &Path, inherited: &OsStr, program: &OsStr, args: &[OsString]) -> ! {
    let inherited = match serde_json::from_slice(inherited.as_bytes()) {
        Ok(inherited) => inherited,
        Err(error) => give_up(&error.into()),
    };
    let root = Root::default();
    let ignored = interrupts::inherited();
    sys::ignore_signals();
    let _ = rustix::thread::set_name(NAME);
    match begin(&root, key) {
        Ok(begun) => end_as(begun.run(program, args, inherited, ignored)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => end_as(end_of_other(&root, key)),
        Err(error) => {
            let key = key.display();
            give_up(&io::Error::new(error.kind(), format!("{key}: {error}")))
        }
    }
}

/// A reaper that is the only one of its job.
struct Begun<'a> {
    key: &'a Path,
    at: f64,
    /// The run.
    parent: Option<Pid>,
    /// The end of a child, being continued, and SIGTERM, which may come before there is a job to get it.
    signals: OwnedFd,
    /// The mask for the job.
    mask: SignalMask,
    /// Memory of the reaper itself.
    own_rss: u64,
}

fn begin<'a>(root: &Root, key: &'a Path) -> io::Result<Begun<'a>> {
    let parent = getppid();
    let (signals, mask) = sys::take_signals(&[libc::SIGCHLD, libc::SIGCONT, libc::SIGTERM])?;
    set_child_subreaper(Some(getpid()))?;
    let own = Reaper::own(root).ok_or(ErrorKind::NotFound)?;
    own.claim(key)?;
    Ok(Begun {
        key,
        at: own.at,
        parent,
        signals,
        mask,
        own_rss: process::resident(root, own.pid).unwrap_or(0),
    })
}

impl Begun<'_> {
    /// Runs the program and notes its end.
    fn run(
        self,
        program: &OsStr,
        args: &[OsString],
        inherited: Option<InheritedAttributes>,
        ignored: &'static [i32],
    ) -> ChildStatus {
        let mut run_lives = true;
        let exit = match self.start(program, args, inherited, ignored) {
            Ok(main) => {
                self.forward_early_term(main);
                let status;
                (status, run_lives) = self.wait(main);
                status.exit()
            }
            Err(error) => cannot_start(program, &error),
        };
        let used = ProcessUsage::of_children();
        let is_told = used.max_rss > self.own_rss + meminfo::RSS_ERROR;
        let max_rss = if is_told { used.max_rss } else { 0 };
        let ended = ReapedEnd::new(&exit, ProcessUsage { max_rss, ..used }, self.at);
        let mut pause = Duration::from_secs(1);
        while let Err(error) = ended.write(self.key, !run_lives) {
            if error.kind() == ErrorKind::NotFound {
                // The folder was removed.
                break;
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PATIENCE);
        }
        ended.status().unwrap_or(ChildStatus::Exited(UNKNOWN))
    }

    /// Starts the program as a run does: a script without an interpreter line is for the shell.
    fn start(
        &self,
        program: &OsStr,
        args: &[OsString],
        inherited: Option<InheritedAttributes>,
        ignored: &'static [i32],
    ) -> io::Result<RawPid> {
        let mask = self.mask;
        let settle = move || {
            sys::default_signals_of_fork(&mask, ignored);
            if let Some(inherited) = &inherited {
                inherited.apply();
            }
        };
        // SAFETY: this process starts no thread, and only system calls are made.
        let started = unsafe { sys::start(program, args, settle.clone()) };
        match started {
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
                let mut words: Vec<OsString> = vec!["sh".into(), program.into()];
                words.extend(args.iter().skip(1).cloned());
                // SAFETY: as above.
                unsafe { sys::start("/bin/sh".as_ref(), &words, settle) }
            }
            started => started,
        }
    }

    /// Passes on a SIGTERM that came before the job had a process. The run sends it to all processes of the job, and this one
    /// was the only one.
    fn forward_early_term(&self, main: RawPid) {
        if sys::pending_signals::<4>(self.signals.as_fd()).contains(&libc::SIGTERM) {
            let _ = sys::kill(main, libc::SIGTERM);
        }
    }

    /// Waits for all descendants. Returns how this one ended, and whether the run lives.
    fn wait(&self, main: RawPid) -> (ChildStatus, bool) {
        let mut ended = ChildStatus::Stopped;
        let mut run_lives = true;
        loop {
            sys::pending_signals::<2>(self.signals.as_fd());
            while let Some(waited) = sys::wait_any() {
                if waited.pid == main {
                    ended = waited.status;
                }
            }
            if run_lives && getppid() != self.parent {
                run_lives = false;
                // Its death has continued this process, and it may have stopped the job.
                let _ = sys::kill(0, libc::SIGCONT);
            }
            if !sys::has_children() {
                return (ended, run_lives);
            }
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], None);
        }
    }
}

/// Says why the program can't be started, and returns how the job ends.
fn cannot_start(program: &OsStr, error: &io::Error) -> Exit {
    let why = format!("{}: {error}", program.display());
    say(format_args!("{why}"));
    Exit::NotStarted(why)
}

/// Waits for the end of a job that another reaper has started.
fn end_of_other(root: &Root, key: &Path) -> ChildStatus {
    let other = (0..LOOKS).find_map(|_| {
        Reaper::of(key).or_else(|| {
            std::thread::sleep(BETWEEN_LOOKS);
            None
        })
    });
    let process = other
        .filter(|other| other.lives(root))
        .and_then(|other| Process::find(root, other.pid, other.start_time));
    if let Some(handle) = process.and_then(|process| process.handle(root)) {
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], None);
    }
    let status = ReapedEnd::of(key).and_then(|ended| ended.status());
    status.unwrap_or(ChildStatus::Exited(UNKNOWN))
}

/// Ends this process in the same way.
fn end_as(status: ChildStatus) -> ! {
    match status {
        ChildStatus::Exited(code) => sys::exit_now(code),
        ChildStatus::Signaled(signal) => sys::end_by(signal),
        ChildStatus::Stopped | ChildStatus::Continued => {}
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
