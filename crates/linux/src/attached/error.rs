//! Why a selection can't be observed, and what to do.

use crate::sys::RawPid;

/// Why a selection can't be observed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No process has this number.
    #[error("process {0} does not exist, or this user may not see it; `ps -e` lists processes")]
    NoProcess(RawPid),
    /// This process is never observed.
    #[error("process {pid} is {what}; name another process")]
    Never {
        /// Its number.
        pid: RawPid,
        /// What it is.
        what: &'static str,
    },
    /// No cgroup v2 hierarchy is mounted.
    #[error("no cgroup v2 hierarchy is mounted; use --pid, --user or --match")]
    NoHierarchy,
    /// No such group.
    #[error("cgroup {path} does not exist below {top}; `systemd-cgls` lists groups")]
    NoGroup {
        /// The path that was given.
        path: String,
        /// The top of the hierarchy.
        top: String,
    },
    /// No such user.
    #[error("user {0} does not exist; `getent passwd` lists users")]
    NoUser(String),
}
