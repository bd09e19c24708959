//! Resources used by a task until its end, beside CPU time and counted events.

use crate::units::{Absence, Nanos, Reading};

/// Resources used by a task from its start to its end. Policies do not see them: they are known only when nothing is
/// left to decide about the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Peak resident memory of its largest process, in bytes.
    pub max_rss: Reading<u64>,
    /// CPU time in user mode.
    pub user_time: Reading<Nanos>,
    /// CPU time in the kernel.
    pub system_time: Reading<Nanos>,
    /// Bytes read from storage.
    pub read_bytes: Reading<u64>,
    /// Bytes written to storage.
    pub written_bytes: Reading<u64>,
}

impl Resources {
    /// All values absent, for one reason.
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
