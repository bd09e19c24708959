//! The processes of one job: its own, all that it started, and those that went their own way.
//!
//! With a cgroup the kernel knows them. Without one they are found by family: the descendants of the job's own
//! process, and orphans. An orphan becomes a child of the run, which is a subreaper, and is given back to its job by
//! the session that it was born in or by the mark in its environment.

use crate::cgroup::JobGroup;
use crate::process::{self, JOB_VARIABLE, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys::{self, RawPid};
use cosched_core::CpuSet;
use rustix::process::Signal;
use std::io;

/// The processes of one job.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Root,
    /// The job's own process, a session and group leader.
    pub(crate) main: Process,
    /// The job's own process has been reaped; its number may belong to somebody else.
    pub(crate) main_gone: bool,
    /// Orphans that were given back to this job.
    orphans: Vec<Process>,
    group: Option<JobGroup>,
    frozen: bool,
    /// What was stopped by signals, beside the main process group.
    stopped: Vec<Process>,
}

impl Tree {
    pub(crate) fn new(root: Root, main: Process, group: Option<JobGroup>) -> Tree {
        Tree { root, main, main_gone: false, orphans: Vec::new(), group, frozen: false, stopped: Vec::new() }
    }

    /// Whether it was frozen by us and not thawed since.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The group, where there is one.
    pub(crate) fn group(&self) -> Option<&JobGroup> {
        self.group.as_ref()
    }

    /// Every process of the job that can be found.
    pub(crate) fn members(&self) -> Vec<Process> {
        if let Some(group) = &self.group {
            return group.processes().into_iter().filter_map(|pid| Process::read(&self.root, pid)).collect();
        }
        let mut all = if self.main_gone { Vec::new() } else { process::descendants(&self.root, self.main.pid) };
        for orphan in self.orphans.iter().filter(|orphan| orphan.is_same(&self.root)) {
            for process in process::descendants(&self.root, orphan.pid) {
                if !all.iter().any(|known: &Process| known.pid == process.pid) {
                    all.push(process);
                }
            }
        }
        all
    }

    /// Whether anything but zombies is left of it.
    pub(crate) fn is_alive(&mut self) -> bool {
        if let Some(group) = &self.group {
            return group.is_populated();
        }
        self.orphans.retain(|orphan| {
            Process::read(&self.root, orphan.pid).is_some_and(|p| p.start == orphan.start && p.state != 'Z')
        });
        !self.main_gone || !self.orphans.is_empty()
    }

    /// Takes an orphan in.
    pub(crate) fn adopt(&mut self, orphan: Process) {
        if !self.knows(&orphan) {
            self.orphans.push(orphan);
        }
    }

    pub(crate) fn knows(&self, process: &Process) -> bool {
        self.orphans.iter().any(|known| known.pid == process.pid && known.start == process.start)
    }

    /// Whether an orphan is one of this job's: by its session, or by its mark.
    pub(crate) fn owns(&self, process: &Process, token: &str, name: &str) -> bool {
        let marked = |variable, value: &str| {
            process::variable(&self.root, process.pid, variable).is_some_and(|found| found == value)
        };
        process.session == self.main.pid || (marked(RUN_VARIABLE, token) && marked(JOB_VARIABLE, name))
    }

    /// Stops all of its processes.
    pub(crate) fn freeze(&mut self) -> io::Result<()> {
        if self.frozen {
            return Ok(());
        }
        self.frozen = true;
        if let Some(group) = &mut self.group {
            return group.freeze(true);
        }
        if !self.main_gone {
            // The group is stopped in one go: none of its processes can fork out of it meanwhile.
            let _ = sys::kill(-self.main.pid, libc::SIGSTOP);
        }
        self.stopped.clear();
        // Those outside the group one by one, and again, until no new one has appeared beside them.
        for _ in 0..16 {
            let mut new = self.members();
            new.retain(|process| {
                let in_group = process.group == self.main.pid && !self.main_gone;
                !in_group && process.state != 'Z' && !self.stopped.iter().any(|known| known.pid == process.pid)
            });
            if new.is_empty() {
                break;
            }
            for process in new {
                // One that stands still already was stopped by somebody else, who will continue it.
                if process.state != 'T' && process.signal(&self.root, Signal::STOP) {
                    self.stopped.push(process);
                }
            }
        }
        Ok(())
    }

    /// Continues all that was stopped. A main process that stopped itself, before we did, stays as it is.
    pub(crate) fn thaw(&mut self, stopped_itself: bool) -> io::Result<()> {
        if !self.frozen {
            return Ok(());
        }
        self.frozen = false;
        if let Some(group) = &mut self.group {
            return group.freeze(false);
        }
        if self.main_gone {
            // Stopped with the group, and orphaned since: the group's number is no longer safe to use as a whole.
            for process in self.members() {
                if process.state == 'T' && process.group == self.main.pid {
                    process.signal(&self.root, Signal::CONT);
                }
            }
        } else if !stopped_itself {
            let _ = sys::kill(-self.main.pid, libc::SIGCONT);
        }
        for process in self.stopped.drain(..) {
            process.signal(&self.root, Signal::CONT);
        }
        Ok(())
    }

    /// Sends a signal to all of its processes.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.main_gone {
            let _ = sys::kill(-self.main.pid, signal.as_raw());
        }
        for process in self.members() {
            if self.main_gone || process.group != self.main.pid {
                process.signal(&self.root, signal);
            }
        }
    }

    /// Ends all of its processes at once.
    pub(crate) fn kill(&mut self) {
        if self.group.as_ref().is_some_and(JobGroup::kill) {
            return;
        }
        // Stopped processes can't fork away, and are killed as they stand.
        let _ = self.freeze();
        for _ in 0..16 {
            let left: Vec<Process> = self.members().into_iter().filter(|process| process.state != 'Z').collect();
            if left.is_empty() {
                break;
            }
            self.signal(Signal::KILL);
        }
        // A frozen group holds even the killed until it is thawed, where the kernel lacks `cgroup.kill`.
        let _ = self.thaw(false);
    }

    /// Binds all threads of all its processes.
    pub(crate) fn bind(&self, cpus: &CpuSet) {
        let pids: Vec<RawPid> = match &self.group {
            Some(group) => group.processes(),
            None => self.members().iter().map(|process| process.pid).collect(),
        };
        process::bind(&self.root, &pids, cpus);
    }
}
