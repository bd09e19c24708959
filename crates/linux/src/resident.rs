//! The processes of the jobs of a run, for other processes: their memory, and whether they are frozen. The run itself
//! has no cost.

use crate::cgroup;
use crate::hold::claim::{job_groups, task_of};
use crate::hold::ledger::{self, RUNS};
use crate::process::{self, Process, ProcessKey};
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::RawPid;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// The processes of a run's jobs, by job number.
#[derive(Debug)]
pub struct Residents {
    root: Root,
    run: RunId,
    processes: HashMap<u32, Vec<ProcessKey>>,
    groups: HashMap<u32, PathBuf>,
}

impl Residents {
    /// Finds the processes of the jobs of a run.
    ///
    /// # Errors
    /// Why they cannot be found, in words.
    pub fn of(root: &Root, run: &str) -> Result<Residents, &'static str> {
        let run = RunId::parse(run).ok_or("the run has no identity")?;
        if !run.is_here(root) {
            return Err("its processes are in another PID namespace");
        }
        let found = ledger::found(root, RUNS, |other| *other == run).pop();
        let record = found.ok_or("there is no list of its processes")?.record;
        let mut processes: HashMap<u32, Vec<ProcessKey>> = HashMap::new();
        for (task, process) in record.processes() {
            processes.entry(task).or_default().push(process);
        }
        let group = record
            .head
            .group
            .filter(|group| cgroup::is_group_of(root, group, &run));
        let groups = group.as_deref().map(job_groups).unwrap_or_default();
        let groups = groups
            .into_iter()
            .filter_map(|group| Some((task_of(&group)?, group)))
            .collect();
        Ok(Residents {
            root: root.clone(),
            run,
            processes,
            groups,
        })
    }

    /// Whether the run itself is stopped, as by Ctrl-Z.
    pub fn is_run_stopped(&self) -> bool {
        let run = Process::find(&self.root, self.run.pid, self.run.start);
        run.is_some_and(|process| process.is_stopped())
    }

    /// Whether a job is frozen.
    pub fn is_frozen(&self, job: u32) -> bool {
        let mut listed = self.processes.get(&job).into_iter().flatten();
        self.groups
            .get(&job)
            .is_some_and(|group| cgroup::is_frozen(group))
            || listed.any(|process| {
                let now = process.find(&self.root);
                now.is_some_and(|now| now.is_stopped())
            })
    }

    /// Resident memory of a job in bytes: the sum over its processes. Memory shared between processes counts for each.
    ///
    /// # Errors
    /// Why it is unknown, in words.
    pub fn job(&self, job: u32) -> Result<u64, &'static str> {
        let mut seen: HashSet<RawPid> = HashSet::new();
        let listed = self.processes.get(&job).into_iter().flatten();
        for listed in listed.filter(|listed| listed.find(&self.root).is_some()) {
            let family = process::descendants(&self.root, listed.pid);
            seen.extend(family.iter().map(|process| process.pid));
        }
        if let Some(group) = self.groups.get(&job) {
            seen.extend(cgroup::processes_within(group, |_| true));
        }
        let held = seen
            .into_iter()
            .filter_map(|pid| process::resident(&self.root, pid));
        held.reduce(u64::saturating_add)
            .ok_or("it has no process that can be seen")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::ledger::{Ledger, LedgerHead};
    use crate::run_id::tests::{link_namespace, write_stat};

    #[test]
    fn memory_is_that_of_all_processes_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("proc/sys/kernel/random")).unwrap();
        std::fs::write(at("proc/sys/kernel/random/boot_id"), "one\n").unwrap();
        std::fs::create_dir(at("tmp")).unwrap();
        link_namespace(dir.path(), 5);
        let root = Root::new(dir.path());
        let run = RunId::parse("10-1-5").unwrap();
        assert_eq!(
            Residents::of(&root, "10-1-5").unwrap_err(),
            "there is no list of its processes"
        );
        let ledger = Ledger::begin(
            &root,
            &LedgerHead {
                run,
                group: None,
                cpus: "0".parse().unwrap(),
            },
        )
        .unwrap();
        let process = |pid: RawPid| Process {
            pid,
            state: 'S',
            parent: 1,
            group: pid,
            session: pid,
            threads: 1,
            start: 70 + pid as u64,
        };
        let make = |pid: RawPid, start: u64, pages: u64, children: &str| {
            write_stat(dir.path(), pid, 'S', start);
            let task = at(&format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("children"), children).unwrap();
            std::fs::write(
                at(&format!("proc/{pid}/statm")),
                format!("999 {pages} 1 1 0 1 0\n"),
            )
            .unwrap();
        };
        make(20, 90, 3, "21 ");
        make(21, 91, 4, "");
        make(22, 92, 5, "");
        make(23, 99, 6, "");
        ledger.job(0, "a", &process(20)).unwrap();
        ledger.member(0, &process(21));
        ledger.member(0, &process(22));
        ledger.job(1, "b", &process(23)).unwrap();
        let residents = Residents::of(&root, "10-1-5").unwrap();
        assert_eq!(
            residents.job(0),
            Ok(12 * rustix::param::page_size() as u64),
            "each process once"
        );
        assert!(
            residents.job(1).is_err(),
            "another process has that number now"
        );
        assert!(residents.job(2).is_err());
        assert!(Residents::of(&root, "10-1-6").is_err() && Residents::of(&root, "x").is_err());
    }
}
