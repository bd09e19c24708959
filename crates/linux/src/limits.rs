//! The limit on open files, which may be too low for a run. It is checked before anything is started, because a run
//! that reaches it later cannot start its jobs.

use crate::sys;
use rustix::process::{Resource, getrlimit};

/// The limit on open files is too low.
#[derive(Debug, thiserror::Error)]
#[error("this process may have {most} files open (`ulimit -Hn`), and a run needs {needed}")]
pub struct TooLow {
    /// The hard limit.
    pub most: u64,
    /// The number of files that a run needs, including files that are already open.
    pub needed: u64,
}

/// The number of files that a run opens besides the inherited ones while it starts an uncounted job: at most 23 were
/// observed, with all optional files.
const RUN_FILES: u64 = 29;

/// Raises the limit on open files to the hard limit, and checks that it is enough. Jobs get the original limit.
///
/// # Errors
/// It is not enough.
pub fn check_open_files() -> Result<(), TooLow> {
    let _ = sys::raise_file_limit();
    // The folder itself is open while it is read.
    let open =
        std::fs::read_dir("/proc/self/fd").map_or(3, |files| files.count().saturating_sub(1));
    let needed = open as u64 + RUN_FILES;
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < needed => Err(TooLow { most, needed }),
        _ => Ok(()),
    }
}
