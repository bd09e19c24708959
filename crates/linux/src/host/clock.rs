//! The run's clock.

use cosched_core::Nanos;

/// The machine's monotonic clock.
pub(crate) fn monotonic() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// CPU time of this process, without its children.
pub fn own_cpu_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Time since the start of the run, without the time in which the whole run was held.
#[derive(Clone, Copy)]
pub(crate) struct RunClock {
    started: Nanos,
    held: Nanos,
    /// Since when it stands still, if it does.
    stopped: Option<Nanos>,
}

impl RunClock {
    pub(crate) fn start() -> RunClock {
        RunClock {
            started: monotonic(),
            held: Nanos::ZERO,
            stopped: None,
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.stopped.unwrap_or_else(monotonic) - self.started - self.held
    }

    /// Its relation to the kernel's clock, valid while it does not stand still.
    pub(crate) fn relation(&self) -> Clock {
        Clock {
            zero: self.started + self.held,
        }
    }

    /// Stops it.
    pub(crate) fn stop(&mut self) {
        self.stopped.get_or_insert_with(monotonic);
    }

    /// Continues it. The time in which it stood still is left out.
    pub(crate) fn go_on(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            self.held += monotonic() - stopped;
        }
    }
}

/// The clock of a run, relative to the kernel's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The kernel's time at instant zero of the run, plus the time held.
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
