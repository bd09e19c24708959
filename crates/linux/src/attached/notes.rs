//! What a managing session did and could not do, in words.

use crate::hold::session::{LeftAlone, Restored};

/// What could not be undone.
pub(super) fn of_undo(done: &Restored) -> Vec<String> {
    let mut notes = Vec::new();
    if !done.changed.is_empty() {
        let threads = count(done.changed.len());
        notes.push(format!(
            "{threads} left as somebody else has set them since"
        ));
    }
    if !done.refused.is_empty() {
        let threads = count(done.refused.len());
        notes.push(format!(
            "{threads} not given their CPUs back, since the kernel refuses; `taskset -pc CPUS TID` sets them"
        ));
    }
    let groups = done.frozen.iter().map(|dir| dir.display());
    notes.extend(groups.map(|dir| not_thawed(&dir.to_string(), "the kernel refuses")));
    notes
}

/// A group stays frozen.
pub(super) fn not_thawed(name: &str, error: &str) -> String {
    format!("{name}: still frozen: {error}; write 0 to its cgroup.freeze")
}

pub(super) fn left_alone(name: &str, threads: usize, why: LeftAlone) -> String {
    format!("{name}: {} left alone: {}", count(threads), why.text())
}

fn count(threads: usize) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        more => format!("{more} threads"),
    }
}

impl LeftAlone {
    /// The reason in words, and what to do.
    fn text(self) -> &'static str {
        match self {
            LeftAlone::Narrowed => "somebody has bound it to fewer CPUs than its cgroup has",
            LeftAlone::Changed => "somebody else has changed its CPUs since",
            LeftAlone::NotPermitted => {
                "this user may not bind it; run cosched as its user or with CAP_SYS_NICE"
            }
            LeftAlone::Refused => "the kernel can't bind it to these CPUs",
            LeftAlone::TooMany => "there are too many threads to remember; select fewer programs",
        }
    }
}
