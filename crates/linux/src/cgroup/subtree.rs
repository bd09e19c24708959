//! Groups with everything below them.

use crate::sys::RawPid;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The groups directly below one, sorted.
pub(crate) fn subgroups(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut groups: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    groups.sort();
    groups
}

/// A group and all groups below it, parents first. Leaves out groups whose names `enters` rejects, with everything
/// below them.
fn groups_within(dir: &Path, enters: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut next = 0;
    while next < all.len() {
        // A folder has one link for itself and one in its parent, and one more for each subgroup. Most groups have no
        // subgroup, and scanning all files of a group is slow.
        let has_none = std::fs::metadata(&all[next]).is_ok_and(|folder| folder.nlink() == 2);
        if !has_none {
            let mut below = subgroups(&all[next]);
            below.retain(|group| group.file_name().is_some_and(&enters));
            all.append(&mut below);
        }
        next += 1;
    }
    all
}

/// The topmost groups below one whose names `fits` accepts.
pub(crate) fn groups_named(dir: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for group in groups_within(dir, |_| true) {
        let name = group.file_name().and_then(OsStr::to_str);
        let is_below = found.iter().any(|above| group.starts_with(above));
        if !is_below && group != dir && name.is_some_and(&fits) {
            found.push(group);
        }
    }
    found
}

/// The processes of a group and of all below it.
pub(crate) fn processes(dir: &Path) -> Vec<RawPid> {
    processes_within(dir, |_| true)
}

/// The processes of a group and of those below it whose names `enters` accepts.
pub(crate) fn processes_within(dir: &Path, enters: impl Fn(&OsStr) -> bool) -> Vec<RawPid> {
    let mut all = Vec::new();
    for group in groups_within(dir, enters) {
        let text = std::fs::read(group.join("cgroup.procs")).unwrap_or_default();
        all.extend(crate::process::numbers(&text));
    }
    all
}

/// Whether a group, or one below it, contains any process; zombies do not count.
pub(crate) fn is_populated(dir: &Path) -> bool {
    let events = std::fs::read_to_string(dir.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "populated 1")
}

/// Kills all processes of a group and of those below it, frozen or not; `false` if the kernel cannot (before Linux
/// 5.14).
pub(crate) fn kill(dir: &Path) -> bool {
    super::control(dir, "cgroup.kill", b"1").is_ok()
}

/// Removes a group and all groups below it, unless it contains a process. Returns whether it is gone.
pub(crate) fn remove(dir: &Path) -> bool {
    // Most groups have no subgroup.
    if std::fs::remove_dir(dir).is_err() && !is_populated(dir) {
        for group in groups_within(dir, |_| true).iter().rev() {
            let _ = std::fs::remove_dir(group);
        }
    }
    !dir.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_counts() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("job0");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        assert!(groups_within(&top, |_| true).len() == 3 && processes(&top).is_empty());
        std::fs::write(top.join("cgroup.procs"), "41\n").unwrap();
        std::fs::write(top.join("a/b/cgroup.procs"), "42\n43\n").unwrap();
        assert_eq!(processes(&top), [41, 42, 43]);
        assert_eq!(processes_within(&top, |name| name != "a"), [41]);
        std::fs::write(top.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        assert!(is_populated(&top) && !remove(&top) && top.join("a/b").exists());
    }

    #[test]
    fn empty_groups_are_removed_from_below() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("job0");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::create_dir_all(top.join("c")).unwrap();
        assert!(remove(&top) && !top.exists());
        assert!(remove(&top), "it is gone already");
    }
}
