//! One scan of all processes, for callers that ask about many runs.

use crate::hold::ledger::{self, RUNS};
use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::{RunFate, RunId, RunMark, mark};
use crate::sys::RawPid;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// All processes except this one and those that have ended.
pub(crate) struct ProcessScan<'a> {
    pub root: &'a Root,
    all: BTreeMap<RawPid, Seen>,
    /// What live runs have taken over from dead ones.
    adopted: BTreeSet<RawPid>,
}

struct Seen {
    process: Process,
    mark: Option<RunMark>,
    users: OnceCell<Vec<u32>>,
}

impl<'a> ProcessScan<'a> {
    pub(crate) fn new(root: &'a Root) -> ProcessScan<'a> {
        let own = std::process::id() as RawPid;
        let mut all = BTreeMap::new();
        for pid in process::all_pids(root) {
            let process = Process::read(root, pid);
            if let Some(process) = process.filter(|process| !process.is_dead() && pid != own) {
                let seen = Seen {
                    process,
                    mark: mark(root, pid),
                    users: OnceCell::new(),
                };
                all.insert(pid, seen);
            }
        }
        let mut look = ProcessScan {
            root,
            all,
            adopted: BTreeSet::new(),
        };
        look.adopted = look.find_adopted();
        look
    }

    /// The processes of adopted jobs of live runs, which descend from one each. Only its own user and the superuser can adopt
    /// it.
    fn find_adopted(&self) -> BTreeSet<RawPid> {
        let mut adopted = BTreeSet::new();
        for found in ledger::found(self.root, RUNS, |run| run.fate(self.root) == RunFate::Alive) {
            for job in found.record.jobs.iter().filter(|job| job.adopted) {
                let main = job.main;
                let now = self.process(main.pid);
                let is_job = now.is_some_and(|now| now.start == main.start);
                if is_job && (found.owner == 0 || self.users(main.pid).contains(&found.owner)) {
                    let family = process::descendants(self.root, main.pid);
                    adopted.extend(family.iter().map(|process| process.pid));
                }
            }
        }
        adopted
    }

    /// Whether a live run has taken over this process from a dead one.
    pub(crate) fn is_adopted(&self, pid: RawPid) -> bool {
        self.adopted.contains(&pid)
    }

    pub(crate) fn process(&self, pid: RawPid) -> Option<&Process> {
        self.all.get(&pid).map(|seen| &seen.process)
    }

    /// All processes in ascending order of their numbers.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.all.values().map(|seen| &seen.process)
    }

    /// The processes with a run's variable in their environment.
    pub(crate) fn marked(&self) -> impl Iterator<Item = (RawPid, &RunMark)> {
        self.all
            .iter()
            .filter_map(|(&pid, seen)| Some((pid, seen.mark.as_ref()?)))
    }

    /// The run whose variable is in the environment of a process.
    pub(crate) fn run_of(&self, pid: RawPid) -> Option<RunId> {
        Some(self.all.get(&pid)?.mark.as_ref()?.run)
    }

    /// The users of a process: its real and its saved one.
    pub(crate) fn users(&self, pid: RawPid) -> &[u32] {
        self.all.get(&pid).map_or(&[], |seen| {
            seen.users.get_or_init(|| process::users(self.root, pid))
        })
    }
}
