//! The processes of one job: its own process, everything that it started, and those that left its session.
//!
//! With a cgroup the kernel knows them. Without one they are found by family: the descendants of the job's own process,
//! and orphans. An orphan becomes a child of the run, which is a subreaper. It is returned to its job by the job's session
//! or one in which a process of the job was seen, by the mark that the job's processes inherit, by the one in their
//! environment, or by the files that it writes to.

use crate::cgroup::JobGroup;
use crate::ledger::Ledger;
use crate::process::{self, FileId, JOB_VARIABLE, Loner, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys::{self, RawPid};
use crate::wanting::wanting;
use cosched_core::Reading;
use rustix::process::Signal;
use std::cell::RefCell;
use std::collections::HashMap;

/// How often the job's processes are looked for again while there are any left to kill.
const KILLS: u32 = 16;
/// As many processes of a job are looked at for what it holds.
const MOST_LOOKED_AT: usize = 64;
/// Sessions of one job that are kept before those whose processes have gone are looked for.
const PRUNE: usize = 256;

/// The processes of one job.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Root,
    /// The job's own process, which leads a session and a group.
    pub(crate) main: Process,
    /// Whether the job's own process has been reaped; its number may belong to another process then.
    pub(crate) main_gone: bool,
    /// Where there is no cgroup.
    loner: Option<Loner>,
    /// Orphans that were given back to this job.
    orphans: Vec<Process>,
    adopted: u32,
    /// Sessions in which processes of the job were seen, beside that of its own process, each with the process that was
    /// seen last.
    sessions: RefCell<Sessions>,
    group: Option<JobGroup>,
    /// Where its processes are entered, under the number of the job.
    ledger: Option<(Ledger, u32)>,
    /// The mark that its processes inherit.
    mark: Option<u64>,
}

/// Sessions, each with the number and start of a process that was in it.
#[derive(Debug, Default)]
struct Sessions {
    seen: HashMap<RawPid, (RawPid, u64)>,
    prune_at: usize,
}

impl Sessions {
    fn note(&mut self, root: &Root, process: &Process) {
        self.seen
            .insert(process.session, (process.pid, process.start));
        if self.seen.len() > self.prune_at.max(PRUNE) {
            self.seen
                .retain(|_, &mut (pid, start)| Process::find(root, pid, start).is_some());
            self.prune_at = 2 * self.seen.len();
        }
    }

    /// Whether a process is in one of them, and not in a later one of that number.
    fn hold(&self, root: &Root, process: &Process) -> bool {
        self.seen.get(&process.session).is_some_and(|&(_, start)| {
            // The leader started before all others, and the number is not given away while anybody is in the session.
            Process::read(root, process.session).is_none_or(|leader| leader.start <= start)
        })
    }
}

/// A process that lost its parent, with all that may tell whose it is.
pub(crate) struct Orphan {
    process: Process,
    mark: Option<u64>,
    run: Option<String>,
    job: Option<String>,
    files: Vec<FileId>,
}

impl Orphan {
    pub(crate) fn read(root: &Root, process: &Process) -> Orphan {
        let pid = process.pid;
        Orphan {
            process: *process,
            mark: process::mark(root, pid),
            run: process::variable(root, pid, RUN_VARIABLE),
            job: process::variable(root, pid, JOB_VARIABLE),
            files: process::standard_files(root, pid),
        }
    }

    /// Whether it has one of these files open.
    pub(crate) fn writes_to(&self, outputs: &[FileId]) -> bool {
        self.files.iter().any(|file| outputs.contains(file))
    }
}

impl Tree {
    /// The processes that there are, and will be. `spare` descriptors may stay open, see [`sys::spare_descriptors`].
    pub(crate) fn new(root: Root, main: Process, group: Option<JobGroup>, spare: usize) -> Tree {
        let mut tree = Tree {
            root,
            main,
            main_gone: false,
            loner: None,
            orphans: Vec::new(),
            adopted: 0,
            sessions: RefCell::default(),
            group,
            ledger: None,
            mark: None,
        };
        tree.open_loner(spare);
        tree
    }

    /// From now on enters processes that may not be found by family in the list of the run. `mark` is what they inherit.
    pub(crate) fn with_ledger(mut self, ledger: Ledger, task: u32, mark: u64) -> Tree {
        self.mark = Some(mark);
        self.ledger = Some((ledger, task));
        self
    }

    fn open_loner(&mut self, spare: usize) {
        if self.group.is_none() && spare >= 2 {
            self.loner = Loner::open(&self.root, self.main.pid);
        }
    }

    /// Gives up the job's group, from which somebody has removed the job.
    pub(crate) fn lose_group(&mut self) {
        self.group = None;
        self.open_loner(sys::spare_descriptors());
    }

    /// Enters a process outside the job's own process group in the list of the run.
    pub(crate) fn note(&self, process: &Process) {
        if let Some((ledger, task)) = &self.ledger {
            ledger.member(*task, process);
        }
        // A session of the run's caller would be shared by all.
        if process.session != self.main.pid && process.session > 1 {
            self.sessions.borrow_mut().note(&self.root, process);
        }
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Its cgroup, if it has one.
    pub(crate) fn group(&self) -> Option<&JobGroup> {
        self.group.as_ref()
    }

    /// Every process of the job that can be found. With a group these are not only those in it: somebody may have moved
    /// the job elsewhere.
    pub(crate) fn members(&self) -> Vec<Process> {
        let mut all = if self.main_gone {
            Vec::new()
        } else {
            process::descendants(&self.root, self.main.pid)
        };
        let add = |all: &mut Vec<Process>, process: Process| {
            if !all.iter().any(|known: &Process| known.pid == process.pid) {
                all.push(process);
            }
        };
        for orphan in self
            .orphans
            .iter()
            .filter(|orphan| orphan.is_same(&self.root))
        {
            for process in process::descendants(&self.root, orphan.pid) {
                add(&mut all, process);
            }
        }
        for pid in self.group.iter().flat_map(JobGroup::processes) {
            if let Some(process) = Process::read(&self.root, pid) {
                add(&mut all, process);
            }
        }
        all
    }

    /// Whether the job's own process is certainly all that there is. Cheaper than asking for the members; only without a
    /// cgroup.
    pub(crate) fn is_main_only(&self) -> bool {
        !self.main_gone
            && self.orphans.is_empty()
            && self.loner.as_ref().is_some_and(Loner::is_alone)
    }

    /// Resident memory of that one of its processes that has most, in bytes; 0 if none can be seen.
    pub(crate) fn resident(&self) -> u64 {
        let pages = |process: Process| {
            let text = self
                .root
                .text(&format!("/proc/{}/statm", process.pid), "resident memory")
                .ok()??;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let most = self
            .members()
            .into_iter()
            .take(MOST_LOOKED_AT)
            .filter_map(pages)
            .max();
        most.unwrap_or(0)
            .saturating_mul(rustix::param::page_size() as u64)
    }

    /// How many threads of the job want a CPU at this moment.
    pub(crate) fn wanting(&self) -> Reading<u32> {
        let read = |pid| Process::read(&self.root, pid);
        match &self.group {
            Some(group) => wanting(&self.root, group.processes().into_iter().filter_map(read)),
            None if self.is_main_only() => wanting(&self.root, read(self.main.pid)),
            None => wanting(&self.root, self.members()),
        }
    }

    /// Whether anything but zombies is left of it.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.orphans
            .retain(|orphan| process::lives(&self.root, orphan.pid, orphan.start));
        let grouped = self.group.as_ref().is_some_and(JobGroup::is_populated);
        !self.main_gone || grouped || !self.orphans.is_empty()
    }

    /// Adopts an orphan, unless it has been adopted already.
    pub(crate) fn adopt(&mut self, orphan: Process) {
        if !self.knows(&orphan) {
            self.note(&orphan);
            self.orphans.push(orphan);
            self.adopted += 1;
        }
    }

    /// How many orphans the job has adopted so far.
    pub(crate) fn adopted(&self) -> u32 {
        self.adopted
    }

    /// Whether a process is an orphan that the job has adopted.
    pub(crate) fn knows(&self, process: &Process) -> bool {
        self.orphans
            .iter()
            .any(|known| known.pid == process.pid && known.start == process.start)
    }

    /// Whether an orphan belongs to this job: by its session, by one in which a process of the job was seen, or by its
    /// marks.
    pub(crate) fn owns(&self, orphan: &Orphan, token: &str, name: &str) -> bool {
        orphan.process.session == self.main.pid
            || self.sessions.borrow().hold(&self.root, &orphan.process)
            || (self.mark.is_some() && orphan.mark == self.mark)
            || (orphan.run.as_deref() == Some(token) && orphan.job.as_deref() == Some(name))
    }

    /// Sends a signal to all processes of the job, first to those outside the job's own process group: once their
    /// parents have ended, they can no longer be found by family.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in self.members() {
            if self.main_gone || process.group != self.main.pid {
                process.signal(&self.root, signal);
            }
        }
        if !self.main_gone {
            let _ = sys::kill(-self.main.pid, signal.as_raw());
        }
    }

    /// Kills all processes by one request to the kernel; `false` if that can't be done, or does not reach all.
    pub(crate) fn kill_group(&self) -> bool {
        let Some(group) = &self.group else {
            return false;
        };
        if !group.kill() {
            return false;
        }
        let reached = group.processes();
        self.members()
            .iter()
            .all(|process| process.is_dead() || reached.contains(&process.pid))
    }

    /// Kills all processes by signals. They must stand still, so that none can fork meanwhile.
    pub(crate) fn kill_each(&self) {
        for _ in 0..KILLS {
            if self.members().iter().all(Process::is_dead) {
                break;
            }
            self.signal(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::write_stat;

    fn process(dir: &std::path::Path, pid: RawPid, session: RawPid, start: u64) -> Process {
        write_stat(dir, pid, 'S', start);
        Process {
            pid,
            state: 'S',
            parent: 1,
            group: session,
            session,
            threads: 1,
            start,
        }
    }

    #[test]
    fn an_orphan_is_the_jobs_by_a_session_as_long_as_that_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let tree = Tree::new(root.clone(), process(dir.path(), 10, 10, 70), None, 2);
        let owns = |process: &Process| tree.owns(&Orphan::read(&root, process), "10-1-1", "job");
        let stray = process(dir.path(), 21, 20, 75);
        let later = process(dir.path(), 22, 20, 80);
        assert!(!owns(&later));
        tree.note(&stray);
        assert!(owns(&later), "its leader has gone");
        write_stat(dir.path(), 20, 'S', 75);
        assert!(owns(&later));
        write_stat(dir.path(), 20, 'S', 79);
        assert!(!owns(&later), "a later session has that number");
        assert!(
            owns(&process(dir.path(), 23, 10, 90)),
            "the session of its own process"
        );
    }

    #[test]
    fn sessions_of_processes_that_have_gone_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::new(
            Root::new(dir.path()),
            process(dir.path(), 10, 10, 70),
            None,
            2,
        );
        tree.note(&process(dir.path(), 1_000, 1_000, 75));
        for pid in 1_001..11_000 {
            tree.note(&Process {
                pid,
                state: 'S',
                parent: 1,
                group: pid,
                session: pid,
                threads: 1,
                start: 80,
            });
        }
        let sessions = tree.sessions.borrow();
        assert!(
            sessions.seen.len() <= PRUNE + 1 && sessions.seen.contains_key(&1_000),
            "{}",
            sessions.seen.len()
        );
    }

    #[test]
    fn an_orphan_is_the_jobs_by_marks_or_by_what_it_writes_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let log = dir.path().join("log");
        std::fs::write(&log, "").unwrap();
        let tree = Tree::new(root.clone(), process(dir.path(), 10, 10, 70), None, 2);
        let one = process(dir.path(), 31, 31, 80);
        let at = |file: &str| dir.path().join("proc/31").join(file);
        let owns = |name: &str| tree.owns(&Orphan::read(&root, &one), "10-1-1", name);
        std::fs::write(at("environ"), "COSCHED_RUN=10-1-1\0COSCHED_JOB=a\0").unwrap();
        assert!(owns("a") && !owns("b"));
        let identity = std::fs::metadata(&log)
            .map(|file| std::os::unix::fs::MetadataExt::ino(&file))
            .unwrap();
        let orphan = |root: &Root| Orphan::read(root, &one);
        assert!(orphan(&root).files.is_empty());
        std::fs::create_dir(at("fd")).unwrap();
        std::os::unix::fs::symlink(&log, at("fd/1")).unwrap();
        let files = orphan(&root).files;
        assert_eq!(files[0].1, identity);
        assert!(orphan(&root).writes_to(&files) && !orphan(&root).writes_to(&[(0, 0)]));
    }
}
