//! A small process that outlives the one that started it: at the other end of a pipe, in a session of its own, deaf to
//! signals.
#![allow(unsafe_code)]

use crate::sys::{self, ForkSide, RawPid};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

/// Starts such a process, which runs `main` with the reading end of a pipe and ends. Returns its number and the writing
/// end. Neither side waits for the other.
///
/// # Errors
/// No process or no pipe could be made.
pub(crate) fn start(main: impl FnOnce(OwnedFd)) -> io::Result<(RawPid, OwnedFd)> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
    let (read, write) = rustix::pipe::pipe_with(flags)?;
    // SAFETY: the process has one thread (the backends check that when they are made).
    match unsafe { sys::fork() }? {
        ForkSide::Child => {
            main(read);
            sys::exit_now(0)
        }
        ForkSide::Parent(pid) => Ok((pid, write)),
    }
}

/// Reads what the other process has said, and returns its length; `None` if it has closed the pipe.
pub(crate) fn hear(line: &OwnedFd, told: &mut [u8]) -> Option<usize> {
    match rustix::io::read(line, told) {
        Ok(0) => None,
        Ok(length) => Some(length),
        Err(error) => matches!(error, Errno::INTR | Errno::AGAIN).then_some(0),
    }
}

/// Ends such a process, whatever state it is in.
pub(crate) fn dismiss(pid: RawPid) {
    let _ = sys::kill(pid, libc::SIGKILL);
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }
}

/// Detaches this process from the one that started it: it has another name in `ps`, a session of its own, and only
/// these descriptors.
pub(crate) fn detach(name: &CStr, kept: Vec<RawFd>) {
    let _ = rustix::thread::set_name(name);
    let _ = rustix::process::setsid();
    // It must not keep a file system in use.
    let _ = std::env::set_current_dir("/");
    keep_only(kept);
}

/// Closes the descriptors of a range. musl has no call for that.
///
/// ```c
/// int close_range(unsigned int first, unsigned int last, int flags);
/// ```
///
/// # Safety
/// Nothing uses the descriptors.
unsafe fn close_range(first: u32, last: u32) {
    // SAFETY: takes numbers only; the rest is the caller's promise.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, last, 0);
    }
}

/// Closes all descriptors but these and the standard ones, which become `/dev/null`. A guardian that held the run's
/// output open would keep its readers waiting.
fn keep_only(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    // SAFETY: nothing in this process uses the descriptors that are closed: those in `kept` are not among them.
    unsafe {
        let mut from = 3;
        for keep in kept
            .iter()
            .map(|&fd| fd.cast_unsigned())
            .filter(|&fd| fd > 2)
        {
            if keep > from {
                close_range(from, keep - 1);
            }
            from = keep + 1;
        }
        close_range(from, u32::MAX);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for target in (0..3).filter(|target| !kept.contains(target)) {
            libc::dup2(null, target);
        }
        if null > 2 && !kept.contains(&null) {
            libc::close(null);
        }
    }
}
