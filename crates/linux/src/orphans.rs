//! Jobs that run on although their run was killed: nobody schedules them, and nobody waits for them.

use crate::cgroup;
use crate::hold::claim::job_groups;
use crate::hold::mend::{DeadRun, Reach, all_dead_runs, mend};
use crate::hold::process_scan::ProcessScan;
use crate::process::{self, Process};
use crate::reaper;
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::RawPid;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A job of a dead run that still has processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Orphan {
    /// The job's name; empty if unknown.
    pub job: String,
    /// The run that it was part of, as in the variable `COSCHED_RUN` of its processes.
    pub run: String,
    /// The user of the run.
    pub user: u32,
    /// Whether it has a reaper, so that the next `cosched serve` takes it over.
    pub has_reaper: bool,
    /// Its processes, lowest number first.
    pub processes: Vec<i32>,
    /// Its group, if it has one.
    pub group: Option<PathBuf>,
    /// Whether it runs.
    pub state: OrphanState,
}

/// Whether an orphan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrphanState {
    /// Nothing keeps it from running.
    Runs,
    /// Its group is frozen.
    Frozen,
    /// One of its processes is stopped, or more.
    Stopped,
}

impl OrphanState {
    /// The word for it.
    pub fn text(self) -> &'static str {
        match self {
            OrphanState::Runs => "runs",
            OrphanState::Frozen => "frozen",
            OrphanState::Stopped => "stopped",
        }
    }

    /// `is_frozen` if a group of the job is frozen.
    fn of(is_frozen: bool, members: &[Process]) -> OrphanState {
        if is_frozen {
            OrphanState::Frozen
        } else if members.iter().any(Process::is_stopped) {
            OrphanState::Stopped
        } else {
            OrphanState::Runs
        }
    }
}

/// Rounds of kills while processes are left.
const KILLS: u32 = 16;
/// Delay between two scans of `/proc` for jobs that end by themselves.
const SCAN_PAUSE: Duration = Duration::from_millis(200);
/// Delay between two checks whether processes have ended.
const POLL_PAUSE: Duration = Duration::from_millis(10);

/// The jobs of dead runs that still have processes, in the order of runs and names: by the runs' lists, their groups,
/// and the variables in the environment of processes.
pub fn orphans(root: &Root) -> Vec<Orphan> {
    orphans_within(root, &Reach::Everywhere)
}

/// As [`orphans`], of the runs that `reach` covers.
pub fn orphans_within(root: &Root, reach: &Reach) -> Vec<Orphan> {
    let look = ProcessScan::new(root);
    without_members(scan(&look, &all_dead_runs(&look, reach)))
}

/// The orphans of these runs.
fn scan(look: &ProcessScan<'_>, dead: &[DeadRun]) -> Vec<FoundOrphan> {
    dead.iter()
        .flat_map(|dead| orphans_of(look, dead))
        .collect()
}

fn without_members(found: Vec<FoundOrphan>) -> Vec<Orphan> {
    found.into_iter().map(|found| found.orphan).collect()
}

/// Waits until the orphans of the runs that `reach` covers have ended by themselves.
pub fn await_orphans(root: &Root, reach: &Reach) {
    while !orphans_within(root, reach).is_empty() {
        std::thread::sleep(SCAN_PAUSE);
    }
}

struct FoundOrphan {
    orphan: Orphan,
    members: Vec<Process>,
}

fn orphans_of(look: &ProcessScan<'_>, dead: &DeadRun) -> Vec<FoundOrphan> {
    let mut jobs: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for member in dead.claim().processes(look) {
        let job = jobs.entry(member.job.unwrap_or_default()).or_default();
        job.push(member.process);
    }
    let groups = dead.group.as_deref().map(job_groups).unwrap_or_default();
    let groups: Vec<(PathBuf, Vec<RawPid>)> = groups
        .into_iter()
        .map(|group| (group.clone(), cgroup::processes(&group)))
        .collect();
    let mut found = Vec::new();
    for (job, members) in jobs {
        let processes: Vec<RawPid> = members.iter().map(|member| member.pid).collect();
        let group = groups
            .iter()
            .find(|(_, its)| processes.iter().any(|pid| its.contains(pid)))
            .map(|(group, _)| group.clone());
        let is_frozen = [&group, &dead.group]
            .into_iter()
            .flatten()
            .any(|group| cgroup::is_frozen(group));
        let orphan = Orphan {
            job,
            run: dead.run.to_string(),
            user: dead.owner,
            has_reaper: members
                .iter()
                .any(|member| reaper::is(look.root, member.pid)),
            processes,
            group,
            state: OrphanState::of(is_frozen, &members),
        };
        found.push(FoundOrphan { orphan, members });
    }
    found
}

/// Ends the orphans of the runs that `reach` covers: sends SIGTERM, and after `grace` kills those that have not ended.
/// Returns those that could be signalled, and those that are left.
pub fn end_orphans(root: &Root, reach: &Reach, grace: Duration) -> (Vec<Orphan>, Vec<Orphan>) {
    let look = ProcessScan::new(root);
    let dead = all_dead_runs(&look, reach);
    let mut asked = scan(&look, &dead);
    asked.retain(|orphan| orphan.terminate(root));
    if !asked.is_empty() {
        await_ends(root, &asked, grace);
    }
    let mut left = scan(&ProcessScan::new(root), &dead);
    for _ in 0..KILLS {
        if left.is_empty() || asked.is_empty() {
            break;
        }
        left.iter().for_each(|orphan| orphan.kill(root));
        await_ends(root, &left, 10 * POLL_PAUSE);
        left = scan(&ProcessScan::new(root), &dead);
    }
    (without_members(asked), without_members(left))
}

impl FoundOrphan {
    /// Says whether any of its processes could be signalled: those of somebody else cannot.
    fn terminate(&self, root: &Root) -> bool {
        let mut signalled = false;
        for member in &self.members {
            signalled |= member.signal(root, Signal::TERM);
            member.signal(root, Signal::CONT);
        }
        signalled
    }

    fn kill(&self, root: &Root) {
        if let Some(group) = &self.orphan.group {
            cgroup::kill(group);
        }
        for member in &self.members {
            member.signal(root, Signal::KILL);
        }
    }

    fn lives(&self, root: &Root) -> bool {
        self.members
            .iter()
            .any(|member| process::lives(root, member.pid, member.start))
    }
}

fn await_ends(root: &Root, orphans: &[FoundOrphan], limit: Duration) {
    let end = Instant::now() + limit;
    while orphans.iter().any(|orphan| orphan.lives(root)) && Instant::now() < end {
        std::thread::sleep(POLL_PAUSE);
    }
}

/// Frees and ends, as [`end_orphans`] does, what a dead child of this process has left that was a run. Nobody may have waited for
/// the child yet: until then its number is its own.
pub fn end_left_by(root: &Root, child: RawPid, grace: Duration) -> (Vec<Orphan>, Vec<Orphan>) {
    let (Some(child), Some(own)) = (Process::read(root, child), RunId::own(root)) else {
        return Default::default();
    };
    let reach = Reach::Runs(vec![own.led_by(&child).to_string()], 0);
    mend(root, &reach);
    let ended = end_orphans(root, &reach, grace);
    // Their groups are empty now.
    mend(root, &reach);
    ended
}
