//! The signals that end a run, for a run without processes of its own. They are held back until the run asks for them,
//! so that cosched can end in good order.

use crate::sys::{self, SignalMask};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Signals that end a run. SIGPIPE means that nobody reads its output any more.
pub(crate) const ENDING: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE];

/// The signals that end a run, held back until they are asked for. Dropping it lets them act again.
pub struct Interrupts {
    signals: OwnedFd,
    mask: SignalMask,
}

impl Interrupts {
    /// Holds back Ctrl-C, SIGTERM, SIGHUP and SIGQUIT from now on.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn hold() -> io::Result<Interrupts> {
        let (signals, mask) = sys::take_signals(&ENDING)?;
        Ok(Interrupts { signals, mask })
    }

    /// The number of a signal that has arrived; `None` if there is none. Does not wait.
    pub fn next_signal(&self) -> Option<i32> {
        sys::pending_signals::<1>(self.signals.as_fd()).pop()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // A signal that nobody asked for was meant for this run. It must not end what follows.
        while self.next_signal().is_some() {}
        sys::restore_mask(&self.mask);
    }
}
