//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// The limit on open files before this process first raised it.
static CALLERS_FILE_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit on open files to the hard limit; returns the caller's limit, or `None` if that fails.
pub(crate) fn raise_file_limit() -> Option<Rlimit> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).ok()?;
    Some(*CALLERS_FILE_LIMIT.get_or_init(|| limit))
}

/// Restores a limit on open files.
pub(crate) fn restore_file_limit(limit: &Rlimit) {
    let _ = setrlimit(Resource::Nofile, *limit);
}

/// Descriptors reserved for the essential work of a run: starting a job, replacing the guardian, observing jobs.
const SPARE_DESCRIPTORS: usize = 64;

/// Number of descriptors left for optional work.
pub(crate) fn spare_descriptors() -> usize {
    let Some(most) = getrlimit(Resource::Nofile).current else {
        return usize::MAX;
    };
    // Since Linux 6.2 the size of this folder is its number of entries. On older kernels counting is slow.
    let folder = "/proc/self/fd";
    let open = match std::fs::metadata(folder).map_or(0, |folder| folder.len()) {
        0 => std::fs::read_dir(folder).map_or(0, Iterator::count),
        size => size as usize,
    };
    (most as usize).saturating_sub(open + SPARE_DESCRIPTORS)
}
