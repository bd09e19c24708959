//! The entries of a ledger. A slot contains one as JSON.

use crate::process::{Process, ProcessKey};
use crate::sys::RawPid;
use cosched_core::CpuSet;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What a run or a session holds, or may hold soon.
#[derive(Serialize, Deserialize)]
pub(crate) enum Held {
    /// The guardian, which holds nothing itself.
    Guardian(ProcessKey),
    /// A job of a run.
    Job(JobRecord),
    /// A process that belongs to a job, and may not be found through the job's own process.
    Member(MemberRecord),
    /// A thread whose CPUs were changed by a session.
    Pin(Pin),
    /// A thread that is left alone, although its CPUs may be the same as those of bound ones.
    Alone(ProcessKey),
    /// CPUs that threads get, and that those which they start inherit.
    Set(CpuSet),
    /// A group whose threads are bound from this tick since boot on.
    Group(u64, GroupPath),
    /// A group of others that is frozen next.
    Frozen(GroupPath),
}

/// A job in a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub(crate) task: u32,
    /// Its own process.
    pub(crate) main: ProcessKey,
    pub(crate) name: String,
    /// Another run started it.
    pub(crate) adopted: bool,
}

/// A process in a ledger that belongs to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    pub(crate) task: u32,
    pub(crate) process: ProcessKey,
    pub(crate) session: RawPid,
}

impl MemberRecord {
    pub(super) fn new(task: u32, process: &Process) -> MemberRecord {
        MemberRecord {
            task,
            process: process.into(),
            session: process.session,
        }
    }
}

/// A thread whose CPUs were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// The thread.
    pub(crate) thread: ProcessKey,
    /// Its process.
    pub(crate) process: ProcessKey,
    /// Its CPUs before all changes.
    pub(crate) old: CpuSet,
    /// Its CPUs after the last change.
    pub(crate) set: CpuSet,
    /// Its CPUs before the last change, which may not have happened yet.
    pub(crate) before: CpuSet,
    /// Time of the first change, in ticks since boot.
    pub(crate) since: u64,
}

/// The path of a group with a character for each byte: it need not be UTF-8.
#[derive(Serialize, Deserialize)]
pub(crate) struct GroupPath(String);

impl From<&Path> for GroupPath {
    fn from(path: &Path) -> GroupPath {
        let bytes = path.as_os_str().as_bytes().iter();
        GroupPath(bytes.map(|&byte| char::from(byte)).collect())
    }
}

impl From<GroupPath> for PathBuf {
    fn from(path: GroupPath) -> PathBuf {
        let bytes = path.0.chars().map(|byte| byte as u8);
        OsString::from_vec(bytes.collect()).into()
    }
}
