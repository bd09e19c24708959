//! Why a [`Host`](super::Host) can't be made, or can't go on.

use crate::cgroup::GroupError;
use std::io;

/// A backend that can't be made, or can't go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The cgroup freezer was asked for and can't be used.
    #[error("the cgroup freezer can't be used: {0}")]
    Freezer(#[from] GroupError),
    /// The process has several threads, so it can't fork safely.
    #[error("the run must be the only thread of its process")]
    Threads,
    /// A call to the kernel failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Turns an error of the kernel into one that says what was tried.
pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::System { what, source }
}
