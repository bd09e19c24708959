//! Signals that end a run, for a run without processes of its own: taken in when it is convenient, instead of ending
//! cosched where it stands.

use crate::sys::{self, SignalMask};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Signals that end a run.
pub(crate) const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signals that end a run, held back until they are asked for. Dropped, it lets them act again.
pub struct Interrupts {
    signals: OwnedFd,
    mask: SignalMask,
}

impl Interrupts {
    /// Holds the signals back from now on: Ctrl-C, SIGTERM, SIGHUP and SIGQUIT.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn hold() -> io::Result<Interrupts> {
        let (signals, mask) = sys::take_signals(&ENDING)?;
        Ok(Interrupts { signals, mask })
    }

    /// The number of the next signal that came; `None` when there is none. Does not wait.
    pub fn next_signal(&self) -> Option<i32> {
        sys::pending_signals::<1>(self.signals.as_fd()).pop()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // One that came when nobody would ask for it any more was for this run: it does not end what comes after it.
        while self.next_signal().is_some() {}
        sys::restore_mask(&self.mask);
    }
}
