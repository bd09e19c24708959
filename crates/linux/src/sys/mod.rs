//! System calls without a safe wrapper elsewhere.
#![allow(unsafe_code)]

mod clone;
mod limits;
mod pages;
mod sched;
mod signals;
mod wall_clock;

pub(crate) use clone::{ForkSide, Stack, clone_into, fork, start};
pub(crate) use limits::{raise_file_limit, restore_file_limit, spare_descriptors};
pub use pages::prefer_huge_pages;
pub use sched::{affinity, pin_thread};
pub(crate) use sched::{is_loaded, is_ordinary, set_affinity, set_loaded_scheduler};
pub(crate) use signals::{
    SignalMask, before_exec, default_signals, default_signals_of_fork, end_by, ignore_signals,
    ignored_signals, kill_with_parent, pending_signals, restore_mask, set_ignored, signal_mask,
    take_signals,
};
pub use wall_clock::{time_of_day, unix_time};

use cosched_core::{Exit, Nanos};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A process number of the kernel.
pub(crate) type RawPid = i32;

/// The state of a child reported by `wait_any`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ChildStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was stopped.
    Stopped,
    /// It was continued.
    Continued,
}

impl ChildStatus {
    /// How it ended, if it has.
    pub(crate) fn exit(self) -> Exit {
        match self {
            ChildStatus::Exited(code) => Exit::Code(code),
            ChildStatus::Signaled(signal) => Exit::Signal { signal, oom: false },
            ChildStatus::Stopped | ChildStatus::Continued => Exit::Unknown,
        }
    }
}

/// A child whose state has changed.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    /// The child.
    pub pid: RawPid,
    /// Its new state.
    pub status: ChildStatus,
    /// Usage of it and its waited-for descendants; meaningful only if the child has ended.
    pub used: ProcessUsage,
}

/// Usage of a process and its waited-for descendants, by the kernel's accounts.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessUsage {
    pub user: Nanos,
    pub system: Nanos,
    /// Peak resident memory of the largest one, in bytes. The kernel counts from the fork on, so it can be that of this
    /// process when it forked.
    pub max_rss: u64,
    /// Bytes read from storage, and written to it.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl ProcessUsage {
    fn of(usage: &libc::rusage) -> ProcessUsage {
        ProcessUsage {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            max_rss: bytes(usage.ru_maxrss, 1024),
            read_bytes: bytes(usage.ru_inblock, 512),
            written_bytes: bytes(usage.ru_oublock, 512),
        }
    }

    /// Usage of all descendants that this process, or a child of it, has waited for.
    pub(crate) fn of_children() -> ProcessUsage {
        ProcessUsage::of(&usage(libc::RUSAGE_CHILDREN))
    }

    /// CPU time.
    pub(crate) fn cpu_time(&self) -> Nanos {
        self.user + self.system
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The next child whose state has changed; `None` if there is none now.
pub(crate) fn wait_any() -> Option<Waited> {
    let mut status = 0;
    // SAFETY: both pointers are valid, and the kernel fills the usage in when it returns a child.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
        (libc::wait4(-1, &mut status, flags, &mut usage), usage)
    };
    if pid <= 0 {
        return None;
    }
    let status = if libc::WIFEXITED(status) {
        ChildStatus::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        ChildStatus::Signaled(libc::WTERMSIG(status))
    } else if libc::WIFSTOPPED(status) {
        ChildStatus::Stopped
    } else {
        ChildStatus::Continued
    };
    let used = ProcessUsage::of(&usage);
    Some(Waited { pid, status, used })
}

fn nanos(time: libc::timeval) -> Nanos {
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
}

fn bytes(count: libc::c_long, unit: u64) -> u64 {
    u64::try_from(count).unwrap_or(0).saturating_mul(unit)
}

/// Whether this process has a child, even if that has ended and was not waited for.
pub(crate) fn has_children() -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: nothing is waited for, and the pointer is valid.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &mut std::mem::zeroed(), flags) };
    check(result).is_ok()
}

fn usage(of: libc::c_int) -> libc::rusage {
    // SAFETY: the pointer is valid, and the kernel fills the usage in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    }
}

/// Peak resident memory of this process so far, in bytes.
pub(crate) fn own_max_rss() -> u64 {
    bytes(usage(libc::RUSAGE_SELF).ru_maxrss, 1024)
}

/// Sends a signal to a process, or with a negative number to a process group.
///
/// # Errors
/// An error of the kernel: no such process, or not permitted.
pub(crate) fn kill(pid: RawPid, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Duplicates an open descriptor; both share the file position.
///
/// # Errors
/// The number is not an open descriptor, or an error of the kernel.
pub fn same_open_file(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel checks the number; nothing of this process is read or written.
    let fd = check(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes over a descriptor that was passed to this process. Programs that it starts do not get it.
///
/// # Errors
/// The number is not an open descriptor, or an error of the kernel.
pub(crate) fn take_descriptor(number: i32) -> io::Result<OwnedFd> {
    let fd = same_open_file(number)?;
    // SAFETY: takes a number; the caller says that nothing else here uses the descriptor.
    check(unsafe { libc::close(number) })?;
    Ok(fd)
}

/// Ends the process at once, without running exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Whether this process has a single thread, as [`fork`] requires.
pub(crate) fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}
