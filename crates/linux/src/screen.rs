//! Signals that concern a program which has the whole terminal, and must leave it as it was.

use crate::interrupts::Interrupts;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Signals after which such a program leaves.
const LEAVING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signals, held back until they are asked for. Dropping it lets them act again.
pub struct ScreenSignals(Interrupts);

/// What a signal means to such a program.
#[derive(Clone, Copy, Debug)]
pub enum ScreenSignal {
    /// It is to leave; the signal's number.
    Leave(i32),
    /// It is to stop until it is continued.
    Suspend,
    /// It goes on after it was stopped.
    Continued,
    /// The terminal has another size.
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
    /// Holds the signals back from now on. Those that the caller ignored are heard as well: the terminal must be left as it was.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold() -> io::Result<ScreenSignals> {
        let others = [libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH];
        Interrupts::of(&[&LEAVING[..], &others].concat()).map(ScreenSignals)
    }

    /// The signals that have arrived. Does not wait.
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
