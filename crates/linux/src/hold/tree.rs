//! The processes of one job: its main process and all descendants, even those that left its session.
//!
//! With a cgroup the kernel knows them. Without one they are found by family: the descendants of the main process, and
//! orphans. An orphan becomes a child of the run, which is a subreaper. It is assigned to its job by its session, or by
//! the variables in its environment.

use crate::cgroup::JobGroup;
use crate::hold::ledger::Ledger;
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys;
use crate::wanting::wanting;
use cosched_core::{Absence, Nanos, Reading, Wanting};
use rustix::process::Signal;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Rounds of kills while processes are left.
const KILLS: u32 = 16;
/// Maximum number of processes whose memory is read, per job.
const MOST_LOOKED_AT: usize = 64;

/// The processes of one job.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: Root,
    /// The job's main process, which leads a session and a group.
    pub(crate) main: Process,
    /// Whether the main process has been reaped; its number may then belong to another process.
    pub(crate) main_gone: bool,
    /// Whether the main process is no child of this one: its number may be given away at any time.
    is_foreign: bool,
    /// Orphans that were assigned to this job.
    orphans: Vec<Process>,
    adopted: u32,
    group: Option<JobGroup>,
    /// The list for its processes, and the number of the job.
    ledger: Option<(Ledger, u32)>,
}

impl ProcessTree {
    /// The processes of a job with this main process.
    pub(crate) fn new(root: Root, main: Process, group: Option<JobGroup>) -> ProcessTree {
        ProcessTree {
            root,
            main,
            main_gone: false,
            is_foreign: false,
            orphans: Vec::new(),
            adopted: 0,
            group,
            ledger: None,
        }
    }

    /// From now on enters processes that may not be found by family into the run's list.
    pub(crate) fn with_ledger(mut self, ledger: Ledger, task: u32) -> ProcessTree {
        self.ledger = Some((ledger, task));
        self
    }

    /// Its processes are no descendants of this one.
    pub(crate) fn of_foreigners(mut self) -> ProcessTree {
        self.is_foreign = true;
        self
    }

    /// Whether the number of the main process is that of its process group.
    pub(crate) fn leads_group(&self) -> bool {
        !self.main_gone && (!self.is_foreign || self.main.is_same(&self.root))
    }

    /// Continues the process group of the main process.
    pub(crate) fn go_on(&self) {
        if self.leads_group() {
            let _ = sys::kill(-self.main.pid, libc::SIGCONT);
        }
    }

    /// Continues what is left of the session of the main process, which has ended.
    pub(crate) fn continue_session(&self) {
        let now = Process::read(&self.root, self.main.pid);
        // Another session may have the number by now.
        if now.is_some_and(|now| now.start != self.main.start) {
            return;
        }
        for pid in process::all_pids(&self.root) {
            if let Some(left) = Process::read(&self.root, pid)
                && left.session == self.main.pid
            {
                left.signal(&self.root, Signal::CONT);
            }
        }
    }

    /// CPU time of all its processes and of those that they waited for.
    pub(crate) fn cpu_time(&self) -> Nanos {
        let times = self.members().into_iter();
        times.fold(Nanos::ZERO, |sum, member| {
            sum + process::cpu_time(&self.root, member.pid)
        })
    }

    /// Enters a process outside the job's own process group into the run's list.
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

    /// Every known process of the job. With a group, this includes processes outside it: another program may have moved
    /// the job.
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

    /// Whether the main process is alone and single-threaded. The folder of its threads has a link for each of them,
    /// and two others.
    pub(crate) fn is_main_alone(&self) -> bool {
        let pid = self.main.pid;
        let threads = std::fs::metadata(self.root.path(&format!("/proc/{pid}/task")));
        !self.main_gone
            && self.group.is_none()
            && self.orphans.is_empty()
            && threads.is_ok_and(|threads| threads.nlink() == 3)
            && process::children_of_thread(&self.root, pid, pid).is_empty()
    }

    /// Resident memory of its largest process, in bytes; 0 if none is visible.
    pub(crate) fn resident(&self) -> u64 {
        let members = self.members().into_iter().take(MOST_LOOKED_AT);
        members
            .filter_map(|member| process::resident(&self.root, member.pid))
            .max()
            .unwrap_or(0)
    }

    /// Bytes that the job has moved from and to disks.
    pub(crate) fn disk_bytes(&self) -> Reading<u64> {
        let mut total = 0_u64;
        for member in self.members() {
            match process::disk_bytes(&self.root, member.pid) {
                Ok(bytes) => total = total.saturating_add(bytes),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Reading::Absent(Absence::NoPermission);
                }
                // It has just ended.
                Err(_) => {}
            }
        }
        Reading::Value(total)
    }

    /// The threads of the job that want a CPU now.
    pub(crate) fn wanting(&self) -> Reading<Wanting> {
        match &self.group {
            Some(group) => {
                let pids = group.processes().into_iter();
                let processes = pids.filter_map(|pid| Process::read(&self.root, pid));
                wanting(&self.root, processes)
            }
            None => wanting(&self.root, self.members()),
        }
    }

    /// Whether any process but zombies is left.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.orphans
            .retain(|orphan| process::lives(&self.root, orphan.pid, orphan.start));
        let grouped = self.group.as_ref().is_some_and(JobGroup::is_populated);
        !self.main_gone || grouped || !self.orphans.is_empty()
    }

    /// Adopts an orphan.
    pub(crate) fn adopt(&mut self, orphan: Process) {
        self.note(&orphan);
        self.orphans.push(orphan);
        self.adopted += 1;
    }

    /// Number of orphans that the job has adopted so far.
    pub(crate) fn adopted(&self) -> u32 {
        self.adopted
    }

    /// Sends a signal to all processes of the job, first to those outside the job's own process group: once their
    /// parents have ended, they can no longer be found by family.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in self.members() {
            if self.main_gone || process.group != self.main.pid {
                process.signal(&self.root, signal);
            }
        }
        if self.leads_group() {
            let _ = sys::kill(-self.main.pid, signal.as_raw());
        }
    }

    /// Kills all processes by one request to the kernel; `false` if that is impossible, or does not reach all.
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

    /// Kills all processes by signals. They must be stopped, so that none can fork meanwhile.
    pub(crate) fn kill_each(&self) {
        for _ in 0..KILLS {
            if self.members().iter().all(Process::is_dead) {
                break;
            }
            self.signal(Signal::KILL);
        }
    }
}
