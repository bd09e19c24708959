//! Keeps a guardian at hand: starts it, and replaces it when somebody killed or stopped it.

use super::notice::{Notice, Notices};
use crate::guardian::{Charge, Guardian};
use crate::sys::RawPid;

/// The run's guardian, as long as one can be had.
pub(crate) struct Guard {
    charge: Charge,
    guardian: Option<Guardian>,
    notices: Notices,
}

impl Guard {
    /// Starts a guardian; tells the user when that fails.
    pub(crate) fn start(charge: Charge, notices: Notices) -> Guard {
        let mut guard = Guard { charge, guardian: None, notices };
        guard.renew();
        guard
    }

    fn renew(&mut self) -> bool {
        match Guardian::start(&self.charge) {
            Ok(guardian) => self.guardian = Some(guardian),
            Err(error) => self.notices.tell(Notice::NoGuardian(error.to_string())),
        }
        self.guardian.is_some()
    }

    /// Whether this child of ours is the guardian.
    pub(crate) fn is(&self, pid: RawPid) -> bool {
        self.guardian.as_ref().is_some_and(|guardian| guardian.pid == pid)
    }

    /// Starts another guardian after somebody killed or stopped this one. `reaped` says that it has been waited for, so
    /// that its number may belong to another process.
    pub(crate) fn replace(&mut self, reaped: bool) {
        match self.guardian.take() {
            // A stopped one would come back some day, and take the run for dead.
            Some(old) if !reaped => old.dismiss(),
            _ => {}
        }
        if self.renew() {
            self.notices.tell(Notice::GuardianReplaced);
        }
    }

    /// Sends the guardian away: the run has ended in good order.
    pub(crate) fn dismiss(&mut self) {
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}
