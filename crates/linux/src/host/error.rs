//! Errors of a [`Host`](super::Host).

use crate::cgroup::GroupError;
use crate::runtime::NoFolder;
use std::io;

/// Why a backend cannot be made, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The cgroup freezer was requested but cannot be used.
    #[error("the cgroup freezer can't be used: {0}")]
    Freezer(#[from] GroupError),
    /// There is no folder for the pipes of jobservers.
    #[error("--jobserver: {0}")]
    Jobserver(#[from] NoFolder),
    /// The process has several threads, so it cannot fork safely.
    #[error("the run must be the only thread of its process")]
    Threads,
    /// A call to the kernel failed.
    #[error("{what}: {source}")]
    System {
        /// The failed operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Wraps an error of the kernel with the failed operation.
pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::System { what, source }
}
