//! The limit on open files, which may be too low for a run. It is checked before anything is started: a run that meets it
//! later cannot start its jobs.

use crate::sys;
use rustix::process::{Resource, getrlimit};

/// The limit on open files is too low.
#[derive(Debug, thiserror::Error)]
#[error("this process may have {most} files open (`ulimit -Hn`), and a run needs {needed}")]
pub struct TooLow {
    /// How far the limit may be raised.
    pub most: u64,
    /// What a run needs, with what is open already.
    pub needed: u64,
}

/// The files that a run has open beside those that it was given, while it starts a job that is not counted: at most 23 were
/// seen, with all files that can be asked for.
const RUN_FILES: u64 = 29;

/// Raises the limit on open files as far as allowed, and checks that it is enough. Jobs get the limit as it was.
///
/// # Errors
/// It is not enough.
pub fn check_open_files() -> Result<(), TooLow> {
    let _ = sys::raise_file_limit();
    // The folder is open itself while it is read.
    let open =
        std::fs::read_dir("/proc/self/fd").map_or(3, |files| files.count().saturating_sub(1));
    let needed = open as u64 + RUN_FILES;
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < needed => Err(TooLow { most, needed }),
        _ => Ok(()),
    }
}
