//! What a managing session did, and what it could not do, in words.

use super::manage::{Left, Restored};
use cosched_core::CpuSet;
use std::fmt;

/// A change of a managed program, or something that could not be done, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A subject was bound to CPUs.
    Bound {
        /// The subject.
        name: String,
        /// Its CPUs.
        cpus: CpuSet,
    },
    /// Threads of a subject are left alone.
    LeftAlone {
        /// The subject.
        name: String,
        /// How many threads.
        threads: usize,
        /// Why.
        why: Left,
    },
    /// Somebody else has frozen a group.
    FrozenByOther {
        /// The subject.
        name: String,
    },
    /// A group cannot be frozen.
    NotFrozen {
        /// The subject.
        name: String,
        /// The kernel's error.
        error: String,
    },
    /// A group cannot be thawed.
    NotThawed {
        /// The subject.
        name: String,
        /// The kernel's error.
        error: String,
    },
    /// The keeper was killed or stopped.
    KeeperReplaced,
    /// The session was to be suspended.
    NotSuspended,
    /// There is no list in the runtime folder.
    NoList(String),
    /// Somebody else has changed the CPUs of these threads.
    ChangedSince(usize),
    /// These threads did not get their CPUs back.
    NotRestored(usize),
}

impl Note {
    /// What could not be undone.
    pub(super) fn of_undo(done: &Restored) -> Vec<Note> {
        let mut notes = Vec::new();
        if !done.changed.is_empty() {
            notes.push(Note::ChangedSince(done.changed.len()));
        }
        if !done.refused.is_empty() {
            notes.push(Note::NotRestored(done.refused.len()));
        }
        for group in &done.frozen {
            notes.push(Note::NotThawed {
                name: group.display().to_string(),
                error: "the kernel refuses".to_owned(),
            });
        }
        notes
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Bound { name, cpus } => write!(f, "{name}: bound to CPUs {cpus}"),
            Note::LeftAlone { name, threads, why } => {
                write!(f, "{name}: {} left alone: {}", count(*threads), why.text())
            }
            Note::FrozenByOther { name } => {
                write!(f, "{name}: not paused: somebody else has frozen its cgroup")
            }
            Note::NotFrozen { name, error } => {
                write!(f, "{name}: not paused: its cgroup can't be frozen: {error}")
            }
            Note::NotThawed { name, error } => write!(
                f,
                "{name}: still frozen: {error}; write 0 to its cgroup.freeze"
            ),
            Note::KeeperReplaced => {
                f.write_str("the keeper of the CPU masks was gone and was replaced")
            }
            Note::NotSuspended => f.write_str(
                "not suspended: the programs depend on it; Ctrl-C ends it and frees them",
            ),
            Note::NoList(why) => write!(
                f,
                "no list in the runtime folder: {why}; if both cosched and its keeper are killed, bound programs stay bound"
            ),
            Note::ChangedSince(threads) => write!(
                f,
                "{} left as somebody else has set them since",
                count(*threads)
            ),
            Note::NotRestored(threads) => write!(
                f,
                "{} not given their CPUs back, since the kernel refuses; `taskset -pc CPUS TID` sets them",
                count(*threads)
            ),
        }
    }
}

fn count(threads: usize) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        more => format!("{more} threads"),
    }
}

impl Left {
    /// The reason in words, and what to do.
    fn text(self) -> &'static str {
        match self {
            Left::Narrowed => "somebody has bound it to fewer CPUs than its cgroup has",
            Left::Changed => "somebody else has changed its CPUs since",
            Left::NotPermitted => {
                "this user may not bind it; run cosched as its user or with CAP_SYS_NICE"
            }
            Left::Refused => "the kernel can't bind it to these CPUs",
            Left::TooMany => "there are too many threads to remember; select fewer programs",
        }
    }
}
