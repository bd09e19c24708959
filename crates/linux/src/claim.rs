//! Which processes belong to a run, seen from outside of it: by its list, by its groups, by the mark in their
//! environment, and by family. For the guardian, for `cosched thaw` and for the next start.
//!
//! No one of these finds all. A program may clear its environment or leave its session, and the processes of a dead run
//! have lost the parent that knew them.

use crate::cgroup;
use crate::ledger::Record;
use crate::process::{self, JOB_VARIABLE, Process};
use crate::root::Root;
use crate::run_id::{Fate, RunId, marked_run};
use crate::sys::RawPid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is known of a run.
pub(crate) struct Claim<'a> {
    pub(crate) run: RunId,
    pub(crate) record: Option<&'a Record>,
    /// The run's group, if it has one.
    pub(crate) group: Option<&'a Path>,
    /// Only processes of this user are claimed; a list says nothing about those of others.
    pub(crate) owner: Option<u32>,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) process: Process,
    /// The name of its job, where that is known.
    pub(crate) job: Option<String>,
    /// It is in the list, a group or a session of the run, or bears its mark. The others descend from such processes.
    pub(crate) sure: bool,
}

impl Claim<'_> {
    /// The processes of the run's jobs that exist now. What belongs to another run that goes on is not among them.
    pub(crate) fn processes(&self, root: &Root) -> Vec<Claimed> {
        let own = std::process::id() as RawPid;
        let mut all: BTreeMap<RawPid, Process> = BTreeMap::new();
        for process in process::all_pids(root).into_iter().filter_map(|pid| Process::read(root, pid)) {
            if !process.is_dead() && process.pid != own && self.may_claim(root, process.pid) {
                all.insert(process.pid, process);
            }
        }
        let sessions = self.sessions(&all);
        let groups = self.group_members();
        let mut found: BTreeMap<RawPid, Claimed> = BTreeMap::new();
        for process in all.values() {
            let listed = self.listed(process).or_else(|| {
                let (name, since) = sessions.get(&process.session).or_else(|| sessions.get(&process.group))?;
                (process.start >= *since).then(|| name.clone())
            });
            let job = listed.or_else(|| groups.get(&process.pid).cloned()).or_else(|| self.marked(root, process.pid));
            if let Some(job) = job {
                found.insert(process.pid, Claimed { process: *process, job, sure: true });
            }
        }
        self.add_family(root, &all, &mut found);
        found.into_values().collect()
    }

    fn may_claim(&self, root: &Root, pid: RawPid) -> bool {
        // The superuser's list may name anybody's processes: root can start programs as others.
        self.owner.is_none_or(|owner| owner == 0 || users(root, pid).contains(&owner))
    }

    /// The job under which the list has a process.
    fn listed(&self, process: &Process) -> Option<Option<String>> {
        let record = self.record?;
        let jobs = record.jobs.iter().map(|job| (job.task, job.pid, job.start));
        let members = record.members.iter().map(|member| (member.task, member.pid, member.start));
        let (task, ..) = jobs.chain(members).find(|&(_, pid, start)| (pid, start) == (process.pid, process.start))?;
        Some(record.name_of(task).map(str::to_owned))
    }

    /// The sessions of the run, with the job and the start of the first process that is known to have been in it. A
    /// session whose number has been given to another process is not among them.
    fn sessions(&self, all: &BTreeMap<RawPid, Process>) -> BTreeMap<RawPid, (Option<String>, u64)> {
        let mut sessions = BTreeMap::new();
        let Some(record) = self.record else { return sessions };
        let name = |task| record.name_of(task).map(str::to_owned);
        let leads = |pid, start| all.get(&pid).is_none_or(|leader: &Process| leader.start == start);
        for job in record.jobs.iter().filter(|job| leads(job.pid, job.start)) {
            sessions.insert(job.pid, (name(job.task), job.start));
        }
        for member in &record.members {
            // The leader started before the member did; a later process of that number leads another session.
            let same = all.get(&member.session).is_none_or(|leader| leader.start <= member.start);
            let own = member.session != member.pid || leads(member.pid, member.start);
            if same && own && member.session > 1 {
                sessions.entry(member.session).or_insert((name(member.task), member.start));
            }
        }
        sessions
    }

    /// The processes in the run's groups, with their jobs.
    fn group_members(&self) -> BTreeMap<RawPid, Option<String>> {
        let Some(group) = self.group else { return BTreeMap::new() };
        let entries = std::fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
        let mut members = BTreeMap::new();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let job = task_of(&entry.path()).and_then(|task| self.record?.name_of(task)).map(str::to_owned);
            members.extend(cgroup::processes(&entry.path()).into_iter().map(|pid| (pid, job.clone())));
        }
        members
    }

    /// The job whose mark a process bears.
    fn marked(&self, root: &Root, pid: RawPid) -> Option<Option<String>> {
        if marked_run(root, pid) == Some(self.run) {
            return Some(process::variable(root, pid, JOB_VARIABLE));
        }
        let task = process::mark(root, pid).and_then(|mark| self.run.marked_task(mark))?;
        Some(self.record.and_then(|record| record.name_of(task)).map(str::to_owned))
    }

    /// Adds what descends from processes that were found.
    fn add_family(&self, root: &Root, all: &BTreeMap<RawPid, Process>, found: &mut BTreeMap<RawPid, Claimed>) {
        let mut strangers: BTreeSet<RawPid> = BTreeSet::new();
        loop {
            let is_new = |p: &&Process| found.contains_key(&p.parent) && !found.contains_key(&p.pid);
            let new: Vec<Process> =
                all.values().filter(is_new).filter(|p| !strangers.contains(&p.pid)).copied().collect();
            if new.is_empty() {
                return;
            }
            for process in new {
                // A run among the jobs looks after its own jobs, as long as it goes on.
                let other = marked_run(root, process.pid).filter(|run| *run != self.run);
                if other.is_some_and(|run| run.fate(root) != Fate::Dead) {
                    strangers.insert(process.pid);
                    continue;
                }
                let job = found[&process.parent].job.clone();
                found.insert(process.pid, Claimed { process, job, sure: false });
            }
        }
    }
}

/// The number of the job that a group of a run is for.
pub(crate) fn task_of(group: &Path) -> Option<u32> {
    group.file_name()?.to_str()?.strip_prefix("job")?.split('.').next()?.parse().ok()
}

/// The groups of the jobs of a run.
pub(crate) fn job_groups(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run).into_iter().flatten().filter_map(Result::ok);
    let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|dir| task_of(dir).is_some()).collect();
    dirs.sort();
    dirs
}

/// The users that a process runs for: its real and its saved one.
fn users(root: &Root, pid: RawPid) -> Vec<u32> {
    let status = std::fs::read(root.path(&format!("/proc/{pid}/status"))).unwrap_or_default();
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"));
    let all = line.map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
    let all: Vec<u32> = all.split_whitespace().filter_map(|user| user.parse().ok()).collect();
    [all.first(), all.get(2)].into_iter().flatten().copied().collect()
}
