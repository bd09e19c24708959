//! A scheduler loaded into the kernel, with its jobs. After its removal it continues to count for them.

use super::actuator::Actuator;
use super::clock::Clock;
use super::kernel::KernelScheduler;
use super::lifecycle::Lifecycle;
use super::notice::{HostNotice, HostNotices};
use crate::counters::EventReading;
use crate::hold::guardian::Beat;
use crate::hold::jobs::HELD;
use crate::hold::tree::ProcessTree;
use cosched_core::{
    Absence, CpuSet, Demand, Nanos, Occupation, PerCounter, Placement, Reading, Residency,
    Schedule, Seat, Switch, TaskId, Traffic,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Time between two calls of `tend`.
const TENDING: Nanos = Nanos::from_ms(1000);

/// Time without `tend` after which the guardian may have given the jobs back: slightly less than
/// [`HELD`](crate::hold::jobs::HELD).
const GIVEN_BACK: Nanos = Nanos(HELD.as_nanos() as u64 - TENDING.0);

/// The scheduler, and the state of each of its jobs.
pub(crate) struct Loaded {
    kernel: Box<dyn KernelScheduler>,
    generation: u64,
    /// All CPUs of the run.
    cpus: CpuSet,
    /// Jobs with shared seats that run under the ordinary scheduler.
    shared: BTreeSet<TaskId>,
    /// The jobs in its charge that have not ended.
    taken: BTreeSet<TaskId>,
    /// Jobs that were given to it since the last `tend`. That call gives their processes to it again: a process that
    /// was being forked has its parent's old policy, and was still invisible.
    recent: BTreeSet<TaskId>,
    /// Residency of ended jobs.
    last: BTreeMap<TaskId, Residency>,
    /// Time of the last `tend`; `None` if it is due at once.
    tended: Option<Nanos>,
    /// Why it must be removed, if so.
    failed: Option<String>,
    /// Whether it was removed.
    is_retired: bool,
    /// Switches that have not been read yet.
    switches: Vec<Switch>,
    notices: HostNotices,
}

impl Loaded {
    pub(crate) fn new(
        kernel: Box<dyn KernelScheduler>,
        cpus: CpuSet,
        notices: HostNotices,
    ) -> Loaded {
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

    /// Appends the switches since the last call.
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

    /// Whether it counts events of a job.
    pub(crate) fn counts(&self, task: TaskId) -> bool {
        self.kernel.counts() && self.taken.contains(&task)
    }

    /// Its counts for a job; `None` if it does not count the job.
    pub(crate) fn counted(&mut self, task: TaskId) -> Option<PerCounter<Option<EventReading>>> {
        self.counts(task).then(|| self.kernel.counted(task))
    }

    /// Gives it the traffic of the memory domains.
    pub(crate) fn moved(&mut self, at: Nanos, traffic: &[Traffic]) {
        self.kernel.moved(at, traffic);
    }

    pub(crate) fn line(&self) -> BorrowedFd<'_> {
        self.kernel.line()
    }

    /// Takes charge of a job that is about to start. Its process stays with the ordinary scheduler until it has
    /// executed its program: the run waits for that, and the loaded scheduler may delay it.
    pub(crate) fn take(&mut self, task: TaskId, name: &str, tree: &ProcessTree) {
        let handle = tree
            .main
            .handle(tree.root())
            .ok_or(io::ErrorKind::NotFound.into());
        match handle.and_then(|handle| self.kernel.take(task, handle.as_fd())) {
            Ok(()) => drop(self.taken.insert(task)),
            Err(error) => self.notices.tell(HostNotice::NotTaken {
                job: name.to_owned(),
                why: error.to_string(),
            }),
        }
    }

    /// A job has executed its program, or failed to.
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

    /// Frees a job that is being ended: it needs CPUs for that.
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

    /// Prepares an ended job for another start.
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

    /// Applies a plan in force to the started jobs: jobs with a shared seat go to the ordinary scheduler, pinned to
    /// their CPUs, all others to the loaded one. None is stopped.
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

    /// The CPUs that a job is pinned to under a plan: those of a shared seat, otherwise all, since the plan places it.
    pub(crate) fn cpus_of(&self, seat: &Seat) -> CpuSet {
        match &seat.placement {
            Placement::Shared { mask } => mask.clone(),
            Placement::Exclusive { .. } => self.cpus.clone(),
        }
    }

    pub(crate) fn withdraw(&mut self) {
        self.kernel.withdraw();
    }

    /// How a job's time was spent. The time of a job under the ordinary scheduler is not observed.
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

    /// Sends a heartbeat. If the scheduler takes all processes, no ordinary ones can delay the run.
    pub(crate) fn beat(&mut self, life: &Lifecycle, now: Nanos) {
        self.tended = Some(now);
        if !self.kernel.takes_all() {
            life.tell_guardian(Beat::Tends);
        }
    }

    /// Maintains the scheduler if due; returns when to do so again.
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
            // The kernel has room for only some.
            self.kernel.switches(clock, &mut self.switches);
            self.look_who_left(life);
            for task in std::mem::take(&mut self.recent) {
                actuator.give(life, task, true);
            }
        }
        self.tended.unwrap_or(now) + TENDING
    }

    /// Reports processes that have chosen their own policy, and lets them keep it.
    fn look_who_left(&mut self, life: &Lifecycle) {
        for (task, processes) in self.kernel.escaped() {
            self.recent.remove(&task);
            // Jobs that were given back to the ordinary scheduler have not left by themselves.
            if !self.shared.contains(&task) {
                self.notices.tell(HostNotice::LeftScheduler {
                    job: life.name(task).to_owned(),
                    processes,
                });
            }
        }
    }

    /// Stops maintenance until the next `beat`: the run is about to be suspended, or continues without the scheduler.
    pub(crate) fn rest(&mut self, life: &Lifecycle) {
        self.tended = None;
        life.tell_guardian(Beat::Rests);
    }

    /// Why it was removed or must be removed, if so.
    pub(crate) fn removed(&mut self) -> Option<String> {
        self.failed.clone().or_else(|| self.kernel.removed())
    }

    /// Whether it is still loaded.
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
