//! The signals of a run. They are held back from before its first file until its record is written, so that one that comes
//! between leaves neither files without a record nor jobs without a scheduler.

use super::options::RunOptions;
use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result};
use cosched_linux::{Interrupt, Interrupts};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

/// The signals of a run, held back. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Signals {
    held: Rc<Interrupts>,
}

impl Signals {
    /// Holds signals back from now on, unless the caller of the run takes them.
    pub(crate) fn hold(options: &RunOptions) -> Result<Signals> {
        let held = if options.leaves_signals {
            Interrupts::hold_none()
        } else {
            Interrupts::hold()
        };
        let held = Rc::new(held.context("taking signals")?);
        Ok(Signals { held })
    }

    /// The next signal that ends the run. Others are not held back, and act as always.
    pub(crate) fn next(&self) -> Option<i32> {
        match self.held.next_signal()? {
            Interrupt::End(signal) => Some(signal),
            Interrupt::Suspend => None,
        }
    }

    /// Ends a run that has started nothing yet, if a signal has come.
    ///
    /// # Errors
    /// A signal has come.
    pub(crate) fn look(&self) -> Result<()> {
        let Some(signal) = self.next() else {
            return Ok(());
        };
        let message = format!("signal {signal} came before anything was started");
        let exit = Exit::Signal(signal);
        Err(Failure { exit, message }.into())
    }

    /// Whether a signal is pending, and keeps it so.
    pub(crate) fn has_come(&self) -> bool {
        self.held.has_come()
    }

    /// Lets signals act as always from now on. Pending ones were meant for the run, and are dropped.
    pub(crate) fn release(&self) {
        self.held.release();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}
