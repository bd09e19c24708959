//! Keeps a guardian at hand: starts it, and replaces it when somebody killed or stopped it.

use super::notice::{Notice, Notices};
use crate::guardian::{Beat, Charge, Guardian};
use crate::sys::RawPid;
use cosched_core::Nanos;

/// The run's guardian, if there is one.
pub(crate) struct Guard {
    charge: Charge,
    guardian: Option<Guardian>,
    /// Already warned that there is none.
    told: bool,
    /// When to try again, as long as there is none.
    retry: Nanos,
    notices: Notices,
}

/// Delay before retrying a failed start of a guardian.
const BETWEEN_TRIES: Nanos = Nanos::from_ms(1_000);

impl Guard {
    /// Starts a guardian; warns when that fails.
    pub(crate) fn start(charge: Charge, notices: Notices) -> Guard {
        let mut guard = Guard {
            charge,
            guardian: None,
            told: false,
            retry: Nanos::ZERO,
            notices,
        };
        guard.renew();
        guard
    }

    fn renew(&mut self) -> bool {
        match Guardian::start(&self.charge) {
            Ok(guardian) => (self.guardian, self.told) = (Some(guardian), false),
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    self.notices.tell(Notice::NoGuardian(error.to_string()));
                }
            }
        }
        self.guardian.is_some()
    }

    /// Tells the guardian how the run does.
    pub(crate) fn tell(&self, beat: Beat) {
        if let Some(guardian) = &self.guardian {
            guardian.tell(beat);
        }
    }

    /// Whether this child of ours is the guardian.
    pub(crate) fn is(&self, pid: RawPid) -> bool {
        self.guardian
            .as_ref()
            .is_some_and(|guardian| guardian.pid == pid)
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

    /// Starts a guardian if there is none; when to try again if that fails.
    pub(crate) fn keep(&mut self, now: Nanos) -> Option<Nanos> {
        if self.guardian.is_some() {
            return None;
        }
        if now >= self.retry {
            if self.renew() {
                self.notices.tell(Notice::GuardianReplaced);
                return None;
            }
            self.retry = now + BETWEEN_TRIES;
        }
        Some(self.retry)
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
