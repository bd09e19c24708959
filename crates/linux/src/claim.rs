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
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What is known of a run.
pub(crate) struct Claim<'a> {
    pub(crate) run: RunId,
    pub(crate) record: Option<&'a Record>,
    /// Whether the numbers in the list are those of processes that are seen here. They are not where the run was in
    /// another PID namespace; then the list only tells the names of jobs.
    pub(crate) is_here: bool,
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
        let groups = self.group_members(root);
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

    /// The list, as far as its numbers mean anything here.
    fn numbers(&self) -> Option<&Record> {
        self.record.filter(|_| self.is_here)
    }

    /// Continues the run's guardian if somebody stopped it: it ends when it has nothing to do any more.
    pub(crate) fn wake_guardian(&self, root: &Root) {
        let listed = self.numbers().and_then(|record| record.guardian);
        let guardian = listed.and_then(|(pid, start)| Process::find(root, pid, start)).filter(Process::is_stopped);
        if let Some(guardian) = guardian.filter(|guardian| self.may_claim(root, guardian.pid)) {
            guardian.signal(root, Signal::CONT);
        }
    }

    fn may_claim(&self, root: &Root, pid: RawPid) -> bool {
        // The superuser's list may name anybody's processes: root can start programs as others.
        self.owner.is_none_or(|owner| owner == 0 || users(root, pid).contains(&owner))
    }

    /// The job under which the list has a process.
    fn listed(&self, process: &Process) -> Option<Option<String>> {
        let record = self.numbers()?;
        let jobs = record.jobs.iter().map(|job| (job.task, job.pid, job.start));
        let members = record.members.iter().map(|member| (member.task, member.pid, member.start));
        let (task, ..) = jobs.chain(members).find(|&(_, pid, start)| (pid, start) == (process.pid, process.start))?;
        Some(record.name_of(task).map(str::to_owned))
    }

    /// The sessions of the run, with the job and the start of the first process that is known to have been in it. A
    /// session whose number has been given to another process is not among them.
    fn sessions(&self, all: &BTreeMap<RawPid, Process>) -> BTreeMap<RawPid, (Option<String>, u64)> {
        let mut sessions = BTreeMap::new();
        let Some(record) = self.numbers() else { return sessions };
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

    /// The processes in the run's groups, with their jobs. Groups of another run that goes on are that run's affair.
    fn group_members(&self, root: &Root) -> BTreeMap<RawPid, Option<String>> {
        let Some(group) = self.group else { return BTreeMap::new() };
        let enters = |name: &OsStr| cgroup::run_of(name).is_none_or(|run| run.fate(root) == Fate::Dead);
        let entries = std::fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
        let mut members = BTreeMap::new();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let job = task_of(&entry.path()).and_then(|task| self.record?.name_of(task)).map(str::to_owned);
            members.extend(cgroup::processes_within(&entry.path(), enters).into_iter().map(|pid| (pid, job.clone())));
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
                let goes_on = other.is_some_and(|run| run.fate(root) != Fate::Dead);
                if goes_on || self.is_job_of(root, &all[&process.parent], process.pid) {
                    strangers.insert(process.pid);
                    continue;
                }
                let job = found[&process.parent].job.clone();
                found.insert(process.pid, Claimed { process, job, sure: false });
            }
        }
    }

    /// Whether a process leads a run, and another is of a job of that run. The mark tells it where the job has cleared its
    /// environment.
    fn is_job_of(&self, root: &Root, leader: &Process, pid: RawPid) -> bool {
        let run = self.run.led_by(leader);
        run != self.run && process::mark(root, pid).is_some_and(|mark| run.marked_task(mark).is_some())
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
pub(crate) fn users(root: &Root, pid: RawPid) -> Vec<u32> {
    let status = std::fs::read(root.path(&format!("/proc/{pid}/status"))).unwrap_or_default();
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"));
    let all = line.map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
    let all: Vec<u32> = all.split_whitespace().filter_map(|user| user.parse().ok()).collect();
    [all.first(), all.get(2)].into_iter().flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Head, Ledger};
    use crate::run_id::tests::{link_namespace, write_stat};

    const RUN: &str = "10-78-500";

    /// A tree whose processes belong to PID namespace 500. No process of the machine has the numbers of those that are
    /// written here.
    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        link_namespace(dir.path(), "self", 500);
        write_stat(dir.path(), 1, 'S', 0);
        let root = Root::new(dir.path());
        (dir, root)
    }

    /// Writes a process of this session, with the mark of a job of a run.
    fn write(
        dir: &Path,
        pid: RawPid,
        parent: RawPid,
        session: RawPid,
        start: u64,
        mark: Option<(&str, u32)>,
    ) -> Process {
        let process = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process).unwrap();
        let stat = format!("{pid} (p) S {parent} {session} {session}{} 1 0 {start} 0", " 0".repeat(13));
        std::fs::write(process.join("stat"), stat).unwrap();
        let mark = mark.map(|(run, task)| RunId::parse(run).unwrap().mark(task)).unwrap_or(1);
        std::fs::write(process.join("limits"), format!("Max realtime timeout  {mark}  unlimited  us\n")).unwrap();
        Process::read(&Root::new(dir), pid).unwrap()
    }

    fn record(root: &Root, run: &str, jobs: &[Process], members: &[Process]) -> Record {
        let head = Head { run: RunId::parse(run).unwrap(), group: None, cpus: "0".parse().unwrap() };
        let ledger = Ledger::begin(root, &head).unwrap();
        for (task, job) in (0..).zip(jobs) {
            ledger.job(task, "job", job).unwrap();
        }
        members.iter().for_each(|member| ledger.member(0, member));
        ledger.read().unwrap()
    }

    fn claimed(root: &Root, claim: &Claim<'_>) -> Vec<RawPid> {
        claim.processes(root).iter().map(|claimed| claimed.process.pid).collect()
    }

    #[test]
    fn jobs_of_a_run_among_the_jobs_that_goes_on_are_its_own() {
        let (dir, root) = tree();
        let (inner, inner_dead) = ("20-80-500", "21-80-500");
        let run = RunId::parse(RUN).unwrap();
        let leader = write(dir.path(), 20, 1, 20, 80, Some((RUN, 0)));
        // Only its mark tells whose it is.
        write(dir.path(), 30, 20, 30, 90, Some((inner, 0)));
        write(dir.path(), 31, 30, 30, 91, Some((inner, 0)));
        write(dir.path(), 32, 20, 32, 92, None);
        let list = record(&root, RUN, &[leader], &[]);
        let mut claim = Claim { run, record: Some(&list), is_here: true, group: None, owner: None };
        assert_eq!(claimed(&root, &claim), [20, 32], "what is not of its jobs is of the job that it is");
        // The same in groups.
        let group = dir.path().join(format!("groups/cosched-{RUN}"));
        for (path, pid) in [
            ("job0".to_owned(), 20),
            (format!("job0/cosched-{inner}/job0"), 30),
            (format!("job0/cosched-{inner}/job0/own"), 31),
            (format!("job0/cosched-{inner_dead}/job0"), 33),
        ] {
            std::fs::create_dir_all(group.join(&path)).unwrap();
            std::fs::write(group.join(path).join("cgroup.procs"), format!("{pid}\n")).unwrap();
        }
        write(dir.path(), 33, 1, 33, 93, None);
        claim.group = Some(&group);
        assert_eq!(claimed(&root, &claim), [20, 32, 33], "those of a dead one are free for all");
    }

    #[test]
    fn numbers_of_another_namespace_are_not_used() {
        let (dir, root) = tree();
        // Here a login session has the number of the session of a job there.
        let shell = write(dir.path(), 7, 1, 7, 50, None);
        let member = Process { pid: 40, start: 60, ..shell };
        write(dir.path(), 41, 7, 7, 70, None);
        write(dir.path(), 42, 1, 42, 70, Some(("10-78-600", 0)));
        for (run, expected) in [(RUN, &[7, 41][..]), ("10-78-600", &[42])] {
            let list = record(&root, run, &[shell], &[member]);
            let run = RunId::parse(run).unwrap();
            let claim = Claim { run, record: Some(&list), is_here: run.is_here(&root), group: None, owner: None };
            assert_eq!(claimed(&root, &claim), expected, "{run}");
        }
    }

    #[test]
    fn a_guardian_is_woken_only_if_it_is_of_the_owner_of_the_list() {
        let real = Root::default();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let guardian = Process::read(&real, child.id() as RawPid).unwrap();
        let stopped = || Process::read(&real, guardian.pid).unwrap().is_stopped();
        let until = |holds: &dyn Fn() -> bool| {
            while !holds() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        };
        assert!(guardian.signal(&real, Signal::STOP));
        until(&stopped);
        let (_dir, root) = tree();
        let run = RunId::parse(RUN).unwrap();
        let head = Head { run, group: None, cpus: "0".parse().unwrap() };
        let ledger = Ledger::begin(&root, &head).unwrap();
        ledger.guardian(&guardian);
        let list = ledger.read();
        let user = rustix::process::geteuid().as_raw();
        let wake = |owner, is_here| {
            Claim { run, record: list.as_ref(), is_here, group: None, owner: Some(owner) }.wake_guardian(&real);
        };
        wake(user + 1, true);
        wake(user, false);
        assert!(stopped(), "a list of somebody else, and one whose numbers mean nothing here");
        wake(user, true);
        until(&|| !stopped());
        guardian.signal(&real, Signal::KILL);
        child.wait().unwrap();
    }
}
