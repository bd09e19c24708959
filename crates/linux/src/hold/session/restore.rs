//! Gives threads the CPUs back that they had, and thaws groups, after a list of changes. The session does it when it
//! ends, its guardian if it was killed, and `cosched thaw` or a later start if both were.

use super::threads::{comes_from, limit_of, may_inherit, thread_now};
use crate::cgroup;
use crate::hold::ledger::{self, Pin, Record, SESSIONS};
use crate::identity;
use crate::process::{self, ProcessKey};
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use crate::runtime::PrivateFolder;
use crate::sys::{self, RawPid};
use cosched_core::{CpuId, CpuSet};
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of passes: threads may start threads all the time.
const MOST_PASSES: u32 = 64;
/// Passes without a change after which all is restored. A thread may be starting at the first.
const QUIET_PASSES: u32 = 2;
const BETWEEN_PASSES: Duration = Duration::from_millis(5);

/// What was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Threads that have their CPUs again.
    pub threads: BTreeSet<RawPid>,
    /// Threads whose CPUs somebody else has changed since. They were left alone.
    pub changed: BTreeSet<RawPid>,
    /// Threads that could not be given their CPUs.
    pub refused: BTreeSet<RawPid>,
    /// Groups that were thawed.
    pub thawed: Vec<PathBuf>,
    /// Groups that could not be thawed.
    pub frozen: Vec<PathBuf>,
}

impl Restored {
    /// Whether nothing was done, and nothing is left.
    pub fn is_empty(&self) -> bool {
        *self == Restored::default()
    }
}

/// Undoes the changes of a list, as far as they are of processes and groups of this user; 0 stands for all users.
pub(super) fn restore(root: &Root, list: &Record, owner: u32) -> Restored {
    let mut restoring = Restoring::new(root, list, owner);
    restoring.thaw();
    restoring.index();
    let mut quiet = 0;
    for _ in 0..MOST_PASSES {
        quiet = if restoring.pass() { 0 } else { quiet + 1 };
        if quiet == QUIET_PASSES {
            break;
        }
        std::thread::sleep(BETWEEN_PASSES);
    }
    restoring.done
}

/// Thaws the groups of a list.
pub(super) fn thaw(root: &Root, list: &Record, owner: u32) {
    Restoring::new(root, list, owner).thaw();
}

struct Restoring<'a> {
    root: &'a Root,
    list: &'a Record,
    owner: u32,
    /// The processes with bound threads, and when the first was bound.
    processes: BTreeMap<ProcessKey, u64>,
    pins: BTreeMap<ProcessKey, &'a Pin>,
    done: Restored,
}

impl<'a> Restoring<'a> {
    fn new(root: &'a Root, list: &'a Record, owner: u32) -> Restoring<'a> {
        Restoring {
            root,
            list,
            owner,
            processes: BTreeMap::new(),
            pins: BTreeMap::new(),
            done: Restored::default(),
        }
    }

    fn thaw(&mut self) {
        for dir in &self.list.frozen {
            let is_group = cgroup::is_group(self.root, dir);
            let is_owners = || std::fs::metadata(dir).is_ok_and(|dir| self.may(dir.uid()));
            if !is_group || !is_owners() || !cgroup::is_frozen(dir) {
                continue;
            }
            let thawed = cgroup::set_frozen(dir, false).is_ok();
            let told = if thawed {
                &mut self.done.thawed
            } else {
                &mut self.done.frozen
            };
            told.push(dir.clone());
        }
    }

    fn may(&self, user: u32) -> bool {
        self.owner == 0 || self.owner == user
    }

    fn index(&mut self) {
        for pin in &self.list.pins {
            self.pins.insert(pin.thread, pin);
            let since = self.processes.entry(pin.process).or_insert(pin.since);
            *since = pin.since.min(*since);
        }
    }

    /// Visits all processes of the list, and those that they have forked since. Returns whether a thread was changed.
    fn pass(&mut self) -> bool {
        let mut pids = BTreeMap::new();
        for process in self.processes.keys() {
            if process.find(self.root).is_some() {
                let family = process::descendants(self.root, process.pid);
                pids.extend(family.iter().map(|process| (process.pid, u64::MAX)));
            }
        }
        for (since, dir) in &self.list.groups {
            if cgroup::is_group(self.root, dir) {
                let all = cgroup::processes(dir).into_iter();
                pids.extend(all.map(|pid| (pid, *since)));
            }
        }
        let mut changed = false;
        for (pid, since) in pids {
            changed |= self.process(pid, since);
        }
        changed
    }

    /// Visits a process. If its creator has ended, it may have inherited its CPUs since then.
    fn process(&mut self, pid: RawPid, since: u64) -> bool {
        // The kernel decides what this user may do. It would let root do all that is in the lists of others.
        let is_own = self.owner == geteuid().as_raw();
        if !is_own && !process::users(self.root, pid).contains(&self.owner) {
            return false;
        }
        let limit = limit_of(self.root, pid);
        let mut changed = false;
        for tid in process::threads(self.root, pid) {
            if let Some((thread, present)) = thread_now(self.root, pid, tid) {
                let is_ours = match self.pins.get(&thread) {
                    Some(pin) => pin.is_ours(&present, &limit),
                    None => self.has_inherited(pid, thread, &present, &limit, since),
                };
                changed |= self.thread(thread, &present, &limit, is_ours);
            }
        }
        changed
    }

    fn thread(
        &mut self,
        thread: ProcessKey,
        present: &CpuSet,
        limit: &CpuSet,
        is_ours: bool,
    ) -> bool {
        if self.list.alone.contains(&thread) {
            return false;
        }
        let own = self.pins.get(&thread).copied();
        if !is_ours {
            let is_other = own.is_some_and(|pin| *present != pin.old && present != limit);
            if is_other && !self.done.refused.contains(&thread.pid) {
                self.done.changed.insert(thread.pid);
            }
            return false;
        }
        if !give_back(self.root, thread.pid, own.map_or(limit, |pin| &pin.old)) {
            self.done.refused.insert(thread.pid);
            return false;
        }
        self.done.threads.insert(thread.pid)
    }

    /// Whether a thread that is in no entry has inherited its CPUs from the session.
    fn has_inherited(
        &self,
        pid: RawPid,
        thread: ProcessKey,
        present: &CpuSet,
        limit: &CpuSet,
        since: u64,
    ) -> bool {
        let mut sets = self.list.sets.iter();
        let bound_since = |known| {
            let is_kept = self.list.alone.contains(&known);
            let since = self.processes.get(&known).copied();
            since.or(is_kept.then_some(u64::MAX))
        };
        present != limit
            && sets.any(|set| comes_from(present, set, limit))
            && may_inherit(self.root, pid, thread, bound_since).unwrap_or(thread.start >= since)
    }
}

/// Gives a thread its CPUs back. It had all CPUs of its group, so it asks for every CPU: the kernel grants those of the
/// group, and those that the group gets later.
pub(super) fn give_back(root: &Root, tid: RawPid, old: &CpuSet) -> bool {
    let possible = root.cpus("/sys/devices/system/cpu/possible", "possible CPUs");
    let every = possible.ok().flatten().unwrap_or_else(|| old.clone());
    let highest = old.iter().chain(every.iter()).map(|cpu| cpu.0).max();
    let every: CpuSet = (0..=highest.unwrap_or(0)).map(CpuId).collect();
    sys::set_affinity(tid, &every).is_ok() || sys::set_affinity(tid, old).is_ok()
}

/// Undoes what dead sessions have left, of those that are covered.
pub(crate) fn mend(root: &Root, covers: impl Fn(&RunId, u32) -> bool) -> Restored {
    let mut done = Restored::default();
    if identity::boot(root).is_none() {
        // A group that is frozen now may be another one than in the boot of the list.
        return done;
    }
    let folders = PrivateFolder::all(root);
    for found in ledger::found(root, SESSIONS, |run| run.fate(root) == RunFate::Dead) {
        let (run, owner) = (found.record.head.run, found.owner);
        if covers(&run, owner) {
            done.add(restore(root, &found.record, owner));
            // It may be stopped, and its work is done.
            found.end_guardian(root);
            ledger::forget(&folders, SESSIONS, &run, owner);
        }
    }
    done
}

impl Restored {
    fn add(&mut self, other: Restored) {
        self.threads.extend(other.threads);
        self.changed.extend(other.changed);
        self.refused.extend(other.refused);
        self.thawed.extend(other.thawed);
        self.frozen.extend(other.frozen);
    }
}
