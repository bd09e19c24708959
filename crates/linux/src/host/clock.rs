//! The run's clock.

use cosched_core::Nanos;

/// The machine's monotonic clock.
pub(crate) fn monotonic() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Time since the start of the run, without the time in which the whole run was suspended.
#[derive(Clone, Copy)]
pub(crate) struct RunClock {
    started: Nanos,
    suspended: Nanos,
}

impl RunClock {
    pub(crate) fn start() -> RunClock {
        RunClock {
            started: monotonic(),
            suspended: Nanos::ZERO,
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        monotonic() - self.started - self.suspended
    }

    /// Its relation to the kernel's clock, valid while the run is not suspended.
    pub(crate) fn relation(&self) -> Clock {
        Clock {
            zero: self.started + self.suspended,
        }
    }

    /// Excludes the time since `began`, an instant of [`monotonic`].
    pub(crate) fn leave_out_since(&mut self, began: Nanos) {
        self.suspended += monotonic() - began;
    }
}

/// The clock of a run, relative to the kernel's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The kernel's time at instant zero of the run, plus the time suspended.
    zero: Nanos,
}

impl Clock {
    /// The kernel's time at an instant of the run.
    pub fn kernel(&self, at: Nanos) -> u64 {
        self.zero.0 + at.0
    }

    /// The instant of the run at a time of the kernel; the first one for a time before it.
    pub fn run(&self, at: u64) -> Nanos {
        Nanos(at.saturating_sub(self.zero.0))
    }
}
