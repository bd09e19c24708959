//! Groups that dead runs left behind.
//!
//! A group belongs to a run if its name is exactly `cosched-` and the identity of the run. All other groups are left
//! alone, as are groups of live runs and of runs whose state is unknown.

use super::{FREEZE, run_of, set_frozen, subgroups};
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use std::io;
use std::path::{Path, PathBuf};

/// A group of a run that is dead, or may be.
pub(crate) struct Stale {
    pub dir: PathBuf,
    pub run: RunId,
    /// Whether the run is certainly dead, and not only invisible.
    pub dead: bool,
}

/// The groups of dead runs in a directory, with those inside them, and of runs whose state is unknown. With `deep`, all
/// directories below are searched, including groups of live runs.
pub(crate) fn stale(root: &Root, dir: &Path, deep: bool) -> Vec<Stale> {
    let mut found = Vec::new();
    let mut todo = vec![(dir.to_owned(), deep)];
    while let Some((dir, search)) = todo.pop() {
        for dir in subgroups(&dir) {
            let run = dir.file_name().and_then(run_of);
            let fate = run.map(|run| run.fate(root));
            let dead = fate == Some(RunFate::Dead);
            // Its jobs may have been runs themselves.
            if search || dead {
                todo.push((dir.clone(), true));
            }
            if let Some(run) = run
                && fate != Some(RunFate::Alive)
            {
                found.push(Stale { dir, run, dead });
            }
        }
    }
    found.sort_by(|a, b| a.dir.cmp(&b.dir));
    found
}

/// Thaws the group of a run and those of its jobs; returns whether any was frozen. Groups that a job created are the
/// job's own business.
///
/// # Errors
/// A frozen group could not be thawed.
pub(crate) fn thaw(dir: &Path) -> io::Result<bool> {
    let mut any = false;
    let mut result = Ok(());
    for group in own_groups(dir).filter(|group| is_frozen(group)) {
        // An error here must not prevent the other thaws.
        match set_frozen(&group, false) {
            Ok(_) => any = true,
            Err(error) => result = Err(error),
        }
    }
    result.map(|()| any)
}

/// Whether the group of a run, or one of its jobs' groups, is frozen.
pub(crate) fn holds_frozen(dir: &Path) -> bool {
    own_groups(dir).any(|group| is_frozen(&group))
}

/// The groups of a run: its own and those directly in it.
fn own_groups(dir: &Path) -> impl Iterator<Item = PathBuf> {
    subgroups(dir).into_iter().chain([dir.to_owned()])
}

/// Whether a freeze of this group was requested.
pub(crate) fn is_frozen(group: &Path) -> bool {
    std::fs::read(group.join(FREEZE)).is_ok_and(|text| text.starts_with(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::run_id::tests::{link_namespace, write_stat};

    #[test]
    fn only_groups_of_the_dead_are_stale() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        link_namespace(dir.path(), 500);
        write_stat(dir.path(), 1, 'S', 0);
        write_stat(dir.path(), 10, 'S', 77);
        let own = dir.path().join("groups");
        let (live, dead, hidden) = (
            "cosched-10-77-500",
            "cosched-10-78-500",
            "cosched-10-77-501",
        );
        let inner = format!("{dead}/job0/sub/cosched-12-1-500");
        let in_live = format!("{live}/job0/cosched-13-1-500");
        let deep = "other/cosched-11-1-500-probe";
        let others = [
            "other",
            "coschedule",
            "cosched-nightly",
            "cosched-10-78",
            "cosched-10-78-500.scope",
        ];
        for name in [live, dead, hidden, deep, &inner, &in_live]
            .into_iter()
            .chain(others)
        {
            std::fs::create_dir_all(own.join(name)).unwrap();
        }
        let found = |deep| {
            let found = stale(&root, &own, deep).into_iter();
            found
                .map(|s| {
                    (
                        s.dir
                            .strip_prefix(&own)
                            .unwrap()
                            .to_str()
                            .unwrap()
                            .to_owned(),
                        s.dead,
                    )
                })
                .collect::<Vec<_>>()
        };
        let near = [
            (hidden.to_owned(), false),
            (dead.to_owned(), true),
            (inner.clone(), true),
        ];
        assert_eq!(found(false), near);
        let mut all = [&near[..], &[(in_live, true), (deep.to_owned(), true)]].concat();
        all.sort();
        assert_eq!(found(true), all);
    }

    #[test]
    fn groups_of_jobs_are_thawed_and_what_jobs_made_is_left() {
        let dir = tempfile::tempdir().unwrap();
        for group in ["job0", "job0/own", "job1.2"] {
            std::fs::create_dir_all(dir.path().join(group)).unwrap();
            std::fs::write(dir.path().join(group).join(FREEZE), "1\n").unwrap();
        }
        let frozen = |group: &str| {
            std::fs::read_to_string(dir.path().join(group).join(FREEZE)).unwrap() == "1\n"
        };
        assert!(holds_frozen(dir.path()));
        assert!(thaw(dir.path()).unwrap());
        assert!(!holds_frozen(dir.path()));
        assert!(!frozen("job0") && !frozen("job1.2") && frozen("job0/own"));
        assert!(!thaw(dir.path()).unwrap(), "nothing left to thaw");
        assert!(!thaw(&dir.path().join("gone")).unwrap());
    }
}
