//! Keeps a guardian running: starts it, and replaces it if it is killed or stopped.

use super::clock::monotonic;
use super::notice::{HostNotice, HostNotices};
use crate::hold::guardian::{Beat, Guardian};
use crate::hold::jobs::GuardedJobs;
use crate::sys::RawPid;
use cosched_core::Nanos;

/// The run's guardian, if there is one.
pub(crate) struct Guard {
    guarded: GuardedJobs,
    guardian: Option<Guardian>,
    /// Whether the user was warned that there is none.
    told: bool,
    /// Time of the next attempt, while there is none. The clock of the run stands still during pauses.
    retry: Nanos,
    notices: HostNotices,
}

/// Delay before retrying a failed start of a guardian.
const BETWEEN_TRIES: Nanos = Nanos::from_ms(1_000);

impl Guard {
    /// Starts a guardian; warns when that fails.
    pub(crate) fn start(guarded: GuardedJobs, notices: HostNotices) -> Guard {
        let mut guard = Guard {
            guarded,
            guardian: None,
            told: false,
            retry: Nanos::ZERO,
            notices,
        };
        guard.renew();
        guard
    }

    fn renew(&mut self) -> bool {
        match Guardian::start(&self.guarded, Beat::Rests) {
            Ok(guardian) => (self.guardian, self.told) = (Some(guardian), false),
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    self.notices.tell(HostNotice::NoGuardian(error.to_string()));
                }
            }
        }
        self.guardian.is_some()
    }

    /// Sends the guardian a heartbeat.
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

    /// Replaces a guardian that was killed or stopped. `reaped` means that it was waited for, so that its number may
    /// belong to another process.
    pub(crate) fn replace(&mut self, reaped: bool) {
        match self.guardian.take() {
            // A stopped guardian would resume some day, and take the run for dead.
            Some(old) if !reaped => old.dismiss(),
            _ => {}
        }
        if self.renew() {
            self.notices.tell(HostNotice::GuardianReplaced);
        }
    }

    /// Starts a guardian if there is none; returns the time until the next attempt if that fails.
    pub(crate) fn keep(&mut self) -> Option<Nanos> {
        if self.guardian.is_some() {
            return None;
        }
        let now = monotonic();
        if now >= self.retry {
            if self.renew() {
                self.notices.tell(HostNotice::GuardianReplaced);
                return None;
            }
            self.retry = now + BETWEEN_TRIES;
        }
        Some(self.retry - now)
    }

    /// Dismisses the guardian: the run has ended cleanly.
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
