//! The processes of one job: its own process, everything that it started, and those that left its session.
//!
//! With a cgroup the kernel knows them. Without one they are found by family: the descendants of the job's own process,
//! and orphans. An orphan becomes a child of the run, which is a subreaper. It is returned to its job by the job's
//! session, by the mark that the job's processes inherit, or by the one in their environment.

use crate::cgroup::JobGroup;
use crate::ledger::Ledger;
use crate::process::{self, JOB_VARIABLE, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys;
use crate::wanting::wanting;
use cosched_core::Reading;
use rustix::process::Signal;

/// Rounds of kills while processes are left.
const KILLS: u32 = 16;
/// Maximum number of processes whose memory is read, per job.
const MOST_LOOKED_AT: usize = 64;
/// The processes of one job.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Root,
    /// The job's own process, which leads a session and a group.
    pub(crate) main: Process,
    /// Whether the job's own process has been reaped; its number may belong to another process then.
    pub(crate) main_gone: bool,
    /// Orphans that were given back to this job.
    orphans: Vec<Process>,
    adopted: u32,
    group: Option<JobGroup>,
    /// Where its processes are entered, under the number of the job.
    ledger: Option<(Ledger, u32)>,
    /// The mark that its processes inherit.
    mark: Option<u64>,
}

/// A process that lost its parent, with all that may tell whose it is.
pub(crate) struct Orphan {
    process: Process,
    mark: Option<u64>,
    run: Option<String>,
    job: Option<String>,
}

impl Orphan {
    pub(crate) fn read(root: &Root, process: &Process) -> Orphan {
        let pid = process.pid;
        Orphan {
            process: *process,
            mark: process::mark(root, pid),
            run: process::variable(root, pid, RUN_VARIABLE),
            job: process::variable(root, pid, JOB_VARIABLE),
        }
    }
}

impl Tree {
    /// The processes that there are, and will be.
    pub(crate) fn new(root: Root, main: Process, group: Option<JobGroup>) -> Tree {
        Tree {
            root,
            main,
            main_gone: false,
            orphans: Vec::new(),
            adopted: 0,
            group,
            ledger: None,
            mark: None,
        }
    }

    /// From now on enters processes that may not be found by family in the list of the run. `mark` is what they inherit.
    pub(crate) fn with_ledger(mut self, ledger: Ledger, task: u32, mark: u64) -> Tree {
        self.mark = Some(mark);
        self.ledger = Some((ledger, task));
        self
    }

    /// Gives up the job's group, from which somebody has removed the job.
    pub(crate) fn lose_group(&mut self) {
        self.group = None;
    }

    /// Enters a process outside the job's own process group in the list of the run.
    pub(crate) fn note(&self, process: &Process) {
        if let Some((ledger, task)) = &self.ledger {
            ledger.member(*task, process);
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
        let mut all = Vec::new();
        if !self.main_gone {
            all = process::descendants(&self.root, self.main.pid);
        }
        let orphans = self.orphans.iter();
        let families = orphans
            .filter(|orphan| orphan.is_same(&self.root))
            .flat_map(|orphan| process::descendants(&self.root, orphan.pid));
        let grouped = self.group.iter().flat_map(JobGroup::processes);
        let grouped = grouped.filter_map(|pid| Process::read(&self.root, pid));
        for process in families.chain(grouped) {
            if !all.iter().any(|known: &Process| known.pid == process.pid) {
                all.push(process);
            }
        }
        all
    }

    /// Whether the job's own process is certainly all that there is. Cheaper than asking for the members; only without a
    /// cgroup.
    pub(crate) fn is_main_only(&self) -> bool {
        !self.main_gone
            && self.orphans.is_empty()
            && self.group.is_none()
            && process::is_alone(&self.root, self.main.pid)
    }

    /// Resident memory of that one of its processes that has most, in bytes; 0 if none can be seen.
    pub(crate) fn resident(&self) -> u64 {
        let members = self.members().into_iter().take(MOST_LOOKED_AT);
        members
            .filter_map(|member| process::resident(&self.root, member.pid))
            .max()
            .unwrap_or(0)
    }

    /// How many threads of the job want a CPU at this moment.
    pub(crate) fn wanting(&self) -> Reading<u32> {
        match &self.group {
            Some(group) => {
                let pids = group.processes().into_iter();
                let processes = pids.filter_map(|pid| Process::read(&self.root, pid));
                wanting(&self.root, processes)
            }
            None if self.is_main_only() => {
                wanting(&self.root, Process::read(&self.root, self.main.pid))
            }
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

    /// Whether an orphan belongs to this job, by its session or its marks.
    pub(crate) fn owns(&self, orphan: &Orphan, token: &str, name: &str) -> bool {
        orphan.process.session == self.main.pid
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
    use crate::sys::RawPid;

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
    fn an_orphan_in_the_session_of_the_job_is_the_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let tree = Tree::new(root.clone(), process(dir.path(), 10, 10, 70), None);
        let owns = |process: &Process| tree.owns(&Orphan::read(&root, process), "10-1-1", "job");
        assert!(owns(&process(dir.path(), 23, 10, 90)));
        assert!(!owns(&process(dir.path(), 22, 20, 80)));
    }

    #[test]
    fn an_orphan_is_the_jobs_by_its_marks() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let tree = Tree::new(root.clone(), process(dir.path(), 10, 10, 70), None);
        let one = process(dir.path(), 31, 31, 80);
        let at = |file: &str| dir.path().join("proc/31").join(file);
        let owns = |name: &str| tree.owns(&Orphan::read(&root, &one), "10-1-1", name);
        std::fs::write(at("environ"), "COSCHED_RUN=10-1-1\0COSCHED_JOB=a\0").unwrap();
        assert!(owns("a") && !owns("b"));
    }
}
