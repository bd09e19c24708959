//! Signal masks, dispositions and pending signals.
#![allow(unsafe_code)]

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The set of blocked signals before the run changed it; children restore it.
#[derive(Clone, Copy)]
pub(crate) struct SignalMask(libc::sigset_t);

fn sigset(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before it is used, and sigaddset gets a valid pointer to it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks `signals`. Returns a descriptor to read them from, and the previous mask.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn take_signals(signals: &[i32]) -> io::Result<(OwnedFd, SignalMask)> {
    let set = sigset(signals);
    // SAFETY: both sets are valid for the length of the calls; the descriptor is new and owned by nobody else.
    unsafe {
        let mut old = std::mem::zeroed();
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, &mut old))?;
        let fd = check(libc::signalfd(
            -1,
            &set,
            libc::SFD_NONBLOCK | libc::SFD_CLOEXEC,
        ))?;
        Ok((OwnedFd::from_raw_fd(fd), SignalMask(old)))
    }
}

/// The signals that this thread blocks.
pub(crate) fn signal_mask() -> SignalMask {
    // SAFETY: nothing is changed, and the set is valid for the length of the call.
    unsafe {
        let mut now = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut now);
        SignalMask(now)
    }
}

/// Restores a signal mask.
pub(crate) fn restore_mask(mask: &SignalMask) {
    // SAFETY: the set was filled in by the kernel.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut());
    }
}

/// The signals whose disposition can be changed, including realtime signals. The C library reserves some and refuses to
/// change them.
fn all_signals() -> impl Iterator<Item = i32> {
    (1..=libc::SIGRTMAX()).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal))
}

/// Resets all signals except those in `ignored` to their defaults, and restores the mask, as a program expects at its
/// start. Pending signals were meant for the parent process, and are dropped: they would act on the memory of both.
pub(crate) fn default_signals(mask: &SignalMask, ignored: &[i32]) {
    // SAFETY: neither the default nor ignoring runs any code of ours.
    unsafe {
        for signal in all_signals() {
            // Ignoring a signal drops a pending one.
            libc::signal(signal, libc::SIG_IGN);
            if !ignored.contains(&signal) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    restore_mask(mask);
}

/// The same for a child with memory of its own: signals that were sent to it since its start stay, and act now.
pub(crate) fn default_signals_of_fork(mask: &SignalMask, ignored: &[i32]) {
    // SAFETY: neither the default nor ignoring runs any code of ours.
    unsafe {
        for signal in all_signals() {
            if !ignored.contains(&signal) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    restore_mask(mask);
}

/// The signals that this process ignores.
pub(crate) fn ignored_signals() -> Vec<i32> {
    all_signals().filter(|&signal| is_ignored(signal)).collect()
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: nothing is changed, and the structure is valid for the length of the call.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Ignores a signal, or restores its default.
pub(crate) fn set_ignored(signal: i32, ignored: bool) {
    // SAFETY: neither the default nor ignoring runs any code of ours.
    unsafe {
        libc::signal(
            signal,
            if ignored {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            },
        );
    }
}

/// Ignores every signal that can be ignored, for a process that must outlive all others.
pub(crate) fn ignore_signals() {
    // SAFETY: ignoring runs no code of ours.
    unsafe {
        for signal in all_signals().filter(|&signal| signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Ends this process by a signal, without a core dump. Returns if the signal ends no process.
pub(crate) fn end_by(signal: i32) {
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    set_ignored(signal, false);
    restore_mask(&SignalMask(sigset(&[])));
    // SAFETY: takes a number; the signal has its default again.
    unsafe {
        libc::raise(signal);
    }
}

/// Reads up to `MOST` pending signals from a descriptor from [`take_signals`]. Skips a SIGPIPE that this process caused
/// itself by writing to a pipe, such as that of a job that was killed before it executed its program: the failed write
/// reports that already. The result is empty only if no other signal is pending.
pub(crate) fn pending_signals<const MOST: usize>(fd: BorrowedFd<'_>) -> Vec<i32> {
    let own = std::process::id();
    loop {
        // SAFETY: the buffer is as large as the length that is passed, and any bytes are valid signalfd_siginfo.
        let (infos, got) = unsafe {
            let mut infos: [libc::signalfd_siginfo; MOST] = std::mem::zeroed();
            let got = libc::read(fd.as_raw_fd(), (&raw mut infos).cast(), size_of_val(&infos));
            (infos, got)
        };
        let count = usize::try_from(got).unwrap_or(0) / size_of::<libc::signalfd_siginfo>();
        let news: Vec<i32> = infos[..count]
            .iter()
            .filter(|info| info.ssi_signo as i32 != libc::SIGPIPE || info.ssi_pid != own)
            .map(|info| info.ssi_signo as i32)
            .collect();
        if count == 0 || !news.is_empty() {
            return news;
        }
    }
}

/// Before the program of `command` starts, restores this mask, resets all signals except those in `ignored`, and
/// requests SIGTERM for it when the thread that starts it ends.
pub(crate) fn before_exec(
    command: &mut std::process::Command,
    mask: SignalMask,
    ignored: &'static [i32],
) {
    use std::os::unix::process::CommandExt as _;
    let parent = std::process::id();
    let settle = move || {
        default_signals(&mask, ignored);
        die_with(parent, rustix::process::Signal::TERM)
    };
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated: the list of ignored signals
    // lives as long as the program, and an error of the system holds a number.
    unsafe {
        command.pre_exec(settle);
    }
}

/// Before the program of `command` starts, requests SIGKILL for it when the thread that starts it ends.
pub(crate) fn kill_with_parent(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe {
        command.pre_exec(move || die_with(parent, rustix::process::Signal::KILL));
    }
}

/// Requests a signal for this process when its parent ends.
///
/// # Errors
/// The parent has ended.
fn die_with(parent: u32, signal: rustix::process::Signal) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    // The parent may have ended before that.
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } as u32 != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn raise(signal: i32) {
        // SAFETY: takes a number; the signal is blocked in this thread.
        unsafe {
            libc::raise(signal);
        }
    }

    #[test]
    fn a_signal_behind_one_that_means_nothing_is_seen() {
        let (signals, mask) = take_signals(&[libc::SIGPIPE, libc::SIGTERM]).unwrap();
        raise(libc::SIGPIPE);
        raise(libc::SIGTERM);
        assert_eq!(pending_signals::<1>(signals.as_fd()), [libc::SIGTERM]);
        assert!(pending_signals::<1>(signals.as_fd()).is_empty());
        restore_mask(&mask);
    }
}
