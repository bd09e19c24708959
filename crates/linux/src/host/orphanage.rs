//! Orphans: processes whose parents have ended. They become children of the run, which is a subreaper, and have to be
//! given back to the jobs that they belong to.
//!
//! What a process shows may be unclear for a moment: while it executes a program, its environment is empty. So such a
//! process is looked at again before it counts as nobody's.

use super::children::OwnChildren;
use crate::process::Process;
use crate::root::Root;
use crate::spawn::Program;
use crate::sys::RawPid;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How often an orphan that seems to be nobody's is looked at again.
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
    /// Orphans that nothing connects with any job. They are neither frozen nor waited for.
    nobodys: HashSet<(RawPid, u64)>,
}

/// What is known of a child of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is a job, or belongs to one, or is the guardian.
    Own,
    /// Nothing connects it with a job.
    Unclear,
}

/// A child that is to be given to a job.
pub(crate) struct Orphan<'a> {
    root: &'a Root,
    pub(crate) process: Process,
}

impl Orphan<'_> {
    /// Whether it has a file open that the job's output goes to.
    pub(crate) fn writes_to(&self, program: &Program) -> bool {
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let opens = |fd: u32| identity(&self.root.path(&format!("/proc/{}/fd/{fd}", self.process.pid)));
        let files = [identity(&program.stdout), identity(&program.stderr)];
        (0..3).filter_map(opens).any(|open| files.contains(&Some(open)))
    }
}

impl Orphanage {
    /// Children that this process has already are not taken for orphans.
    pub(crate) fn of_this_process(root: &Root) -> Orphanage {
        let mut children = OwnChildren::of_this_process(root);
        let before = children.news().unwrap_or_default();
        let strangers =
            before.into_iter().filter_map(|pid| Process::read(root, pid)).map(|p| (p.pid, p.start)).collect();
        let session = Process::read(root, std::process::id() as RawPid).map(|own| own.session);
        Orphanage { session, root: root.clone(), children, strangers, nobodys: HashSet::new() }
    }

    /// Makes the next look complete, whether or not there seems to be news.
    pub(crate) fn forget(&mut self) {
        self.children.forget();
    }

    /// Asks `place` about every child, if there are others than at the last look.
    pub(crate) fn look(&mut self, mut place: impl FnMut(&Orphan<'_>) -> Found) {
        for look in 0.. {
            let Some(children) = self.children.news() else { return };
            let mut unclear = Vec::new();
            for pid in children {
                // A zombie is about to be reaped.
                let Some(process) = Process::read(&self.root, pid).filter(|process| !process.is_dead()) else {
                    continue;
                };
                let key = (process.pid, process.start);
                if Some(process.session) == self.session || self.strangers.contains(&key) || self.nobodys.contains(&key)
                {
                    continue;
                }
                if place(&Orphan { root: &self.root, process }) == Found::Unclear {
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
