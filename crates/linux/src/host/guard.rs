//! Keeps a guardian at hand: starts it, tells it of every job, and replaces it when somebody killed it.

use super::notice::{Notice, Notices};
use crate::guardian::{Charge, Guardian};
use crate::process::Process;
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
        match Guardian::start(&guard.charge, std::iter::empty()) {
            Ok(guardian) => guard.guardian = Some(guardian),
            Err(error) => guard.notices.tell(Notice::NoGuardian(error.to_string())),
        }
        guard
    }

    /// Whether this child of ours is the guardian.
    pub(crate) fn is(&self, pid: RawPid) -> bool {
        self.guardian.as_ref().is_some_and(|guardian| guardian.pid == pid)
    }

    /// Tells the guardian of a job before its program starts; `false` when it does not listen and must be replaced.
    #[must_use]
    pub(crate) fn job(&mut self, process: &Process) -> bool {
        self.guardian.as_mut().is_none_or(|guardian| guardian.job(process).is_ok())
    }

    /// Tells the guardian that a job has ended; `false` when it does not listen and must be replaced.
    #[must_use]
    pub(crate) fn gone(&mut self, pid: RawPid) -> bool {
        self.guardian.as_mut().is_none_or(|guardian| guardian.gone(pid).is_ok())
    }

    /// Starts another guardian, in charge of the jobs with these processes.
    pub(crate) fn replace(&mut self, mains: &[Process]) {
        // The old one may be alive and only not reading. Then it frees everything once, and the next quantum freezes
        // again.
        self.guardian = None;
        match Guardian::start(&self.charge, mains.iter()) {
            Ok(guardian) => {
                self.guardian = Some(guardian);
                self.notices.tell(Notice::GuardianReplaced);
            }
            Err(error) => self.notices.tell(Notice::NoGuardian(error.to_string())),
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
