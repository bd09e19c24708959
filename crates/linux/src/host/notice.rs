//! Notices for the user of a run.

use crate::mend::Mended;
use std::cell::RefCell;
use std::rc::Rc;

/// Something about a job, or about the backend, that the user should know.
#[derive(Debug)]
pub enum Notice {
    /// An earlier run died and left things frozen; they were set free.
    Mended(Mended),
    /// A job stopped itself. It needs no CPU until it is continued.
    StoppedItself {
        /// Its name.
        job: String,
    },
    /// A job that had stopped itself was continued, since nobody else did.
    Continued {
        /// Its name.
        job: String,
    },
    /// A job's own process has ended, and processes that it started still run.
    Lingers {
        /// Its name.
        job: String,
        /// How many still run.
        processes: usize,
    },
    /// The guardian was killed, or could not be started, and a new one was started.
    GuardianReplaced,
    /// There is no guardian, for this reason: what is frozen when the run is killed stays frozen.
    NoGuardian(String),
    /// There is no list of the run's processes for those who come after it, for this reason.
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
    /// Processes of a job have chosen a scheduling policy of their own, and left the scheduler in the kernel.
    LeftScheduler {
        /// Its name.
        job: String,
        /// How many.
        processes: u32,
    },
    /// A job could not be given to the scheduler in the kernel; it runs under the ordinary one.
    NotTaken {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
    /// A job's counters could not be attached.
    CountersFailed {
        /// Its name.
        job: String,
        /// The error.
        why: String,
    },
}

type Told = Box<dyn FnMut(Notice)>;

/// Passes notices on to the caller of the run; clones pass them to the same one.
#[derive(Clone)]
pub(crate) struct Notices(Rc<RefCell<Told>>);

impl Notices {
    pub(crate) fn new(tell: Told) -> Notices {
        Notices(Rc::new(RefCell::new(tell)))
    }

    pub(crate) fn tell(&self, notice: Notice) {
        (self.0.borrow_mut())(notice);
    }
}
