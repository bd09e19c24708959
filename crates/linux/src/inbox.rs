//! What may ask a run for something from outside, beside signals.

use cosched_core::Event;
use std::os::fd::BorrowedFd;

/// Descriptors on which requests come. A run watches them while it waits, and never waits for them.
pub trait Inbox {
    /// What to watch for something to read; nothing once nobody can ask any more.
    fn lines(&self) -> Vec<BorrowedFd<'_>>;

    /// Takes what has come, without waiting, and appends what it asks for.
    fn take(&mut self, events: &mut Vec<Event>);
}
