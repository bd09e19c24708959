//! Carries out decisions: pins, freezes and thaws jobs.

use super::lifecycle::Lifecycle;
use super::notice::{HostNotice, HostNotices};
use crate::hold::stop::SignalStop;
use crate::hold::tree::ProcessTree;
use crate::process;
use crate::sys::{self, RawPid};
use cosched_core::{CpuSet, Nanos, TaskId};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Number of scans for processes that were forked while their job was pinned.
const BINDS: u32 = 8;
/// Longest wait for the jobs to stop before the run suspends itself, in milliseconds.
const SETTLE_MS: u32 = 100;
/// Delay before retrying a failed thaw.
const BETWEEN_THAWS: Nanos = Nanos::from_ms(20);

/// Controls where and when jobs run.
pub(crate) struct Actuator {
    jobs: BTreeMap<TaskId, ActuatedJob>,
    /// The CPUs of this process, on which a job that is being ended may run.
    home: CpuSet,
    notices: HostNotices,
}

/// One job that has started.
struct ActuatedJob {
    cpus: CpuSet,
    frozen: bool,
    /// Its thaw failed and must be retried.
    owes_thaw: bool,
    by: Freezer,
}

impl ActuatedJob {
    /// Freezes or thaws the job. If its thaw fails, it counts as frozen and owes a thaw.
    fn set_frozen(
        &mut self,
        tree: &ProcessTree,
        frozen: bool,
        stopped_itself: bool,
    ) -> io::Result<()> {
        self.owes_thaw = false;
        if std::mem::replace(&mut self.frozen, frozen) == frozen {
            return Ok(());
        }
        match &mut self.by {
            Freezer::Group => {
                let Some(group) = tree.group() else {
                    return Ok(());
                };
                match group.set_frozen(frozen) {
                    Ok(is_frozen) => self.frozen = is_frozen,
                    Err(error) => {
                        self.owes_thaw = !frozen;
                        self.frozen = true;
                        return Err(error);
                    }
                }
            }
            Freezer::Signals(stop) if frozen => stop.stop(tree),
            Freezer::Signals(stop) => stop.go_on(tree, stopped_itself),
        }
        Ok(())
    }
}

enum Freezer {
    Group,
    Signals(SignalStop),
}

impl Actuator {
    pub(crate) fn new(home: CpuSet, notices: HostNotices) -> Actuator {
        Actuator {
            jobs: BTreeMap::new(),
            home,
            notices,
        }
    }

    fn actuated(&self, task: TaskId) -> Option<&ActuatedJob> {
        self.jobs.get(&task)
    }

    /// Takes charge of a job that is about to start, and pins it.
    pub(crate) fn take(&mut self, task: TaskId, tree: &ProcessTree, cpus: &CpuSet) {
        // If this fails, the job runs where the kernel puts it.
        let _ = sys::set_affinity(tree.main.pid, cpus);
        let by = if tree.group().is_some() {
            Freezer::Group
        } else {
            Freezer::Signals(SignalStop::default())
        };
        self.jobs.insert(
            task,
            ActuatedJob {
                cpus: cpus.clone(),
                frozen: false,
                owes_thaw: false,
                by,
            },
        );
    }

    /// Forgets a job that has ended.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.jobs.remove(&task);
    }

    /// Whether a job is frozen.
    pub(crate) fn is_frozen(&self, task: TaskId) -> bool {
        self.actuated(task).is_some_and(|actuated| actuated.frozen)
    }

    /// The jobs that are not frozen, with their CPUs.
    pub(crate) fn running(&self) -> BTreeMap<TaskId, &CpuSet> {
        let running = self.jobs.iter().filter(|(_, actuated)| !actuated.frozen);
        running
            .map(|(&task, actuated)| (task, &actuated.cpus))
            .collect()
    }

    /// Whether any job is frozen.
    pub(crate) fn holds_any(&self) -> bool {
        self.jobs.values().any(|actuated| actuated.frozen)
    }

    /// Whether a stop signal from cosched keeps a job from running.
    pub(crate) fn has_signalled(&self, task: TaskId) -> bool {
        let actuated = self.actuated(task).filter(|actuated| actuated.frozen);
        actuated.is_some_and(|actuated| matches!(actuated.by, Freezer::Signals(_)))
    }

    /// Freezes or thaws a job; warns when that fails. [`Actuator::thaw_owed`] retries a failed thaw.
    pub(crate) fn set_frozen(&mut self, life: &Lifecycle, task: TaskId, frozen: bool) {
        let Some(tree) = life.tree(task) else { return };
        let Some(actuated) = self.jobs.get_mut(&task) else {
            return;
        };
        let was_owed = actuated.owes_thaw;
        if let Err(error) = actuated.set_frozen(tree, frozen, life.stopped_itself(task))
            && !was_owed
        {
            self.notices.tell(HostNotice::FreezeFailed {
                job: life.name(task).to_owned(),
                why: error.to_string(),
            });
        }
    }

    /// Retries failed thaws; returns the time of the next retry, if any is left.
    pub(crate) fn thaw_owed(&mut self, life: &Lifecycle, now: Nanos) -> Option<Nanos> {
        let owing: Vec<TaskId> = self
            .jobs
            .iter()
            .filter_map(|(&task, actuated)| actuated.owes_thaw.then_some(task))
            .collect();
        for task in owing {
            self.set_frozen(life, task, false);
        }
        self.jobs
            .values()
            .any(|actuated| actuated.owes_thaw)
            .then(|| now + BETWEEN_THAWS)
    }

    /// Rescans jobs that were stopped by signals for processes that escaped; returns whether none did.
    pub(crate) fn look_again(&mut self, life: &Lifecycle) -> bool {
        let mut complete = true;
        for task in life.tasks() {
            if let Some(tree) = life.tree(task)
                && let Some(ActuatedJob {
                    frozen: true,
                    by: Freezer::Signals(stop),
                    ..
                }) = self.jobs.get_mut(&task)
            {
                complete &= stop.look_again(tree);
            }
        }
        complete
    }

    /// Rescans until no process escapes, for a limited time. Called before the run suspends, because it cannot scan
    /// then.
    pub(crate) fn settle(&mut self, life: &mut Lifecycle) {
        for _ in 0..SETTLE_MS {
            life.adopt_orphans();
            if self.look_again(life) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Pins all processes of a job, including those forked meanwhile.
    pub(crate) fn bind(&mut self, life: &Lifecycle, task: TaskId, cpus: &CpuSet) {
        let Some(tree) = life.tree(task) else { return };
        let Some(actuated) = self
            .jobs
            .get_mut(&task)
            .filter(|actuated| actuated.cpus != *cpus)
        else {
            return;
        };
        let mut are_online = true;
        for_processes(tree, |pids| {
            are_online &= process::bind(tree.root(), pids, cpus)
        });
        actuated.cpus = match are_online {
            true => cpus.clone(),
            // It is not there, so the next placement there must not be taken for done.
            false => CpuSet::new(),
        };
    }

    /// Moves all processes of a job to the scheduler loaded into the kernel, or back to the ordinary one.
    pub(crate) fn give(&self, life: &Lifecycle, task: TaskId, loaded: bool) {
        let Some(tree) = life.tree(task) else { return };
        for_processes(tree, |pids| {
            process::for_threads(tree.root(), pids, |tid| give_thread(tid, loaded));
        });
    }

    /// Releases a job: thawed, and on all CPUs.
    pub(crate) fn release(&mut self, life: &Lifecycle, task: TaskId) {
        let home = self.home.clone();
        self.bind(life, task, &home);
        self.set_frozen(life, task, false);
    }
}

/// Moves a thread to the loaded scheduler or back. Does nothing for a thread that is gone. A thread with a real-time
/// policy keeps it.
fn give_thread(tid: RawPid, loaded: bool) {
    if sys::is_ordinary(tid) {
        let _ = sys::set_loaded_scheduler(tid, loaded);
    }
}

/// Applies `act` to all processes of a job, including those forked meanwhile.
fn for_processes(tree: &ProcessTree, mut act: impl FnMut(&[RawPid])) {
    let mut done: Vec<RawPid> = Vec::new();
    for _ in 0..BINDS {
        let mut new: Vec<RawPid> = match tree.group() {
            Some(group) => group.processes(),
            None => tree.members().iter().map(|process| process.pid).collect(),
        };
        new.retain(|pid| !done.contains(pid));
        if new.is_empty() {
            break;
        }
        act(&new);
        done.append(&mut new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::JobGroup;
    use crate::process::Process;
    use crate::root::Root;

    #[test]
    fn a_job_that_can_not_be_thawed_stays_frozen_and_owes_a_thaw() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("job0");
        let file = group.join("cgroup.freeze");
        std::fs::create_dir(&group).unwrap();
        std::fs::write(&file, "0").unwrap();
        let main = Process {
            pid: 1,
            state: 'S',
            parent: 0,
            group: 1,
            session: 1,
            threads: 1,
            start: 0,
        };
        let tree = ProcessTree::new(Root::new(dir.path()), main, Some(JobGroup::at(&group)));
        let mut actuated = ActuatedJob {
            cpus: CpuSet::default(),
            frozen: false,
            owes_thaw: false,
            by: Freezer::Group,
        };
        actuated.set_frozen(&tree, true, false).unwrap();
        // A folder in its place cannot be written to.
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        for _ in 0..2 {
            assert!(actuated.set_frozen(&tree, false, false).is_err());
            assert!(actuated.frozen && actuated.owes_thaw);
        }
        actuated.set_frozen(&tree, true, false).unwrap();
        assert!(
            actuated.frozen && !actuated.owes_thaw,
            "it is to be frozen again, and is"
        );
        assert!(actuated.set_frozen(&tree, false, false).is_err());
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, "1").unwrap();
        actuated.set_frozen(&tree, false, false).unwrap();
        assert!(!actuated.frozen && !actuated.owes_thaw);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
        actuated.set_frozen(&tree, true, false).unwrap();
        std::fs::remove_dir_all(&group).unwrap();
        actuated.set_frozen(&tree, false, false).unwrap();
        assert!(
            !actuated.frozen && !actuated.owes_thaw,
            "nothing is left to thaw"
        );
    }
}
