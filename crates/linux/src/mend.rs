//! Frees what a dead run left behind: frozen groups and stopped processes. Used by every start, and by `cosched thaw`.

use crate::cgroup;
use crate::claim::Claim;
use crate::ledger::{self, Record};
use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::{Fate, RunId, marked_run};
use crate::sys::RawPid;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was freed, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Groups of runs and jobs that were thawed, or that were empty and removed. A group with processes stays until
    /// they have ended.
    pub groups: Vec<PathBuf>,
    /// Stopped processes that were continued.
    pub continued: Vec<RawPid>,
    /// Frozen groups of dead runs that the caller may not thaw.
    pub denied: Vec<PathBuf>,
    /// Groups of runs that can't be seen from here, in another PID namespace for example. They were left alone.
    pub unknown: Vec<PathBuf>,
}

impl Mended {
    /// Whether nothing was freed.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.continued.is_empty()
    }
}

/// How far to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Groups beside the caller's own, and in those of dead runs.
    Near,
    /// The whole hierarchy.
    Everywhere,
    /// The whole hierarchy, and only what is left of these runs, as in the variable `COSCHED_RUN`.
    Runs(Vec<String>),
}

impl Reach {
    fn covers(&self, run: &RunId) -> bool {
        match self {
            Reach::Near | Reach::Everywhere => true,
            Reach::Runs(runs) => runs.contains(&run.to_string()),
        }
    }
}

/// How often stopped processes are looked for while any are found.
const LOOKS: u32 = 4;

/// Frees what dead runs left behind, as far as the caller may.
pub fn mend(root: &Root, reach: &Reach) -> Mended {
    let mut mended = Mended::default();
    let stale = stale_groups(root, reach);
    for group in &stale {
        if !group.dead {
            mended.unknown.push(group.dir.clone());
            continue;
        }
        let thawed = cgroup::thaw(&group.dir);
        // From below: a run inside another was found after it.
        match thawed {
            Err(_) => mended.denied.push(group.dir.clone()),
            Ok(true) => mended.groups.push(group.dir.clone()),
            Ok(false) => {}
        }
    }
    for group in stale.iter().rev().filter(|group| group.dead) {
        if cgroup::remove(&group.dir) && !mended.groups.contains(&group.dir) {
            mended.groups.push(group.dir.clone());
        }
    }
    mended.groups.sort();
    for dead in dead_runs(root, &stale).into_iter().filter(|dead| reach.covers(&dead.run)) {
        mended.continued.extend(dead.go_on(root));
        if let Some(record) = &dead.record {
            record.wake_guardian(root);
        }
        if dead.record.is_some() && dead.claim().processes(root).is_empty() {
            ledger::forget(root, &dead.run);
        }
    }
    mended.continued.sort_unstable();
    mended.continued.dedup();
    mended
}

fn stale_groups(root: &Root, reach: &Reach) -> Vec<cgroup::Stale> {
    let dir = match reach {
        Reach::Near => cgroup::own_directory(root).ok(),
        Reach::Everywhere | Reach::Runs(_) => cgroup::top_directory(root),
    };
    let mut stale = dir.map(|dir| cgroup::stale(root, &dir, *reach != Reach::Near)).unwrap_or_default();
    stale.retain(|group| reach.covers(&group.run));
    stale
}

/// A run that has died, with what tells of it.
pub(crate) struct DeadRun {
    pub(crate) run: RunId,
    pub(crate) record: Option<Record>,
    pub(crate) group: Option<PathBuf>,
    owner: Option<u32>,
}

impl DeadRun {
    /// What can be claimed for it.
    pub(crate) fn claim(&self) -> Claim<'_> {
        Claim { run: self.run, record: self.record.as_ref(), group: self.group.as_deref(), owner: self.owner }
    }

    /// Continues its stopped processes; returns them.
    fn go_on(&self, root: &Root) -> Vec<RawPid> {
        let mut continued = Vec::new();
        for _ in 0..LOOKS {
            let claimed = self.claim().processes(root);
            let stopped = claimed.iter().map(|member| member.process).filter(Process::is_stopped);
            let now: Vec<RawPid> =
                stopped.filter(|process| process.signal(root, Signal::CONT)).map(|process| process.pid).collect();
            if now.is_empty() {
                break;
            }
            continued.extend(now);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        continued
    }
}

/// All dead runs that left a list, a group, or a process that bears their mark.
pub(crate) fn dead_runs(root: &Root, stale: &[cgroup::Stale]) -> Vec<DeadRun> {
    let mut runs: BTreeMap<RunId, DeadRun> = BTreeMap::new();
    let dead = |run: RunId| DeadRun { run, record: None, group: None, owner: None };
    for found in ledger::found(root) {
        let run = found.record.head.run;
        if run.fate(root) == Fate::Dead {
            let group = found.record.head.group.clone();
            let entry = DeadRun { group, record: Some(found.record), owner: Some(found.owner), ..dead(run) };
            runs.insert(run, entry);
        }
    }
    for group in stale.iter().filter(|group| group.dead) {
        let entry = runs.entry(group.run).or_insert_with(|| dead(group.run));
        if entry.group.as_deref().is_none_or(|dir| !Path::exists(dir)) {
            entry.group = Some(group.dir.clone());
        }
    }
    let mut fates: BTreeMap<RunId, Fate> = BTreeMap::new();
    for run in process::all_pids(root).into_iter().filter_map(|pid| marked_run(root, pid)) {
        if *fates.entry(run).or_insert_with(|| run.fate(root)) == Fate::Dead {
            runs.entry(run).or_insert_with(|| dead(run));
        }
    }
    runs.into_values().collect()
}

/// All dead runs that can be found from here, for those who look for orphans.
pub(crate) fn all_dead_runs(root: &Root, reach: &Reach) -> Vec<DeadRun> {
    let mut all = dead_runs(root, &stale_groups(root, reach));
    all.retain(|dead| reach.covers(&dead.run));
    all
}
