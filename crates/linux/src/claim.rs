//! Which processes belong to a run, seen from outside of it: by its list, by its groups, by the mark in their
//! environment, and by family. For the guardian, for `cosched thaw` and for the next start.
//!
//! No one of these finds all. A program may clear its environment or leave its session, and the processes of a dead run
//! have lost the parent that knew them.

use crate::cgroup;
use crate::ledger::Record;
use crate::look::Look;
use crate::process::{self, JOB_VARIABLE, Process};
use crate::root::Root;
use crate::run_id::{Fate, RunId};
use crate::sys::RawPid;
use rustix::process::Signal;
use std::collections::{BTreeMap, VecDeque};
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
        self.processes_in(root, &Look::new(root))
    }

    /// As [`Claim::processes`], of the processes that were seen in one look.
    pub(crate) fn processes_in(&self, root: &Root, look: &Look<'_>) -> Vec<Claimed> {
        let mut found = Collected {
            claim: self,
            look,
            found: BTreeMap::new(),
        };
        if let Some(record) = self.numbers() {
            found.enter_listed(record);
        }
        for (pid, task) in self.group_members(look) {
            found.enter(pid, 0, task.and_then(|task| self.name_of(task)));
        }
        for &pid in look.of_run(&self.run) {
            if self.is_theirs(look, pid) {
                found.enter(pid, 0, process::variable(root, pid, JOB_VARIABLE));
            }
        }
        for (pid, task) in look.marked(&self.run) {
            if self.is_theirs(look, pid) {
                found.enter(pid, 0, self.name_of(task));
            }
        }
        let mut found = found.found;
        self.add_family(look, &mut found);
        found.into_values().collect()
    }

    fn name_of(&self, task: u32) -> Option<String> {
        Some(self.record?.name_of(task)?.to_owned())
    }

    /// Whether a marked process is the owner's. Anybody can give a process such a mark, so this holds for the superuser's
    /// runs too.
    fn is_theirs(&self, look: &Look<'_>, pid: RawPid) -> bool {
        self.owner
            .is_none_or(|owner| look.users(pid).contains(&owner))
    }

    /// The list, as far as its numbers mean anything here.
    fn numbers(&self) -> Option<&Record> {
        self.record.filter(|_| self.is_here)
    }

    /// Continues the run's guardian if somebody stopped it: it ends when it has nothing to do any more.
    pub(crate) fn wake_guardian(&self, root: &Root) {
        let listed = self.numbers().and_then(|record| record.guardian);
        let guardian = listed
            .and_then(|(pid, start)| Process::find(root, pid, start))
            .filter(Process::is_stopped);
        if let Some(guardian) = guardian
            && self.is_of_owner(|| process::users(root, guardian.pid))
        {
            guardian.signal(root, Signal::CONT);
        }
    }

    fn may_claim(&self, look: &Look<'_>, pid: RawPid) -> bool {
        self.is_of_owner(|| look.users(pid))
    }

    fn is_of_owner(&self, users: impl FnOnce() -> Vec<u32>) -> bool {
        // The superuser's list may name anybody's processes: root can start programs as others.
        self.owner
            .is_none_or(|owner| owner == 0 || users().contains(&owner))
    }

    /// The processes in the run's groups, with their jobs. Groups of another run that goes on are that run's affair.
    fn group_members(&self, look: &Look<'_>) -> BTreeMap<RawPid, Option<u32>> {
        let Some(group) = self.group else {
            return BTreeMap::new();
        };
        let enters =
            |name: &OsStr| cgroup::run_of(name).is_none_or(|run| look.fates.of(&run) == Fate::Dead);
        let entries = std::fs::read_dir(group)
            .into_iter()
            .flatten()
            .filter_map(Result::ok);
        let mut members = BTreeMap::new();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let task = task_of(&entry.path());
            members.extend(
                cgroup::processes_within(&entry.path(), enters)
                    .into_iter()
                    .map(|pid| (pid, task)),
            );
        }
        members
    }

    /// Adds what descends from processes that were found.
    fn add_family(&self, look: &Look<'_>, found: &mut BTreeMap<RawPid, Claimed>) {
        let mut todo: VecDeque<RawPid> = found.keys().copied().collect();
        while let Some(parent) = todo.pop_front() {
            for process in look
                .children(parent)
                .iter()
                .filter_map(|&pid| look.process(pid))
            {
                if found.contains_key(&process.pid) || !self.may_claim(look, process.pid) {
                    continue;
                }
                // A run among the jobs looks after its own jobs, as long as it goes on.
                let other = look.run_of(process.pid).filter(|run| *run != self.run);
                let goes_on = other.is_some_and(|run| look.fates.of(&run) != Fate::Dead);
                if goes_on || self.is_job_of(look, &found[&parent].process, process.pid) {
                    continue;
                }
                let job = found[&parent].job.clone();
                found.insert(
                    process.pid,
                    Claimed {
                        process: *process,
                        job,
                        sure: false,
                    },
                );
                todo.push_back(process.pid);
            }
        }
    }

    /// Whether a process leads a run, and another is of a job of that run. The mark tells it where the job has cleared its
    /// environment.
    fn is_job_of(&self, look: &Look<'_>, leader: &Process, pid: RawPid) -> bool {
        let run = self.run.led_by(leader);
        run != self.run
            && look
                .mark(pid)
                .is_some_and(|mark| run.marked_task(mark).is_some())
    }
}

/// The processes of a claim, as they are found. The first finding tells the job.
struct Collected<'a> {
    claim: &'a Claim<'a>,
    look: &'a Look<'a>,
    found: BTreeMap<RawPid, Claimed>,
}

impl Collected<'_> {
    /// Adds a process that started at `since` or later.
    fn enter(&mut self, pid: RawPid, since: u64, job: Option<String>) {
        if let Some(process) = self.look.process(pid)
            && process.start >= since
            && !self.found.contains_key(&pid)
            && self.claim.may_claim(self.look, pid)
        {
            let claimed = Claimed {
                process: *process,
                job,
                sure: true,
            };
            self.found.insert(pid, claimed);
        }
    }

    /// Adds what a list names, and what is in the sessions and groups of that.
    fn enter_listed(&mut self, record: &Record) {
        let look = self.look;
        for (task, pid, start) in record.processes() {
            if look.process(pid).is_some_and(|now| now.start == start) {
                self.enter(pid, start, self.claim.name_of(task));
            }
        }
        let sessions = sessions(record, look);
        for (&session, &(task, since)) in &sessions {
            for &pid in look.in_session(session) {
                self.enter(pid, since, self.claim.name_of(task));
            }
        }
        for (&group, &(task, since)) in &sessions {
            for &pid in look.in_group(group) {
                let session = look.process(pid).map(|process| process.session);
                if session.is_some_and(|session| !sessions.contains_key(&session)) {
                    self.enter(pid, since, self.claim.name_of(task));
                }
            }
        }
    }
}

/// The sessions of a run in which there is a process, with the job and the start of the first process that is known to have
/// been in it. A session whose number has been given to another process is not among them.
fn sessions(record: &Record, look: &Look<'_>) -> BTreeMap<RawPid, (u32, u64)> {
    let mut sessions = BTreeMap::new();
    let is_there =
        |session| !look.in_session(session).is_empty() || !look.in_group(session).is_empty();
    let leads = |pid, start| look.process(pid).is_none_or(|leader| leader.start == start);
    for job in record
        .jobs
        .iter()
        .filter(|job| is_there(job.pid) && leads(job.pid, job.start))
    {
        sessions.insert(job.pid, (job.task, job.start));
    }
    for member in record
        .members
        .iter()
        .filter(|member| is_there(member.session))
    {
        // The leader started before the member did; a later process of that number leads another session.
        let same = look
            .process(member.session)
            .is_none_or(|leader| leader.start <= member.start);
        let own = member.session != member.pid || leads(member.pid, member.start);
        if same && own && member.session > 1 {
            sessions
                .entry(member.session)
                .or_insert((member.task, member.start));
        }
    }
    sessions
}

/// The number of the job that a group of a run is for.
pub(crate) fn task_of(group: &Path) -> Option<u32> {
    group
        .file_name()?
        .to_str()?
        .strip_prefix("job")?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// The groups of the jobs of a run.
pub(crate) fn job_groups(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut dirs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|dir| task_of(dir).is_some())
        .collect();
    dirs.sort();
    dirs
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

    /// Writes a process into the tree, with the mark of a job of a run.
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
        let stat = format!(
            "{pid} (p) S {parent} {session} {session}{} 1 0 {start} 0",
            " 0".repeat(13)
        );
        std::fs::write(process.join("stat"), stat).unwrap();
        let mark = mark
            .map(|(run, task)| RunId::parse(run).unwrap().mark(task))
            .unwrap_or(1);
        std::fs::write(
            process.join("limits"),
            format!("Max realtime timeout  {mark}  unlimited  us\n"),
        )
        .unwrap();
        Process::read(&Root::new(dir), pid).unwrap()
    }

    fn record(root: &Root, run: &str, jobs: &[Process], members: &[Process]) -> Record {
        let head = Head {
            run: RunId::parse(run).unwrap(),
            group: None,
            cpus: "0".parse().unwrap(),
        };
        let ledger = Ledger::begin(root, &head).unwrap();
        for (task, job) in (0..).zip(jobs) {
            ledger.job(task, "job", job).unwrap();
        }
        members.iter().for_each(|member| ledger.member(0, member));
        ledger.read().unwrap()
    }

    fn claimed(root: &Root, claim: &Claim<'_>) -> Vec<RawPid> {
        claim
            .processes(root)
            .iter()
            .map(|claimed| claimed.process.pid)
            .collect()
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
        let mut claim = Claim {
            run,
            record: Some(&list),
            is_here: true,
            group: None,
            owner: None,
        };
        assert_eq!(
            claimed(&root, &claim),
            [20, 32],
            "what is not of its jobs is of the job that it is"
        );
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
        assert_eq!(
            claimed(&root, &claim),
            [20, 32, 33],
            "those of a dead one are free for all"
        );
    }

    #[test]
    fn numbers_of_another_namespace_are_not_used() {
        let (dir, root) = tree();
        // Here a login session has the number of the session of a job there.
        let shell = write(dir.path(), 7, 1, 7, 50, None);
        let member = Process {
            pid: 40,
            start: 60,
            ..shell
        };
        write(dir.path(), 41, 7, 7, 70, None);
        write(dir.path(), 42, 1, 42, 70, Some(("10-78-600", 0)));
        for (run, expected) in [(RUN, &[7, 41][..]), ("10-78-600", &[42])] {
            let list = record(&root, run, &[shell], &[member]);
            let run = RunId::parse(run).unwrap();
            let claim = Claim {
                run,
                record: Some(&list),
                is_here: run.is_here(&root),
                group: None,
                owner: None,
            };
            assert_eq!(claimed(&root, &claim), expected, "{run}");
        }
    }

    /// Its mark and the variable that names the run are no secrets.
    #[test]
    fn strangers_can_not_join_the_run_of_the_superuser() {
        let (dir, root) = tree();
        let run = RunId::parse(RUN).unwrap();
        let leader = write(dir.path(), 20, 1, 20, 80, Some((RUN, 0)));
        let of = |pid: RawPid, user: u32| {
            let status = format!("Uid:\t{user}\t{user}\t{user}\t{user}\n");
            std::fs::write(dir.path().join(format!("proc/{pid}/status")), status).unwrap();
        };
        // Root's job became another user, and one of root's processes is known by its mark alone.
        of(20, 1000);
        write(dir.path(), 30, 1, 30, 90, Some((RUN, 0)));
        of(30, 0);
        for pid in [40, 41] {
            write(dir.path(), pid, 1, pid, 90, (pid == 40).then_some((RUN, 0)));
            of(pid, 1000);
        }
        std::fs::write(
            dir.path().join("proc/41/environ"),
            format!("COSCHED_RUN={RUN}\0COSCHED_JOB=job\0"),
        )
        .unwrap();
        let list = record(&root, RUN, &[leader], &[]);
        let claim = |owner| Claim {
            run,
            record: Some(&list),
            is_here: true,
            group: None,
            owner,
        };
        assert_eq!(claimed(&root, &claim(Some(0))), [20, 30]);
        assert_eq!(
            claimed(&root, &claim(Some(1000))),
            [20, 40, 41],
            "their own they may"
        );
    }

    #[test]
    fn a_guardian_is_woken_only_if_it_is_of_the_owner_of_the_list() {
        let real = Root::default();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
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
        let head = Head {
            run,
            group: None,
            cpus: "0".parse().unwrap(),
        };
        let ledger = Ledger::begin(&root, &head).unwrap();
        ledger.guardian(&guardian);
        let list = ledger.read();
        let user = rustix::process::geteuid().as_raw();
        let wake = |owner, is_here| {
            Claim {
                run,
                record: list.as_ref(),
                is_here,
                group: None,
                owner: Some(owner),
            }
            .wake_guardian(&real);
        };
        wake(user + 1, true);
        wake(user, false);
        assert!(
            stopped(),
            "a list of somebody else, and one whose numbers mean nothing here"
        );
        wake(user, true);
        until(&|| !stopped());
        guardian.signal(&real, Signal::KILL);
        child.wait().unwrap();
    }
}
