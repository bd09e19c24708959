//! One scan of all processes, for callers that ask about many runs.

use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::{RunId, marked_run};
use crate::sys::RawPid;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// All processes except this one and those that have ended.
pub(crate) struct Look<'a> {
    pub root: &'a Root,
    all: BTreeMap<RawPid, Seen>,
}

struct Seen {
    process: Process,
    /// The run whose variable is in its environment.
    run: Option<RunId>,
    users: OnceCell<Vec<u32>>,
}

impl<'a> Look<'a> {
    pub(crate) fn new(root: &'a Root) -> Look<'a> {
        let own = std::process::id() as RawPid;
        let mut all = BTreeMap::new();
        for pid in process::all_pids(root) {
            let process = Process::read(root, pid);
            if let Some(process) = process.filter(|process| !process.is_dead() && pid != own) {
                let seen = Seen {
                    process,
                    run: marked_run(root, pid),
                    users: OnceCell::new(),
                };
                all.insert(pid, seen);
            }
        }
        Look { root, all }
    }

    pub(crate) fn process(&self, pid: RawPid) -> Option<&Process> {
        self.all.get(&pid).map(|seen| &seen.process)
    }

    /// All processes in ascending order of their numbers.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.all.values().map(|seen| &seen.process)
    }

    /// The processes with a run's variable in their environment, each with that run.
    pub(crate) fn marked(&self) -> impl Iterator<Item = (RawPid, RunId)> {
        self.all
            .iter()
            .filter_map(|(&pid, seen)| Some((pid, seen.run?)))
    }

    /// The run whose variable is in the environment of a process.
    pub(crate) fn run_of(&self, pid: RawPid) -> Option<RunId> {
        self.all.get(&pid)?.run
    }

    /// The users of a process: its real and its saved one.
    pub(crate) fn users(&self, pid: RawPid) -> &[u32] {
        self.all.get(&pid).map_or(&[], |seen| {
            seen.users.get_or_init(|| process::users(self.root, pid))
        })
    }
}
