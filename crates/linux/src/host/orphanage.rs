//! Orphans: processes whose parents have ended. They become children of the run, which is a subreaper, and have to be
//! given back to the jobs that they belong to.
//!
//! What a process shows may be unclear for a moment: while it executes a program, its environment is empty. So such a
//! process is looked at again before it counts as nobody's.

use super::children::OwnChildren;
use crate::process::Process;
use crate::root::Root;
use crate::sys::RawPid;
use std::collections::HashSet;
use std::time::Duration;

/// Rescans of an orphan that seems to be nobody's.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Finds orphans among the children of this process.
pub(crate) struct Orphanage {
    root: Root,
    children: OwnChildren,
    /// The session of this process. Jobs have others, and no process can join a session.
    session: Option<RawPid>,
    /// Children that are no jobs of ours: those that this process had before the run, by a program that it was before.
    strangers: HashSet<(RawPid, u64)>,
    /// Orphans that nothing connects with any job, as of the last look. They are neither frozen nor waited for.
    nobodys: HashSet<(RawPid, u64)>,
}

/// What is known of a child of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It belongs to a job.
    Own,
    /// Nothing connects it with a job.
    Unclear,
}

impl Orphanage {
    /// Children that this process has already are not taken for orphans.
    pub(crate) fn of_this_process(root: &Root) -> Orphanage {
        let mut children = OwnChildren::of_this_process(root);
        let before = children.news().unwrap_or_default();
        let strangers = before
            .into_iter()
            .filter_map(|pid| Process::read(root, pid))
            .map(|p| (p.pid, p.start))
            .collect();
        let session = Process::read(root, std::process::id() as RawPid).map(|own| own.session);
        Orphanage {
            session,
            root: root.clone(),
            children,
            strangers,
            nobodys: HashSet::new(),
        }
    }

    /// Makes the next look complete, whether or not there seems to be news.
    pub(crate) fn forget(&mut self) {
        self.children.forget();
    }

    /// Asks `place` about every child but those that are `own`, if there are others than at the last look.
    pub(crate) fn look(
        &mut self,
        own: impl Fn(RawPid) -> bool,
        mut place: impl FnMut(&Process) -> Found,
    ) {
        for look in 0.. {
            let Some(children) = self.children.news() else {
                return;
            };
            let mut unclear = Vec::new();
            let nobodys = std::mem::take(&mut self.nobodys);
            // A run may have thousands of jobs, and their numbers are theirs until they are reaped.
            for pid in children.into_iter().filter(|&pid| !own(pid)) {
                // A zombie is about to be reaped.
                let Some(process) =
                    Process::read(&self.root, pid).filter(|process| !process.is_dead())
                else {
                    continue;
                };
                let key = (process.pid, process.start);
                if Some(process.session) == self.session || self.strangers.contains(&key) {
                    continue;
                }
                // Those that are no children any more have ended, and are forgotten.
                if nobodys.contains(&key) {
                    self.nobodys.insert(key);
                } else if place(&process) == Found::Unclear {
                    unclear.push(key);
                }
            }
            if unclear.is_empty() {
                return;
            }
            if look == LOOKS {
                self.nobodys.extend(unclear);
                return;
            }
            self.children.forget();
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::write_stat;

    #[test]
    fn what_is_nobodys_is_asked_about_until_that_is_clear_and_then_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let task = dir.path().join(format!("proc/{pid}/task/{pid}"));
        std::fs::create_dir_all(&task).unwrap();
        let children = |text: &str| std::fs::write(task.join("children"), text).unwrap();
        children("");
        let mut orphanage = Orphanage::of_this_process(&Root::new(dir.path()));
        let mut asked = Vec::new();
        for child in [11, 12, 13] {
            write_stat(dir.path(), child, 'S', 70);
        }
        children("11 12 13 ");
        let mut look = |orphanage: &mut Orphanage| {
            asked.clear();
            orphanage.look(
                |pid| pid == 11,
                |process| {
                    asked.push(process.pid);
                    if process.pid == 12 {
                        Found::Own
                    } else {
                        Found::Unclear
                    }
                },
            );
            (
                asked.iter().filter(|&&pid| pid == 12).count(),
                asked.iter().filter(|&&pid| pid == 13).count(),
            )
        };
        let all = LOOKS as usize + 1;
        assert_eq!(look(&mut orphanage), (all, all), "never about what is own");
        orphanage.forget();
        assert_eq!(look(&mut orphanage), (1, 0));
        children("11 12 ");
        assert_eq!((look(&mut orphanage), orphanage.nobodys.len()), ((1, 0), 0));
    }
}
