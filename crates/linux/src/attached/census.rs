//! The processes of this machine, each read once. A look lists their numbers, and reads only what is new.

use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::RawPid;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of processes known. A machine has fewer, except while something forks without end.
const MOST_KNOWN: usize = 32_768;
/// Maximum number of new processes read in one look; the others are read at the next ones.
const MOST_NEW: usize = 4_096;
/// Looks after which the command line of a process is not read again: a new process may not have executed its program.
const SETTLED: u32 = 2;
/// The kernel's thread that starts all others.
const KERNEL: RawPid = 2;
/// The init process.
pub(super) const INIT: RawPid = 1;

/// The known processes.
pub(super) struct Census {
    root: Root,
    own: RawPid,
    known: BTreeMap<RawPid, Known>,
    /// Processes of the last look that are not known, because there are too many.
    pub(super) unread: usize,
}

/// A process, and what is read of it once it is asked for.
struct Known {
    process: Process,
    looks: u32,
    /// The command line, and the number of looks when it was read.
    command: Option<(String, u32)>,
    user: Option<u32>,
}

impl Census {
    pub(super) fn new(root: &Root) -> Census {
        Census {
            root: root.clone(),
            own: std::process::id() as RawPid,
            known: BTreeMap::new(),
            unread: 0,
        }
    }

    /// Why a process is never observed; `None` if it may be.
    pub(super) fn never(&self, pid: RawPid) -> Option<&'static str> {
        let parent = self.known.get(&pid).map(|known| known.process.parent);
        match pid {
            INIT => Some("the init process"),
            KERNEL => Some("the kernel"),
            _ if pid == self.own => Some("cosched itself"),
            _ if parent == Some(self.own) && self.is_cosched(pid) => Some("cosched's keeper"),
            _ if parent == Some(KERNEL) => Some("a thread of the kernel"),
            _ => None,
        }
    }

    fn is_cosched(&self, pid: RawPid) -> bool {
        let program = |pid| std::fs::read_link(self.root.path(&format!("/proc/{pid}/exe"))).ok();
        program(pid).is_some_and(|its| Some(its) == program(self.own))
    }

    /// Looks at all processes.
    pub(super) fn look(&mut self) {
        let pids = process::all_pids(&self.root);
        self.look_at(&pids);
    }

    /// Looks at these processes only, and forgets all others.
    pub(super) fn look_at(&mut self, pids: &[RawPid]) {
        let present: BTreeSet<RawPid> = pids.iter().copied().collect();
        self.known.retain(|pid, _| present.contains(pid));
        self.unread = 0;
        let mut new = 0;
        for pid in present {
            if let Some(known) = self.known.get_mut(&pid) {
                known.looks = known.looks.saturating_add(1);
            } else if new == MOST_NEW || self.known.len() == MOST_KNOWN {
                self.unread += 1;
            } else {
                new += 1;
                self.read(pid);
            }
        }
    }

    fn read(&mut self, pid: RawPid) {
        let process = Process::read(&self.root, pid).filter(|process| !process.is_dead());
        if let Some(process) = process {
            let known = Known {
                process,
                looks: 0,
                command: None,
                user: None,
            };
            self.known.insert(pid, known);
        }
    }

    /// Forgets a process that has ended, so that a later one with its number is read.
    pub(super) fn forget(&mut self, pid: RawPid) {
        self.known.remove(&pid);
    }

    pub(super) fn process(&self, pid: RawPid) -> Option<&Process> {
        self.known.get(&pid).map(|known| &known.process)
    }

    /// The processes that may be observed, in ascending order of their numbers.
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        let all = self.known.values().map(|known| &known.process);
        all.filter(|process| self.never(process.pid).is_none())
    }

    /// The processes above one, nearest first.
    pub(super) fn ancestors(&self, pid: RawPid) -> Vec<RawPid> {
        let mut above = Vec::new();
        let mut next = self.process(pid).map(|process| process.parent);
        while let Some(parent) = next.filter(|parent| *parent > 0 && !above.contains(parent)) {
            above.push(parent);
            next = self.process(parent).map(|process| process.parent);
        }
        above
    }

    /// This process and those above it.
    pub(super) fn own_line(&self) -> Vec<RawPid> {
        let mut line = self.ancestors(self.own);
        line.push(self.own);
        line
    }

    /// The command line of a process.
    pub(super) fn command(&mut self, pid: RawPid) -> Option<&str> {
        let known = self.known.get_mut(&pid)?;
        let read_at = known.command.as_ref().map(|(_, looks)| *looks);
        if read_at.is_none_or(|at| at < SETTLED && at < known.looks) {
            let line = process::command_line(&self.root, pid)?;
            known.command = Some((line, known.looks));
        }
        known.command.as_ref().map(|(line, _)| line.as_str())
    }

    /// The real user of a process.
    pub(super) fn user(&mut self, pid: RawPid) -> Option<u32> {
        let known = self.known.get_mut(&pid)?;
        if known.user.is_none() {
            known.user = process::users(&self.root, pid).first().copied();
        }
        known.user
    }
}
