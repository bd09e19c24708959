//! What a task has used up by its end, beside CPU time and counted events.

use crate::units::{Absence, Nanos, Reading};

/// What a task has used from its start to its end. Policies do not see it: it is known only when nothing is left to
/// decide about the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Greatest resident memory of any one of its processes, in bytes.
    pub max_rss: Reading<u64>,
    /// CPU time in user mode.
    pub user_time: Reading<Nanos>,
    /// CPU time in the kernel.
    pub system_time: Reading<Nanos>,
    /// Bytes that had to be fetched from storage.
    pub read_bytes: Reading<u64>,
    /// Bytes that were written for storage.
    pub written_bytes: Reading<u64>,
}

impl Resources {
    /// Nothing is known, for the same reason.
    pub fn absent(why: Absence) -> Resources {
        Resources {
            max_rss: Reading::Absent(why),
            user_time: Reading::Absent(why),
            system_time: Reading::Absent(why),
            read_bytes: Reading::Absent(why),
            written_bytes: Reading::Absent(why),
        }
    }
}
