//! The progress that a job writes to a descriptor of its own.

use super::input::MOST_PROCESSES;
use super::printed::tail;
use crate::hold::tree::ProcessTree;
use crate::root::Root;
use crate::spawn::PROGRESS_FILE;
use crate::sys::RawPid;
use std::fs::{File, read_link};
use std::os::fd::RawFd;
use std::path::PathBuf;

/// Environment variable with the number of the descriptor.
pub(super) const PROGRESS_VARIABLE: &str = "COSCHED_PROGRESS_FD";

/// The share done by the last line that a job has written; `None` if that tells none. The run keeps no descriptor for each job:
/// it reads through a process that has it open.
pub(super) fn share(tree: &ProcessTree, number: RawFd) -> Option<f64> {
    let members = tree.members();
    let mut looked_at = members.iter().take(MOST_PROCESSES);
    let file = looked_at.find_map(|member| progress_file(tree.root(), member.pid, number))?;
    let text = tail(&File::open(file).ok()?)?;
    let lines = text.split(['\n', '\r']);
    share_of(lines.map(str::trim).rfind(|line| !line.is_empty())?)
}

/// The path of the file if this process has it open.
fn progress_file(root: &Root, pid: RawPid, number: RawFd) -> Option<PathBuf> {
    let path = root.path(&format!("/proc/{pid}/fd/{number}"));
    let target = read_link(&path).ok()?;
    let name = target.to_str()?.strip_prefix("/memfd:")?;
    name.starts_with(PROGRESS_FILE).then_some(path)
}

/// The share in a line: the per cent done, as in `42` or `42 %`, or what is done and of how much, as in `21/50`.
fn share_of(line: &str) -> Option<f64> {
    let (done, whole) = match line.split_once('/') {
        Some((done, whole)) => (done, number(whole)?),
        None => (line.trim_end().trim_end_matches('%'), 100.0),
    };
    let share = number(done)? / whole;
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_per_cent_or_how_much_of_what() {
        let told = [
            ("42", Some(0.42)),
            (" 42.5 % ", Some(0.425)),
            ("21/50", Some(0.42)),
            ("3 / 2", Some(1.0)),
            ("-1", Some(0.0)),
            ("1/0", None),
            ("nan", None),
            ("half", None),
            ("", None),
        ];
        for (line, share) in told {
            assert_eq!(share_of(line), share, "{line}");
        }
    }
}
