//! Limits of this process that are too low for a run. They are checked before anything is started: a run that meets them
//! later cannot start its jobs, or loses its list of stopped processes.

use crate::ledger;
use crate::sys;
use rustix::process::{Resource, getrlimit};

/// A limit that is too low.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLow {
    /// Of files that may be open at once.
    #[error("this process may have {most} files open (`ulimit -Hn`), and a run needs {needed}")]
    OpenFiles {
        /// How far the limit may be raised.
        most: u64,
        /// What a run needs, beside what is open already.
        needed: u64,
    },
    /// Of the size of a file.
    #[error(
        "a file may have {most} bytes (`ulimit -f`), and the list of the run's processes needs {needed}"
    )]
    FileSize {
        /// The limit.
        most: u64,
        /// What the list of the run's processes needs.
        needed: u64,
    },
}

/// The files that a run has open beside those that it was given, while it starts a job that is not counted: at most 23 were
/// seen, with all files that can be asked for.
const RUN_FILES: u64 = 29;

/// Raises the limit on open files as far as allowed, and looks whether that is enough. Jobs get the limit as it was.
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
        Some(most) if most < needed => Err(TooLow::OpenFiles { most, needed }),
        _ => Ok(()),
    }
}

/// Looks whether the list of a run's processes may be as long as it gets with so many jobs at once.
///
/// # Errors
/// It may not.
pub fn check_file_size(jobs: usize) -> Result<(), TooLow> {
    let needed = ledger::bytes_of(jobs);
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < needed => Err(TooLow::FileSize { most, needed }),
        _ => Ok(()),
    }
}
