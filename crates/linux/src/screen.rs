//! Signals for a full-screen program, which must restore the terminal.

use crate::interrupts::Interrupts;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Signals that end such a program.
const LEAVING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Blocked signals, read on request. Dropping it unblocks them.
pub struct ScreenSignals(Interrupts);

/// The meaning of a signal to such a program.
#[derive(Clone, Copy, Debug)]
pub enum ScreenSignal {
    /// Leave; the signal's number.
    Leave(i32),
    /// Stop until continued.
    Suspend,
    /// It was continued after a stop.
    Continued,
    /// The terminal has a new size.
    Resized,
}

impl ScreenSignal {
    fn of(signal: i32) -> ScreenSignal {
        match signal {
            libc::SIGTSTP => ScreenSignal::Suspend,
            libc::SIGCONT => ScreenSignal::Continued,
            libc::SIGWINCH => ScreenSignal::Resized,
            signal => ScreenSignal::Leave(signal),
        }
    }
}

impl ScreenSignals {
    /// Blocks the signals from now on, even those that the caller ignored: the terminal must be restored.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold() -> io::Result<ScreenSignals> {
        let others = [libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH];
        Interrupts::of(&[&LEAVING[..], &others].concat()).map(ScreenSignals)
    }

    /// The pending signals. Does not wait.
    pub fn take(&self) -> Vec<ScreenSignal> {
        std::iter::from_fn(|| self.0.next_number())
            .map(ScreenSignal::of)
            .collect()
    }

    /// Stops this process until it is continued.
    pub fn stop(&self) {
        let _ = sys::kill(std::process::id() as sys::RawPid, libc::SIGSTOP);
    }
}

impl AsFd for ScreenSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
