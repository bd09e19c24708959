//! One look at all processes, for whoever asks about many runs: `/proc` is read once, however many runs somebody's
//! processes and lists speak of.

use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::{Fates, RunId, marked_run, without_task};
use crate::sys::RawPid;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// All processes but this one, and but those that have ended.
pub(crate) struct Look<'a> {
    root: &'a Root,
    pub(crate) fates: Fates<'a>,
    users: RefCell<HashMap<RawPid, Vec<u32>>>,
    /// Read when they are first asked for: where no run has died nobody asks.
    families: OnceCell<Families>,
}

type Pids = HashMap<RawPid, Vec<RawPid>>;

#[derive(Default)]
struct Families {
    all: HashMap<RawPid, Process>,
    children: Pids,
    sessions: Pids,
    groups: Pids,
    runs: HashMap<RawPid, RunId>,
    by_run: HashMap<RunId, Vec<RawPid>>,
    marks: HashMap<RawPid, u64>,
    /// By their marks without the number of the job.
    by_mark: HashMap<u64, Vec<RawPid>>,
}

impl<'a> Look<'a> {
    pub(crate) fn new(root: &'a Root) -> Look<'a> {
        Look {
            root,
            fates: Fates::new(root),
            users: RefCell::default(),
            families: OnceCell::new(),
        }
    }

    fn families(&self) -> &Families {
        self.families.get_or_init(|| {
            let own = std::process::id() as RawPid;
            let mut families = Families::default();
            for process in process::all_pids(self.root)
                .into_iter()
                .filter_map(|pid| Process::read(self.root, pid))
            {
                let pid = process.pid;
                if process.is_dead() || pid == own {
                    continue;
                }
                families.all.insert(pid, process);
                families
                    .children
                    .entry(process.parent)
                    .or_default()
                    .push(pid);
                families
                    .sessions
                    .entry(process.session)
                    .or_default()
                    .push(pid);
                families.groups.entry(process.group).or_default().push(pid);
                if let Some(run) = marked_run(self.root, pid) {
                    families.runs.insert(pid, run);
                    families.by_run.entry(run).or_default().push(pid);
                }
                if let Some(mark) = process::mark(self.root, pid) {
                    families.marks.insert(pid, mark);
                    families
                        .by_mark
                        .entry(without_task(mark))
                        .or_default()
                        .push(pid);
                }
            }
            families
        })
    }

    pub(crate) fn process(&self, pid: RawPid) -> Option<&Process> {
        self.families().all.get(&pid)
    }

    pub(crate) fn children(&self, pid: RawPid) -> &[RawPid] {
        list(&self.families().children, pid)
    }

    pub(crate) fn in_session(&self, session: RawPid) -> &[RawPid] {
        list(&self.families().sessions, session)
    }

    pub(crate) fn in_group(&self, group: RawPid) -> &[RawPid] {
        list(&self.families().groups, group)
    }

    /// The run whose mark is in the environment of a process.
    pub(crate) fn run_of(&self, pid: RawPid) -> Option<RunId> {
        self.families().runs.get(&pid).copied()
    }

    /// The processes that bear a run's mark in their environment.
    pub(crate) fn of_run(&self, run: &RunId) -> &[RawPid] {
        self.families().by_run.get(run).map_or(&[], Vec::as_slice)
    }

    /// The processes that inherited a mark of a run, with the jobs that it is for.
    pub(crate) fn marked(&self, run: &RunId) -> impl Iterator<Item = (RawPid, u32)> {
        let pids = self
            .families()
            .by_mark
            .get(&run.mark(0))
            .map_or(&[][..], Vec::as_slice);
        pids.iter()
            .filter_map(move |&pid| Some((pid, run.marked_task(self.mark(pid)?)?)))
    }

    /// The mark that a process inherited.
    pub(crate) fn mark(&self, pid: RawPid) -> Option<u64> {
        self.families().marks.get(&pid).copied()
    }

    /// The users that a process runs for: its real and its saved one.
    pub(crate) fn users(&self, pid: RawPid) -> Vec<u32> {
        self.users
            .borrow_mut()
            .entry(pid)
            .or_insert_with(|| process::users(self.root, pid))
            .clone()
    }
}

fn list(of: &Pids, pid: RawPid) -> &[RawPid] {
    of.get(&pid).map_or(&[], Vec::as_slice)
}
