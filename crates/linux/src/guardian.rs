//! The guardian: a tiny process that sets everything free when its run dies, however it dies.
//!
//! It holds one end of a pipe; the run holds the other and writes a line for each job that starts or ends. When the run
//! ends in good order it says so. When the pipe ends without that, the run has died: the guardian thaws the run's
//! groups, continues its stopped processes, gives them their CPUs back, removes the groups, and ends. The jobs run on.
//!
//! It lives in a session of its own and ignores all signals, so that what ends the run from the terminal does not end
//! it as well. If somebody kills it, the run sees its child's end and makes another. If both are killed at once, each
//! job's own process is continued by its parent-death signal; what remains is left to the next start and to
//! `cosched thaw`.
#![allow(unsafe_code)]

use crate::cgroup;
use crate::mend;
use crate::process::Process;
use crate::root::Root;
use crate::sys::{self, RawPid, Side};
use cosched_core::CpuSet;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The run's end of the line to its guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// The guardian's process.
    pub(crate) pid: RawPid,
    line: File,
}

/// What a guardian must know from the start.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) root: Root,
    /// Marks the run's processes.
    pub(crate) token: String,
    /// The run's group, if it has one.
    pub(crate) group: Option<PathBuf>,
    /// The CPUs that the run was given, for its jobs to have back.
    pub(crate) cpus: CpuSet,
}

/// The name under which the guardian shows in `ps`.
const NAME: &std::ffi::CStr = c"cosched-guard";

impl Guardian {
    /// Starts a guardian for jobs that may be there already.
    ///
    /// # Errors
    /// No process or pipe can be had.
    pub(crate) fn start<'a>(charge: &Charge, jobs: impl Iterator<Item = &'a Process>) -> io::Result<Guardian> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // The run must never wait for its guardian.
        rustix::fs::fcntl_setfl(&write, rustix::fs::OFlags::NONBLOCK)?;
        // SAFETY: the run has one thread (the back-end checks that when it is made).
        match unsafe { sys::fork() }? {
            Side::Child => {
                let code = guard(charge, read);
                sys::exit_now(code)
            }
            Side::Parent(pid) => {
                drop(read);
                let mut guardian = Guardian { pid, line: File::from(write) };
                for job in jobs {
                    guardian.job(job)?;
                }
                Ok(guardian)
            }
        }
    }

    /// Tells of a job before its program starts.
    ///
    /// # Errors
    /// The guardian has gone, or does not listen.
    pub(crate) fn job(&mut self, job: &Process) -> io::Result<()> {
        self.line.write_all(format!("job {} {}\n", job.pid, job.start).as_bytes())
    }

    /// Tells that a job has ended.
    ///
    /// # Errors
    /// As [`Guardian::job`].
    pub(crate) fn gone(&mut self, pid: RawPid) -> io::Result<()> {
        self.line.write_all(format!("gone {pid}\n").as_bytes())
    }

    /// Tells that the run has ended in good order, and sees the guardian off.
    pub(crate) fn dismiss(mut self) {
        let _ = self.line.write_all(b"bye\n");
        drop(self.line);
        // It has nothing left to do, and one that somebody has stopped would never hear.
        let _ = sys::kill(self.pid, libc::SIGKILL);
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
}

/// The guardian's life; its exit code.
fn guard(charge: &Charge, line: OwnedFd) -> i32 {
    sys::ignore_signals();
    sys::set_name(NAME);
    let _ = rustix::process::setsid();
    keep_only(&line);
    let mut jobs: BTreeMap<RawPid, (Process, Option<OwnedFd>)> = BTreeMap::new();
    for message in BufReader::new(File::from(line)).lines() {
        // A line that can't be read is an end without a farewell.
        let Ok(message) = message else { break };
        let mut words = message.split(' ');
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        match (words.next(), number(words.next()), number(words.next())) {
            (Some("bye"), ..) => return 0,
            (Some("job"), Some(pid), Some(start)) => {
                let pid = pid as RawPid;
                let process = Process::read(&charge.root, pid).filter(|process| process.start == start);
                if let Some(process) = process {
                    jobs.insert(pid, (process, process.handle(&charge.root)));
                }
            }
            (Some("gone"), Some(pid), _) => {
                jobs.remove(&(pid as RawPid));
            }
            _ => {}
        }
    }
    // First what is quick: every job's own process and its group.
    for (pid, (process, handle)) in &jobs {
        let there = match handle {
            Some(handle) => pidfd_send_signal(handle, Signal::CONT).is_ok(),
            None => process.signal(&charge.root, Signal::CONT),
        };
        if there {
            let _ = sys::kill(-pid, libc::SIGCONT);
        }
    }
    if let Some(group) = &charge.group {
        cgroup::release(group);
    }
    // Then what has gone its own way.
    mend::free_marked(&charge.root, &charge.token, &charge.cpus);
    if let Some(group) = &charge.group {
        cgroup::release(group);
    }
    0
}

/// Closes all descriptors but the line and the standard ones, which become `/dev/null`: a guardian that held the run's
/// output open would keep those waiting who read it.
fn keep_only(line: &OwnedFd) {
    let keep = line.as_raw_fd().cast_unsigned();
    // SAFETY: nothing in this process uses the descriptors that are closed; `line` is not among them.
    unsafe {
        if keep > 3 {
            libc::close_range(3, keep - 1, 0);
        }
        libc::close_range(keep.max(2) + 1, u32::MAX, 0);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for target in 0..3 {
            if keep != target {
                libc::dup2(null, target.cast_signed());
            }
        }
        if null > 2 {
            libc::close(null);
        }
    }
}
