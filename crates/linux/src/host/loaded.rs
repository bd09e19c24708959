//! A scheduler that was loaded into the kernel, with the jobs that it has. After it was removed it goes on counting for them.

use super::actuator::Actuator;
use super::clock::Clock;
use super::kernel::KernelScheduler;
use super::lifecycle::Lifecycle;
use super::notice::{Notice, Notices};
use crate::counters::Counted;
use crate::guardian::{Beat, HELD};
use crate::tree::Tree;
use cosched_core::{
    Absence, CpuSet, Demand, Nanos, Occupation, PerCounter, Placement, Reading, Residency,
    Schedule, Seat, Switch, TaskId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Time between two calls of `tend`.
const TENDING: Nanos = Nanos::from_ms(1000);

/// After so long without that the guardian may have given the jobs back: a little less than [`HELD`](crate::guardian::HELD).
const GIVEN_BACK: Nanos = Nanos(HELD.as_nanos() as u64 - TENDING.0);

/// The scheduler, and what became of each job under it.
pub(crate) struct Loaded {
    kernel: Box<dyn KernelScheduler>,
    generation: u64,
    /// All CPUs of the run.
    cpus: CpuSet,
    /// Jobs that have shared seats and that the ordinary scheduler has.
    shared: BTreeSet<TaskId>,
    /// The jobs that it has taken charge of and that have not ended.
    taken: BTreeSet<TaskId>,
    /// Jobs that were given to it since the last `tend`. Then their processes are given to it again: one that was in the
    /// middle of being made has its parent's old policy, and was not to be seen yet.
    recent: BTreeSet<TaskId>,
    /// Residency of ended jobs.
    last: BTreeMap<TaskId, Residency>,
    /// Time of the last `tend`; `None` if it is due at once.
    tended: Option<Nanos>,
    /// Why it must be removed.
    failed: Option<String>,
    /// It was removed.
    is_retired: bool,
    /// Switches that nobody has read yet.
    switches: Vec<Switch>,
    notices: Notices,
}

impl Loaded {
    pub(crate) fn new(kernel: Box<dyn KernelScheduler>, cpus: CpuSet, notices: Notices) -> Loaded {
        Loaded {
            kernel,
            generation: 0,
            cpus,
            shared: BTreeSet::new(),
            taken: BTreeSet::new(),
            recent: BTreeSet::new(),
            last: BTreeMap::new(),
            tended: None,
            failed: None,
            is_retired: false,
            switches: Vec::new(),
            notices,
        }
    }

    /// Appends which CPUs went to which jobs since this was last asked.
    pub(crate) fn switches(&mut self, clock: &Clock, out: &mut Vec<Switch>) {
        out.append(&mut self.switches);
        self.kernel.switches(clock, out);
    }

    pub(crate) fn occupation(&mut self) -> Option<Occupation> {
        self.kernel.occupation()
    }

    pub(crate) fn admits(&self) -> bool {
        self.kernel.admits()
    }

    /// The demands that it has measured, in ascending order of the jobs.
    pub(crate) fn demands(&mut self) -> Vec<Demand> {
        self.kernel.demands()
    }

    /// Whether it counts what a job does.
    pub(crate) fn counts(&self, task: TaskId) -> bool {
        self.kernel.counts() && self.taken.contains(&task)
    }

    /// What it has counted for a job; `None` for one that it does not count.
    pub(crate) fn counted(&mut self, task: TaskId) -> Option<PerCounter<Option<Counted>>> {
        self.counts(task).then(|| self.kernel.counted(task))
    }

    pub(crate) fn line(&self) -> BorrowedFd<'_> {
        self.kernel.line()
    }

    /// Takes charge of a job that is about to start. Its process stays with the ordinary scheduler until it has become its
    /// program: the run waits for that, and the loaded scheduler may let it wait.
    pub(crate) fn take(&mut self, task: TaskId, name: &str, tree: &Tree) {
        let handle = tree
            .main
            .handle(tree.root())
            .ok_or(io::ErrorKind::NotFound.into());
        match handle.and_then(|handle| self.kernel.take(task, handle.as_fd())) {
            Ok(()) => drop(self.taken.insert(task)),
            Err(error) => self.notices.tell(Notice::NotTaken {
                job: name.to_owned(),
                why: error.to_string(),
            }),
        }
    }

    /// A job has become its program, or could not.
    pub(crate) fn began(
        &mut self,
        life: &Lifecycle,
        actuator: &Actuator,
        task: TaskId,
        has_begun: bool,
    ) {
        if has_begun {
            let is_shared = self.shared.contains(&task);
            if self.taken.contains(&task) && !is_shared {
                actuator.give(life, task, true);
                self.recent.insert(task);
            }
            self.kernel.set_free(task, is_shared);
        } else {
            self.forget(task);
            self.kernel.ended(task);
            self.taken.remove(&task);
        }
    }

    /// A job is to end: it needs CPUs for that.
    pub(crate) fn release(&mut self, task: TaskId) {
        self.kernel.set_free(task, true);
    }

    pub(crate) fn ended(&mut self, task: TaskId, clock: &Clock) {
        if self.taken.remove(&task) {
            if let Reading::Value(residency) = self.kernel.residency(task, clock) {
                self.last.insert(task, residency);
            }
            self.kernel.ended(task);
        }
        self.shared.remove(&task);
        self.recent.remove(&task);
    }

    /// A job that has ended is going to start again.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.last.remove(&task);
        self.shared.remove(&task);
    }

    /// Puts a plan into force.
    pub(crate) fn adopt(
        &mut self,
        generation: u64,
        schedule: &Schedule,
        clock: &Clock,
    ) -> Result<(), String> {
        if generation <= self.generation {
            return Err(format!(
                "generation {} was adopted already",
                self.generation
            ));
        }
        self.kernel.adopt(generation, schedule, clock)?;
        self.generation = generation;
        Ok(())
    }

    /// Brings the jobs that have begun in line with a plan that is in force: those with a shared seat belong to the ordinary
    /// scheduler, bound to their CPUs, all others to the loaded one. None is stopped.
    pub(crate) fn share_out(
        &mut self,
        schedule: &Schedule,
        life: &Lifecycle,
        actuator: &mut Actuator,
    ) {
        let mut masks = BTreeMap::new();
        for seat in &schedule.seats {
            if let Placement::Shared { mask } = &seat.placement {
                masks.insert(seat.task, mask.clone());
            }
        }
        let live: Vec<TaskId> = life.tasks().collect();
        for task in live.into_iter().filter(|task| self.taken.contains(task)) {
            let is_shared = masks.contains_key(&task) && !self.kernel.admits();
            if is_shared != self.shared.contains(&task) {
                actuator.give(life, task, !is_shared);
                self.kernel.set_free(task, is_shared);
                if is_shared {
                    self.recent.remove(&task);
                } else {
                    self.recent.insert(task);
                }
            }
            actuator.bind(life, task, masks.get(&task).unwrap_or(&self.cpus));
            actuator.set_frozen(life, task, false);
        }
        if self.kernel.admits() {
            masks.clear();
        }
        self.shared = masks.into_keys().collect();
    }

    /// The CPUs that a job is bound to under a plan: those of a shared seat, else all, since the plan says where it runs.
    pub(crate) fn cpus_of(&self, seat: &Seat) -> CpuSet {
        match &seat.placement {
            Placement::Shared { mask } => mask.clone(),
            Placement::Exclusive { .. } => self.cpus.clone(),
        }
    }

    pub(crate) fn withdraw(&mut self) {
        self.kernel.withdraw();
    }

    /// Where the time of a job went. That of a job under the ordinary scheduler is not seen.
    pub(crate) fn residency(&mut self, task: TaskId, clock: &Clock) -> Reading<Residency> {
        if self.is_retired {
            return Reading::Absent(Absence::NotTold);
        }
        if let Some(last) = self.last.get(&task) {
            return Reading::Value(last.clone());
        }
        if self.taken.contains(&task) && !self.shared.contains(&task) {
            return self.kernel.residency(task, clock);
        }
        Reading::Absent(Absence::NotTold)
    }

    /// The run goes on, and says so. Where all processes belong to the scheduler there are no ordinary ones that could hold it up.
    pub(crate) fn beat(&mut self, life: &Lifecycle, now: Nanos) {
        self.tended = Some(now);
        if !self.kernel.takes_all() {
            life.tell_guardian(Beat::Tends);
        }
    }

    /// Looks after the scheduler, if it is time; when to do so again.
    pub(crate) fn tend(
        &mut self,
        life: &Lifecycle,
        actuator: &Actuator,
        now: Nanos,
        clock: &Clock,
    ) -> Nanos {
        let before = self.tended.unwrap_or(now);
        if self.tended.is_none() || now >= before + TENDING {
            self.beat(life, now);
            let silent = now - before;
            if silent > GIVEN_BACK && !self.kernel.takes_all() {
                self.failed = Some(format!(
                    "cosched itself could not go on for {} s, so its jobs were given back to the ordinary scheduler",
                    silent.0 / 1_000_000_000
                ));
                return now;
            }
            self.kernel.tend();
            // The kernel has room for some only.
            self.kernel.switches(clock, &mut self.switches);
            self.look_who_left(life);
            for task in std::mem::take(&mut self.recent) {
                actuator.give(life, task, true);
            }
        }
        self.tended.unwrap_or(now) + TENDING
    }

    /// Tells of processes that have chosen a policy of their own. What they have chosen is left to them.
    fn look_who_left(&mut self, life: &Lifecycle) {
        for (task, processes) in self.kernel.escaped() {
            self.recent.remove(&task);
            // Those that we have given back to the ordinary scheduler have not left by themselves.
            if !self.shared.contains(&task) {
                self.notices.tell(Notice::LeftScheduler {
                    job: life.name(task).to_owned(),
                    processes,
                });
            }
        }
    }

    /// Nobody looks after the scheduler until the next time: the run is about to be suspended, or goes on without it.
    pub(crate) fn rest(&mut self, life: &Lifecycle) {
        self.tended = None;
        life.tell_guardian(Beat::Rests);
    }

    /// Why it was removed or must be, if so.
    pub(crate) fn removed(&mut self) -> Option<String> {
        self.failed.clone().or_else(|| self.kernel.removed())
    }

    /// Whether it was not removed.
    pub(crate) fn is_in_charge(&self) -> bool {
        !self.is_retired
    }

    /// Removes it from the kernel.
    pub(crate) fn retire(&mut self, life: &Lifecycle) {
        self.rest(life);
        self.kernel.unload();
        self.is_retired = true;
    }
}

/// The scheduler, unless there is none or it was removed.
pub(crate) fn in_charge(loaded: &mut Option<Loaded>) -> Option<&mut Loaded> {
    loaded.as_mut().filter(|loaded| loaded.is_in_charge())
}
