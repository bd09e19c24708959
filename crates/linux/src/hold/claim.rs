//! Which processes belong to a run, seen from outside of it: by its list, by its groups, by the variable in their
//! environment, and by family. For the guardian, for `cosched thaw` and for the next start.
//!
//! No one of these finds all. A program may clear its environment or leave its session, and the processes of a dead run
//! have lost the parent that knew them.

use crate::cgroup;
use crate::hold::ledger::{MemberRecord, Record};
use crate::hold::process_scan::ProcessScan;
use crate::process::{Process, ProcessKey};
use crate::run_id::{RunFate, RunId};
use crate::sys::RawPid;
use rustix::process::Signal;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What is known of a run in this PID namespace.
pub(crate) struct RunClaim<'a> {
    pub(crate) run: RunId,
    pub(crate) record: Option<&'a Record>,
    /// The run's group, if it has one.
    pub(crate) group: Option<&'a Path>,
    /// Only processes of this user are claimed; a list says nothing about those of others.
    pub(crate) owner: u32,
    /// The list is the guardian's copy, which only the run can write. It can name processes of other users: a user may
    /// signal all processes in a user namespace of its own, as in a container without root.
    pub(crate) is_own_list: bool,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) process: Process,
    /// The name of its job, where that is known.
    pub(crate) job: Option<String>,
    /// It is in the list, a group or a session of the run, or has its variable. The others descend from such processes.
    pub(crate) sure: bool,
}

impl RunClaim<'_> {
    /// The processes of the run's jobs. What belongs to another run that goes on is not among them.
    pub(crate) fn processes(&self, look: &ProcessScan<'_>) -> Vec<Claimed> {
        let mut collected = Collected {
            claim: self,
            look,
            found: BTreeMap::new(),
        };
        if let Some(record) = self.record {
            collected.enter_listed(record);
        }
        collected.enter_grouped();
        collected.enter_marked();
        collected.enter_family();
        collected.found.into_values().collect()
    }

    fn name_of(&self, task: u32) -> Option<String> {
        Some(self.record?.name_of(task)?.to_owned())
    }

    /// Continues the run's guardian if somebody stopped it: it ends when it has nothing to do any more.
    pub(crate) fn wake_guardian(&self, look: &ProcessScan<'_>) {
        let listed = self.record.and_then(|record| record.guardian);
        if let Some(guardian) = listed.and_then(|guardian| guardian.find(look.root))
            && guardian.is_stopped()
            && self.may_claim(look, guardian.pid)
        {
            guardian.signal(look.root, Signal::CONT);
        }
    }

    /// The superuser's list may name anybody's processes: root can start programs as others.
    fn may_claim(&self, look: &ProcessScan<'_>, pid: RawPid) -> bool {
        self.is_own_list || self.owner == 0 || look.users(pid).contains(&self.owner)
    }
}

/// The processes found for a claim. The first finding determines the job.
struct Collected<'a> {
    claim: &'a RunClaim<'a>,
    look: &'a ProcessScan<'a>,
    found: BTreeMap<RawPid, Claimed>,
}

impl Collected<'_> {
    /// Adds a process that started at `since` or later.
    fn enter(&mut self, pid: RawPid, since: u64, job: Option<String>) {
        if let Some(process) = self.look.process(pid)
            && process.start >= since
            && !self.found.contains_key(&pid)
            && !self.look.is_adopted(pid)
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

    /// Adds what a list names, and what is in the sessions and process groups of that.
    fn enter_listed(&mut self, record: &Record) {
        let look = self.look;
        for (task, ProcessKey { pid, start }) in record.processes() {
            if look.process(pid).is_some_and(|now| now.start == start) {
                self.enter(pid, start, self.claim.name_of(task));
            }
        }
        let sessions = sessions(record, look);
        for process in look.processes() {
            let session = sessions.get(&process.session);
            if let Some(&(task, since)) = session.or_else(|| sessions.get(&process.group)) {
                self.enter(process.pid, since, self.claim.name_of(task));
            }
        }
    }

    /// Adds what is in the run's groups. Groups of another run that goes on are that run's affair.
    fn enter_grouped(&mut self) {
        let root = self.look.root;
        let is_ours = |name: &OsStr| {
            cgroup::run_of(name).is_none_or(|other| other.fate(root) == RunFate::Dead)
        };
        for group in self.claim.group.into_iter().flat_map(cgroup::subgroups) {
            let job = task_of(&group).and_then(|task| self.claim.name_of(task));
            for pid in cgroup::processes_within(&group, is_ours) {
                self.enter(pid, 0, job.clone());
            }
        }
    }

    /// Adds what has the run's variable in its environment. Anybody can give a process that variable, so such a process
    /// must be the owner's, also for the superuser.
    fn enter_marked(&mut self) {
        for (pid, mark) in self.look.marked() {
            if mark.run == self.claim.run && self.look.users(pid).contains(&self.claim.owner) {
                self.enter(pid, 0, mark.job.clone());
            }
        }
    }

    /// Adds what descends from processes that were found.
    fn enter_family(&mut self) {
        loop {
            let before = self.found.len();
            for process in self.look.processes() {
                if let Some(parent) = self.found.get(&process.parent)
                    && !self.found.contains_key(&process.pid)
                    && self.claim.may_claim(self.look, process.pid)
                    && !self.look.is_adopted(process.pid)
                    && !self.is_of_live_run(process.pid)
                {
                    let claimed = Claimed {
                        process: *process,
                        job: parent.job.clone(),
                        sure: false,
                    };
                    self.found.insert(process.pid, claimed);
                }
            }
            if self.found.len() == before {
                return;
            }
        }
    }

    /// Whether a process is of another run that goes on: such a run among the jobs looks after its own jobs.
    fn is_of_live_run(&self, pid: RawPid) -> bool {
        let run = self.look.run_of(pid);
        run.is_some_and(|run| run != self.claim.run && run.fate(self.look.root) != RunFate::Dead)
    }
}

/// The sessions of a run, with the job and the start of the first process that is known to have been in it. A session
/// whose number has been given to another process is not among them.
fn sessions(record: &Record, look: &ProcessScan<'_>) -> HashMap<RawPid, (u32, u64)> {
    let mut sessions = HashMap::new();
    for job in &record.jobs {
        if may_lead(look, job.main) {
            sessions.insert(job.main.pid, (job.task, job.main.start));
        }
    }
    for MemberRecord {
        task,
        process,
        session,
    } in &record.members
    {
        let leader = look.process(*session);
        // The leader started before the member did; a later process of that number leads another session.
        let is_same = leader.is_none_or(|leader| leader.start <= process.start);
        let leads = *session == process.pid;
        if is_same && *session > 1 && (!leads || may_lead(look, *process)) {
            sessions.entry(*session).or_insert((*task, process.start));
        }
    }
    sessions
}

/// Whether a session with this number can be that of the process with this start: no later process has the number.
fn may_lead(look: &ProcessScan<'_>, process: ProcessKey) -> bool {
    let leader = look.process(process.pid);
    leader.is_none_or(|leader| leader.start == process.start)
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
    let mut groups = cgroup::subgroups(run);
    groups.retain(|group| task_of(group).is_some());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::ledger::{Ledger, LedgerHead};
    use crate::root::Root;
    use crate::run_id::tests::{link_namespace, write_stat};

    const RUN: &str = "10-78-500";

    /// A tree whose processes belong to PID namespace 500. No process of the machine has the numbers of those that are
    /// written here.
    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        link_namespace(dir.path(), 500);
        write_stat(dir.path(), 1, 'S', 0);
        let root = Root::new(dir.path());
        (dir, root)
    }

    /// Writes a process of user 7 into the tree, with the variable of a run.
    fn write(
        dir: &Path,
        pid: RawPid,
        parent: RawPid,
        session: RawPid,
        start: u64,
        run: Option<&str>,
    ) -> Process {
        let process = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process).unwrap();
        let stat = format!(
            "{pid} (p) S {parent} {session} {session}{} 1 0 {start} 0",
            " 0".repeat(13)
        );
        std::fs::write(process.join("stat"), stat).unwrap();
        let environ = run.map(|run| format!("COSCHED_RUN={run}\0COSCHED_JOB=job\0"));
        std::fs::write(process.join("environ"), environ.unwrap_or_default()).unwrap();
        std::fs::write(process.join("status"), "Uid:\t7\t7\t7\t7\n").unwrap();
        Process::read(&Root::new(dir), pid).unwrap()
    }

    fn record(root: &Root, run: &str, jobs: &[Process], members: &[Process]) -> Record {
        let head = LedgerHead {
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

    fn claimed(root: &Root, claim: &RunClaim<'_>) -> Vec<RawPid> {
        claim
            .processes(&ProcessScan::new(root))
            .iter()
            .map(|claimed| claimed.process.pid)
            .collect()
    }

    #[test]
    fn jobs_of_a_run_among_the_jobs_that_goes_on_are_its_own() {
        let (dir, root) = tree();
        let (inner, inner_dead) = ("20-80-500", "21-80-500");
        let run = RunId::parse(RUN).unwrap();
        let leader = write(dir.path(), 20, 1, 20, 80, Some(RUN));
        write(dir.path(), 30, 20, 30, 90, Some(inner));
        write(dir.path(), 31, 30, 30, 91, Some(inner));
        write(dir.path(), 32, 20, 32, 92, None);
        let list = record(&root, RUN, &[leader], &[]);
        let mut claim = RunClaim {
            run,
            record: Some(&list),
            group: None,
            owner: 7,
            is_own_list: false,
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
    fn a_process_that_ends_meanwhile_is_of_its_job() {
        let (dir, root) = tree();
        write(dir.path(), 20, 1, 20, 80, Some(RUN));
        let look = ProcessScan::new(&root);
        assert_eq!(look.users(20), [7, 7]);
        std::fs::remove_dir_all(dir.path().join("proc/20")).unwrap();
        let claim = RunClaim {
            run: RunId::parse(RUN).unwrap(),
            record: None,
            group: None,
            owner: 7,
            is_own_list: false,
        };
        let claimed = claim.processes(&look);
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0].job.as_deref(), Some("job"));
    }

    /// The variable that names the run is no secret.
    #[test]
    fn strangers_can_not_join_the_run_of_the_superuser() {
        let (dir, root) = tree();
        let run = RunId::parse(RUN).unwrap();
        let leader = write(dir.path(), 20, 1, 20, 80, Some(RUN));
        let of = |pid: RawPid, user: u32| {
            let status = format!("Uid:\t{user}\t{user}\t{user}\t{user}\n");
            std::fs::write(dir.path().join(format!("proc/{pid}/status")), status).unwrap();
        };
        // Root's job became another user, and one of root's processes is known by its variable alone.
        of(20, 1000);
        write(dir.path(), 30, 1, 30, 90, Some(RUN));
        of(30, 0);
        write(dir.path(), 40, 1, 40, 90, Some(RUN));
        of(40, 1000);
        let list = record(&root, RUN, &[leader], &[]);
        let claim = |owner| RunClaim {
            run,
            record: Some(&list),
            group: None,
            owner,
            is_own_list: false,
        };
        assert_eq!(claimed(&root, &claim(0)), [20, 30]);
        assert_eq!(claimed(&root, &claim(1000)), [20, 40], "their own they may");
    }

    /// Containers without root have processes of other users.
    #[test]
    fn a_guardian_claims_what_its_run_listed_of_other_users() {
        let (dir, root) = tree();
        let leader = write(dir.path(), 20, 1, 20, 80, None);
        write(dir.path(), 30, 20, 30, 90, None);
        write(dir.path(), 40, 1, 40, 90, Some(RUN));
        let list = record(&root, RUN, &[leader], &[]);
        for (is_own_list, expected) in [(false, &[][..]), (true, &[20, 30])] {
            let claim = RunClaim {
                run: RunId::parse(RUN).unwrap(),
                record: Some(&list),
                group: None,
                owner: 8,
                is_own_list,
            };
            assert_eq!(claimed(&root, &claim), expected);
        }
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
        let head = LedgerHead {
            run,
            group: None,
            cpus: "0".parse().unwrap(),
        };
        let ledger = Ledger::begin(&root, &head).unwrap();
        ledger.guardian(&guardian);
        let list = ledger.read();
        let user = rustix::process::geteuid().as_raw();
        let wake = |owner| {
            let claim = RunClaim {
                run,
                record: list.as_ref(),
                group: None,
                owner,
                is_own_list: false,
            };
            claim.wake_guardian(&ProcessScan::new(&real));
        };
        wake(user + 1);
        assert!(stopped(), "a list of somebody else");
        wake(user);
        until(&|| !stopped());
        guardian.signal(&real, Signal::KILL);
        child.wait().unwrap();
    }
}
