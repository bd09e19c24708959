//! The processes of one job: its own process, everything that it started, and those that left its session.
//!
//! With a cgroup the kernel knows them. Without one they are found by family: the descendants of the job's own process,
//! and orphans. An orphan becomes a child of the run, which is a subreaper. It is returned to its job by its session of
//! birth or by the mark in its environment.

use crate::cgroup::JobGroup;
use crate::ledger::Ledger;
use crate::process::{self, JOB_VARIABLE, Loner, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys::{self, RawPid};
use crate::wanting::wanting;
use cosched_core::Reading;
use rustix::process::Signal;
use std::cell::RefCell;

/// How often the job's processes are looked for again while there are any left to kill.
const KILLS: u32 = 16;

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
    /// Sessions in which processes of the job were seen, beside that of its own process.
    sessions: RefCell<Vec<RawPid>>,
    group: Option<JobGroup>,
    /// Where its processes are entered, under the number of the job.
    ledger: Option<(Ledger, u32)>,
    /// The mark that its processes inherit.
    mark: Option<u64>,
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
        let mut sessions = self.sessions.borrow_mut();
        // A session of the run's caller would be shared by all.
        if process.session != self.main.pid && process.session > 1 && !sessions.contains(&process.session) {
            sessions.push(process.session);
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
        let mut all = if self.main_gone { Vec::new() } else { process::descendants(&self.root, self.main.pid) };
        let add = |all: &mut Vec<Process>, process: Process| {
            if !all.iter().any(|known: &Process| known.pid == process.pid) {
                all.push(process);
            }
        };
        for orphan in self.orphans.iter().filter(|orphan| orphan.is_same(&self.root)) {
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
        !self.main_gone && self.orphans.is_empty() && self.loner.as_ref().is_some_and(Loner::is_alone)
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
        self.orphans.retain(|orphan| {
            Process::read(&self.root, orphan.pid).is_some_and(|p| p.start == orphan.start && !p.is_dead())
        });
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
        self.orphans.iter().any(|known| known.pid == process.pid && known.start == process.start)
    }

    /// Whether an orphan belongs to this job: by its session, by one in which a process of the job was seen, or by its
    /// marks.
    pub(crate) fn owns(&self, process: &Process, token: &str, name: &str) -> bool {
        let marked = |variable, value: &str| {
            process::variable(&self.root, process.pid, variable).is_some_and(|found| found == value)
        };
        process.session == self.main.pid
            || self.sessions.borrow().contains(&process.session)
            || (self.mark.is_some() && process::mark(&self.root, process.pid) == self.mark)
            || (marked(RUN_VARIABLE, token) && marked(JOB_VARIABLE, name))
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
        let Some(group) = &self.group else { return false };
        if !group.kill() {
            return false;
        }
        let reached = group.processes();
        self.members().iter().all(|process| process.is_dead() || reached.contains(&process.pid))
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
