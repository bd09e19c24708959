//! Which programs are observed: the words of the user, and the rows that they lead to.

use crate::process::ProcessKey;
use crate::sys::RawPid;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Programs, as the user names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Processes, each with its descendants.
    Pids(Vec<RawPid>),
    /// A cgroup with everything below it: its path, absolute or from the top of the hierarchy.
    Cgroup(String),
    /// Units of systemd, by name; `*` stands for any text.
    Unit(String),
    /// All processes of a user, by name or number. Each process group, which a shell calls a job, is a subject.
    User(String),
    /// Processes whose command line contains a pattern, each with its descendants; `*` stands for any text.
    Match(String),
}

/// What makes a subject the same one at a later look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKey {
    /// A process with its descendants.
    Tree {
        /// Its number.
        pid: RawPid,
        /// Its start, in clock ticks since boot.
        start: u64,
    },
    /// A cgroup.
    Group(PathBuf),
    /// A process group of a user.
    Job {
        /// The number of the process group.
        group: RawPid,
        /// The user's number.
        user: u32,
    },
}

/// What is observed as one: a row of the table, or a task of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What makes it the same one at a later look.
    pub key: SubjectKey,
    /// Short name: the unit's, the group's, or the program's with a process number.
    pub name: String,
    /// Command line of its first process; `None` for a cgroup.
    pub command: Option<String>,
    /// The directory of its cgroup: its own, or the one of its first process. `None` without a v2 hierarchy.
    pub group: Option<PathBuf>,
    /// Its live processes, in ascending order. This process, kernel threads and process 1 are never among them.
    pub members: Vec<ProcessKey>,
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Pids(pids) => {
                let pids: Vec<String> = pids.iter().map(RawPid::to_string).collect();
                write!(f, "--pid {}", pids.join(","))
            }
            Selection::Cgroup(path) => write!(f, "--cgroup {path}"),
            Selection::Unit(pattern) => write!(f, "--unit {pattern}"),
            Selection::User(name) => write!(f, "--user {name}"),
            Selection::Match(pattern) => write!(f, "--match {pattern}"),
        }
    }
}

/// Short name of a process: its program without folders, and its number.
pub(super) fn process_name(pid: RawPid, command: &str) -> String {
    let program = command.split(' ').next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    format!("{program} {pid}")
}
