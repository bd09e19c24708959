//! The guardian: a small process that frees a run's jobs when the run dies, however it dies.
//!
//! It holds one end of a pipe. The run holds the other and writes a line for each job that starts or ends, and a last
//! line when it ends in good order. If the pipe closes without that line, the run has died: the guardian thaws the
//! run's groups, continues its stopped processes, gives them their CPUs back, removes the groups, and ends. The jobs
//! run on.
//!
//! It lives in a session of its own and ignores all signals, so that a signal from the terminal that ends the run does
//! not end the guardian. If somebody kills it, the run sees the end of its child and starts another. If both are killed
//! at once, each job's own process is continued by its parent-death signal; the next start and `cosched thaw` free what
//! remains.
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

/// The run's end of the pipe to its guardian.
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
    /// The token that marks the run's processes.
    pub(crate) token: String,
    /// The run's group, if it has one.
    pub(crate) group: Option<PathBuf>,
    /// The CPUs that the run was given; its jobs get them back.
    pub(crate) cpus: CpuSet,
}

/// The guardian's name in `ps`.
const NAME: &std::ffi::CStr = c"cosched-guard";

impl Guardian {
    /// Starts a guardian for these jobs, which may be running already.
    ///
    /// # Errors
    /// No process or no pipe could be made.
    pub(crate) fn start<'a>(charge: &Charge, jobs: impl Iterator<Item = &'a Process>) -> io::Result<Guardian> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // The pipe must not block: the run must never wait for its guardian.
        rustix::fs::fcntl_setfl(&write, rustix::fs::OFlags::NONBLOCK)?;
        // SAFETY: the run has one thread (the backend checks that when it is made).
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

    /// Tells the guardian of a job before the job's program starts.
    ///
    /// # Errors
    /// The guardian has ended, or does not read.
    pub(crate) fn job(&mut self, job: &Process) -> io::Result<()> {
        self.line.write_all(format!("job {} {}\n", job.pid, job.start).as_bytes())
    }

    /// Tells the guardian that a job has ended.
    ///
    /// # Errors
    /// As [`Guardian::job`].
    pub(crate) fn gone(&mut self, pid: RawPid) -> io::Result<()> {
        self.line.write_all(format!("gone {pid}\n").as_bytes())
    }

    /// Tells the guardian that the run has ended in good order, and reaps it.
    pub(crate) fn dismiss(mut self) {
        let _ = self.line.write_all(b"bye\n");
        drop(self.line);
        // It has nothing left to do, and a guardian that somebody has stopped would never read the message.
        let _ = sys::kill(self.pid, libc::SIGKILL);
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
}

/// The guardian's main function; returns its exit code.
fn guard(charge: &Charge, line: OwnedFd) -> i32 {
    sys::ignore_signals();
    sys::set_name(NAME);
    let _ = rustix::process::setsid();
    keep_only(&line);
    let mut jobs: BTreeMap<RawPid, (Process, Option<OwnedFd>)> = BTreeMap::new();
    for message in BufReader::new(File::from(line)).lines() {
        // A line that can't be read counts as the run's death.
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
    // First the quick part: every job's own process and its group.
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
    // Then the processes that left their group.
    mend::free_marked(&charge.root, &charge.token, &charge.cpus);
    if let Some(group) = &charge.group {
        cgroup::release(group);
    }
    0
}

/// Closes all descriptors but the line and the standard ones, which become `/dev/null`. A guardian that held the run's
/// output open would keep its readers waiting.
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
