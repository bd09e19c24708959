//! Orphans: processes whose parents have ended. They become children of the run, which is a subreaper, and have to be
//! given back to the jobs that they belong to. No signal announces them; only the kernel's list of children shows them.
//!
//! What a process shows may be unclear for a moment: while it executes a program, its environment is empty. So such a
//! process is read again before it counts as nobody's.

use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::RawPid;
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::Duration;

/// Rescans of an orphan that seems to be nobody's.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Rereads of a list that changes while it is read.
const REREADS: u32 = 8;

/// Finds orphans among the children of this process.
pub(crate) struct Orphanage {
    root: Root,
    /// The session of this process. Jobs have others, and no process can join a session.
    session: Option<RawPid>,
    /// Children whose place is clear: those of jobs, those that were there before the run, and those that nothing
    /// connects with any job. The last are neither frozen nor waited for.
    known: HashSet<RawPid>,
    /// The children at the last look.
    children: Vec<RawPid>,
}

impl Orphanage {
    /// Children that this process has already are not taken for orphans.
    pub(crate) fn of_this_process(root: &Root) -> Orphanage {
        let mut orphanage = Orphanage {
            root: root.clone(),
            session: Process::read(root, own_pid()).map(|own| own.session),
            known: HashSet::new(),
            children: Vec::new(),
        };
        orphanage.list_children();
        orphanage.known.extend(&orphanage.children);
        orphanage
    }

    /// A child was waited for: its number may be given to another one now.
    pub(crate) fn reaped(&mut self, pid: RawPid) {
        self.known.remove(&pid);
    }

    /// Asks `adopt` about every new child but those that are `own`; it says whether the child is a job's now.
    pub(crate) fn look(
        &mut self,
        own: impl Fn(RawPid) -> bool,
        mut adopt: impl FnMut(&Process) -> bool,
    ) {
        for look in 0..=LOOKS {
            let mut unclear = Vec::new();
            self.list_children();
            for &pid in &self.children {
                if own(pid) || self.known.contains(&pid) {
                    continue;
                }
                let Some(process) = Process::read(&self.root, pid) else {
                    continue;
                };
                // A zombie is about to be reaped.
                if process.is_dead() {
                    continue;
                }
                if Some(process.session) == self.session || adopt(&process) {
                    self.known.insert(pid);
                } else {
                    unclear.push(process);
                }
            }
            if unclear.is_empty() {
                return;
            }
            if look == LOOKS {
                unclear.iter().for_each(|process| self.let_go(process));
            } else {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }

    /// Leaves alone an orphan that belongs to no job. Our stop may have hit it just before it left its job.
    fn let_go(&mut self, orphan: &Process) {
        if orphan.is_stopped() {
            orphan.signal(&self.root, Signal::CONT);
        }
        self.known.insert(orphan.pid);
    }

    /// Lists the children of this process. It has a single thread, so one list has all of them.
    fn list_children(&mut self) {
        // The kernel may leave out a child when another one ends meanwhile, so two lists must agree.
        for _ in 0..REREADS {
            let before = std::mem::take(&mut self.children);
            self.children = process::children_of_thread(&self.root, own_pid(), own_pid());
            if self.children == before {
                break;
            }
        }
    }
}

fn own_pid() -> RawPid {
    std::process::id() as RawPid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::write_stat;

    #[test]
    fn what_is_nobodys_is_asked_about_until_it_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let task = dir.path().join(format!("proc/{pid}/task/{pid}"));
        std::fs::create_dir_all(&task).unwrap();
        let children = |text: &str| std::fs::write(task.join("children"), text).unwrap();
        children("10 ");
        let mut orphanage = Orphanage::of_this_process(&Root::new(dir.path()));
        for child in [10, 11, 12, 13] {
            write_stat(dir.path(), child, 'S', 70);
        }
        children("10 11 12 13 ");
        let look = |orphanage: &mut Orphanage| {
            let mut asked = Vec::new();
            orphanage.look(
                |pid| pid == 11,
                |process| {
                    asked.push(process.pid);
                    process.pid == 12
                },
            );
            [10, 11, 12, 13].map(|child| asked.iter().filter(|&&pid| pid == child).count())
        };
        let all = LOOKS as usize + 1;
        assert_eq!(look(&mut orphanage), [0, 0, 1, all]);
        assert_eq!(look(&mut orphanage), [0, 0, 0, 0]);
        orphanage.reaped(12);
        assert_eq!(look(&mut orphanage), [0, 0, 1, 0]);
    }

    #[test]
    fn what_is_nobodys_is_not_left_stopped() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = child.id() as RawPid;
        let orphan = || Process::read(&Root::default(), pid).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let task = dir
            .path()
            .join(format!("proc/{}/task/{}", own_pid(), own_pid()));
        std::fs::create_dir_all(&task).unwrap();
        let mut orphanage = Orphanage::of_this_process(&Root::new(dir.path()));
        std::fs::write(task.join("children"), format!("{pid} ")).unwrap();
        let shown = dir.path().join(format!("proc/{pid}"));
        std::os::unix::fs::symlink(format!("/proc/{pid}"), shown).unwrap();
        orphan().signal(&Root::default(), Signal::STOP);
        while !orphan().is_stopped() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        orphanage.look(|_| false, |_| false);
        while orphan().is_stopped() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn long_lists_are_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let task = dir.path().join(format!("proc/{pid}/task/{pid}"));
        std::fs::create_dir_all(&task).unwrap();
        let many: Vec<RawPid> = (100_000..103_000).collect();
        let text: String = many.iter().map(|pid| format!("{pid} ")).collect();
        std::fs::write(task.join("children"), text).unwrap();
        let orphanage = Orphanage::of_this_process(&Root::new(dir.path()));
        assert_eq!(orphanage.children, many);
    }
}
