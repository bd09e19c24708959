//! Notices for the user of a run.

use crate::hold::mend::Mended;
use crate::neighbours::Neighbour;
use cosched_core::{Absence, CpuSet, Nanos};
use std::cell::RefCell;
use std::rc::Rc;

/// A notice about a job or the backend.
#[derive(Debug)]
pub enum HostNotice {
    /// An earlier run died and left frozen processes; they were freed.
    Mended(Mended),
    /// Other runs came or ended, so this run uses other CPUs from now on.
    Share {
        /// Its CPUs.
        cpus: CpuSet,
        /// The other runs.
        others: Vec<Neighbour>,
        /// Whether it has more CPUs than before.
        has_grown: bool,
    },
    /// These of its CPUs are offline now; none if all have come back.
    Offline(CpuSet),
    /// Others want CPUs or memory, so the polite run uses fewer CPUs.
    StepsBack,
    /// The polite run uses all of its CPUs again.
    Returns,
    /// The time for which the polite run had fewer CPUs; at its end.
    SteppedBack(Nanos),
    /// The user has changed the maximum number of live jobs; 0 for no limit.
    JobLimit(u32),
    /// The user has paused the run, or has ended the pause.
    Paused(bool),
    /// A job stopped itself. It needs no CPU until it is continued.
    StoppedItself {
        /// Its name.
        job: String,
    },
    /// A job that had stopped itself was continued, since no other process did so.
    Continued {
        /// Its name.
        job: String,
    },
    /// A job's own process has ended, but processes that it started still run.
    Lingers {
        /// Its name.
        job: String,
        /// Number of processes that still run.
        processes: usize,
    },
    /// The guardian was killed, or could not be started, and a new one was started.
    GuardianReplaced,
    /// There is no guardian, for this reason: if the run is killed, frozen jobs stay frozen.
    NoGuardian(String),
    /// There is no list of the run's processes on disk, for this reason.
    NoList(String),
    /// A job could not be moved into a cgroup of its own; it is frozen by signals.
    NoGroup {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
    /// A job could not be frozen or thawed.
    FreezeFailed {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
    /// Processes of a job have left the scheduler in the kernel by choosing their own scheduling policy.
    LeftScheduler {
        /// Its name.
        job: String,
        /// Number of these processes.
        processes: u32,
    },
    /// A job could not be given to the scheduler in the kernel; it runs under the ordinary one.
    NotTaken {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
    /// Events are not counted for a while in which jobs run; each is told once.
    NotCounted {
        /// The names of the events.
        events: Vec<&'static str>,
        /// The job in which they were missed first.
        job: String,
        /// The reason.
        why: Absence,
    },
    /// A job's counters could not be attached.
    CountersFailed {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
}

type Told = Box<dyn FnMut(HostNotice)>;

/// Passes notices to the caller of the run; clones share it.
#[derive(Clone)]
pub(crate) struct HostNotices(Rc<RefCell<Told>>);

impl HostNotices {
    pub(crate) fn new(tell: Told) -> HostNotices {
        HostNotices(Rc::new(RefCell::new(tell)))
    }

    pub(crate) fn tell(&self, notice: HostNotice) {
        (self.0.borrow_mut())(notice);
    }
}
