//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// The limit on open files as it was when this process raised it first.
static CALLERS_FILE_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit on open files as far as allowed; returns the caller's limit, or `None` if that fails.
pub(crate) fn raise_file_limit() -> Option<Rlimit> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).ok()?;
    Some(*CALLERS_FILE_LIMIT.get_or_init(|| limit))
}

/// Puts a limit on open files back in force.
pub(crate) fn restore_file_limit(limit: &Rlimit) {
    let _ = setrlimit(Resource::Nofile, *limit);
}

/// Descriptors that are kept free for what a run can't do without: starting a job, replacing the guardian, reading what
/// becomes of jobs.
const SPARE_DESCRIPTORS: usize = 64;

/// How many more descriptors a run can use for what it can do without.
pub(crate) fn spare_descriptors() -> usize {
    let Some(most) = getrlimit(Resource::Nofile).current else {
        return usize::MAX;
    };
    // This folder has the number of its entries as its size since Linux 6.2. Before, counting takes long.
    let folder = "/proc/self/fd";
    let open = match std::fs::metadata(folder).map_or(0, |folder| folder.len()) {
        0 => std::fs::read_dir(folder).map_or(0, Iterator::count),
        size => size as usize,
    };
    (most as usize).saturating_sub(open + SPARE_DESCRIPTORS)
}
