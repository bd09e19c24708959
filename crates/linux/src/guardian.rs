//! The guardian: a small process that frees a run's jobs when the run dies, however it dies.
//!
//! It holds one end of a pipe, and the run holds the other. When the pipe closes or the run's process ends, and that process
//! is dead, the guardian thaws the run's groups, continues its stopped processes and gives them their CPUs back. It finds them by
//! the run's list ([`crate::ledger`]), not by what a program can change. The jobs run on. The guardian removes the
//! groups and the list when the last of them has ended, and ends.
//!
//! It lives in a session of its own and ignores all signals, so that a signal from the terminal that ends the run does
//! not end the guardian. Its name does not contain that of the program, so that `pkill cosched` does not end it
//! either. If somebody kills or stops it, the run sees that of its child, kills it if it is still there, and starts
//! another. If both are killed at once, each job's own process is continued by its parent-death signal; the next start
//! and `cosched thaw` free what remains.
#![allow(unsafe_code)]

use crate::cgroup;
use crate::claim::Claim;
use crate::ledger::{Head, Ledger};
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::{self, RawPid, Side};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The run's end of the pipe to its guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// The guardian's process.
    pub(crate) pid: RawPid,
    _line: OwnedFd,
}

/// What a guardian must know.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) root: Root,
    pub(crate) head: Head,
    /// The run's processes, now and later.
    pub(crate) ledger: Ledger,
}

/// The guardian's name in `ps`.
const NAME: &std::ffi::CStr = c"run-guardian";

/// How often stopped processes are looked for when the run has died. A signal may still be under way at the first look.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The longest time between two looks at whether the jobs of the dead run have ended.
const PATIENCE: Duration = Duration::from_secs(1);

impl Guardian {
    /// Starts a guardian, for jobs that may be running already.
    ///
    /// # Errors
    /// No process or no pipe could be made.
    pub(crate) fn start(charge: &Charge) -> io::Result<Guardian> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: the run has one thread (the backend checks that when it is made).
        match unsafe { sys::fork() }? {
            Side::Child => {
                guard(charge, read);
                sys::exit_now(0)
            }
            Side::Parent(pid) => Ok(Guardian { pid, _line: write }),
        }
    }

    /// Ends the guardian, whatever state it is in: the run has ended in good order, or another guardian takes over. One
    /// that was only let go could come back later and free the jobs of a live run.
    pub(crate) fn dismiss(self) {
        let _ = sys::kill(self.pid, libc::SIGKILL);
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
}

/// The guardian's main function.
fn guard(charge: &Charge, line: OwnedFd) {
    sys::ignore_signals();
    // Whoever frees the jobs after the run has died finds a guardian that was stopped.
    if let Some(own) = Process::read(&charge.root, std::process::id() as RawPid) {
        charge.ledger.guardian(&own);
    }
    sys::set_name(NAME);
    let _ = rustix::process::setsid();
    // It must not keep a file system in use.
    let _ = std::env::set_current_dir("/");
    let mut kept = charge.ledger.descriptors();
    kept.push(line.as_raw_fd());
    keep_only(kept);
    // A job that is being started has a copy of the run's end of the pipe, and keeps it while the program's file system does
    // not answer. So the run's process is watched as well. Nothing is ever written to the pipe.
    let run = Process::find(&charge.root, charge.head.run.pid, charge.head.run.start);
    let run = run.and_then(|run| run.handle(&charge.root));
    let mut watched: Vec<PollFd<'_>> =
        [Some(&line), run.as_ref()].into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    while charge.head.run.is_seen(&charge.root) && matches!(poll(&mut watched, None), Err(Errno::INTR)) {}
    // The pipe closes a little before the process is gone. A run that lives on has another guardian, or will have one.
    let mut pause = Duration::from_millis(1);
    while charge.head.run.is_seen(&charge.root) {
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
    free(charge);
    stay(charge);
}

/// Frees all that the dead run stopped or froze.
fn free(charge: &Charge) {
    let Charge { root, head, ledger } = charge;
    let group = head.group.as_deref();
    if let Some(group) = group {
        let _ = cgroup::thaw(group);
    }
    let record = ledger.read();
    // First the quick part: every job's own process, and its process group.
    for job in record.iter().flat_map(|record| &record.jobs) {
        // Also of one that has ended: its group may go on, and has the same number as long as that is kept.
        if let Some(main) = Process::find(root, job.pid, job.start)
            && main.signal(root, Signal::CONT)
        {
            let _ = sys::kill(-job.pid, libc::SIGCONT);
        }
    }
    let claim = Claim { run: head.run, record: record.as_ref(), is_here: true, group, owner: None };
    for look in 0..LOOKS {
        let claimed = claim.processes(root);
        for member in &claimed {
            // A stop that is on its way is called off by the signal as well.
            if member.process.is_stopped() || (look == 0 && member.sure) {
                member.process.signal(root, Signal::CONT);
            }
        }
        let pids: Vec<RawPid> = claimed.iter().map(|member| member.process.pid).collect();
        process::bind(root, &pids, &head.cpus);
        std::thread::sleep(BETWEEN_LOOKS);
    }
    if let Some(group) = group {
        let _ = cgroup::thaw(group);
    }
}

/// Waits for the end of the jobs, and removes what tells of them.
fn stay(charge: &Charge) {
    let Charge { root, head, ledger } = charge;
    let mut pause = BETWEEN_LOOKS;
    loop {
        let gone = head.group.as_deref().is_none_or(cgroup::remove);
        let record = ledger.read();
        // Looking at all processes is left for the time when those in the list have gone.
        if gone && !record.as_ref().is_some_and(|record| record.any_lives(root)) {
            let claim = Claim { run: head.run, record: record.as_ref(), is_here: true, group: None, owner: None };
            if claim.processes(root).is_empty() {
                return ledger.remove_file();
            }
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
}

/// Closes all descriptors but these and the standard ones, which become `/dev/null`. A guardian that held the run's
/// output open would keep its readers waiting.
fn keep_only(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    // SAFETY: nothing in this process uses the descriptors that are closed: those in `kept` are not among them.
    unsafe {
        let mut from = 3;
        for keep in kept.iter().map(|&fd| fd.cast_unsigned()).filter(|&fd| fd > 2) {
            if keep > from {
                libc::close_range(from, keep - 1, 0);
            }
            from = keep + 1;
        }
        libc::close_range(from, u32::MAX, 0);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for target in (0..3).filter(|target| !kept.contains(target)) {
            libc::dup2(null, target);
        }
        if null > 2 && !kept.contains(&null) {
            libc::close(null);
        }
    }
}
