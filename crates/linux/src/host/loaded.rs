//! A scheduler that was loaded into the kernel, with the jobs that it has.

use super::actuator::Actuator;
use super::kernel::{Clock, KernelScheduler};
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

/// How long after a job was given to the scheduler its processes are given to it again. A process that was in the middle of being
/// made at first has its parent's old policy, and was not to be seen yet.
const AGAIN: [Nanos; 3] = [
    Nanos::from_ms(100),
    Nanos::from_ms(1000),
    Nanos::from_ms(5000),
];

/// After so long without that the guardian may have given the jobs back: a little less than [`HELD`](crate::guardian::HELD).
const GIVEN_BACK: Nanos = Nanos(HELD.as_nanos() as u64 - TENDING.0);

/// The scheduler, and what became of each job under it.
pub(crate) struct Loaded {
    kernel: Box<dyn KernelScheduler>,
    generation: u64,
    /// All CPUs of the run.
    cpus: CpuSet,
    /// Jobs that have shared seats and that the ordinary scheduler has, on these CPUs.
    shared: BTreeMap<TaskId, CpuSet>,
    /// The jobs that it has taken charge of and that have not ended.
    taken: BTreeSet<TaskId>,
    /// Jobs that were given to it a short time ago.
    recent: BTreeMap<TaskId, Recent>,
    /// Residency of ended jobs.
    last: BTreeMap<TaskId, Residency>,
    /// Time of the last `tend`; `None` if it is due at once.
    tended: Option<Nanos>,
    /// Why it must be removed.
    failed: Option<String>,
    /// Switches that nobody has read yet.
    switches: Vec<Switch>,
    notices: Notices,
}

/// A job whose processes are to be given to the scheduler again.
#[derive(Default)]
struct Recent {
    /// When that was first looked at, shortly after it was given.
    since: Option<Nanos>,
    /// How often it was done since.
    again: usize,
}

impl Recent {
    /// When it is to be done next; `None` if it is over.
    fn due(&mut self, now: Nanos) -> Option<Nanos> {
        Some(*self.since.get_or_insert(now) + *AGAIN.get(self.again)?)
    }
}

impl Loaded {
    pub(crate) fn new(kernel: Box<dyn KernelScheduler>, cpus: CpuSet, notices: Notices) -> Loaded {
        Loaded {
            kernel,
            generation: 0,
            cpus,
            shared: BTreeMap::new(),
            taken: BTreeSet::new(),
            recent: BTreeMap::new(),
            last: BTreeMap::new(),
            tended: None,
            failed: None,
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
            let is_shared = self.shared.contains_key(&task);
            if self.taken.contains(&task) && !is_shared {
                actuator.give(life, task, true);
                self.recent.insert(task, Recent::default());
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
        let now = if self.kernel.admits() {
            BTreeMap::new()
        } else {
            masks.clone()
        };
        let live: Vec<TaskId> = life.tasks().collect();
        for task in live.into_iter().filter(|task| self.taken.contains(task)) {
            let was_shared = self.shared.contains_key(&task);
            let is_shared = now.contains_key(&task);
            if is_shared != was_shared {
                actuator.give(life, task, !is_shared);
                self.kernel.set_free(task, is_shared);
                if is_shared {
                    self.recent.remove(&task);
                } else {
                    self.recent.insert(task, Recent::default());
                }
            }
            actuator.bind(life, task, masks.get(&task).unwrap_or(&self.cpus));
            actuator.set_frozen(life, task, false);
        }
        self.shared = now;
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
        if let Some(last) = self.last.get(&task) {
            return Reading::Value(last.clone());
        }
        if self.taken.contains(&task) && !self.shared.contains_key(&task) {
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
        let before = self.tended;
        if before.is_none_or(|before| now >= before + TENDING) {
            let silent = before.map_or(Nanos::ZERO, |before| now - before);
            self.beat(life, now);
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
        }
        let again = self.give_again(life, actuator, now);
        let next = self.tended.unwrap_or(now) + TENDING;
        again.map_or(next, |again| next.min(again))
    }

    /// Tells of processes that have chosen a policy of their own. What they have chosen is left to them.
    fn look_who_left(&mut self, life: &Lifecycle) {
        for (task, processes) in self.kernel.escaped() {
            self.recent.remove(&task);
            // Those that we have given back to the ordinary scheduler have not left by themselves.
            if !self.shared.contains_key(&task) {
                self.notices.tell(Notice::LeftScheduler {
                    job: life.name(task).to_owned(),
                    processes,
                });
            }
        }
    }

    /// Gives those processes of recent jobs to the scheduler that were not to be seen before; when to do so again.
    fn give_again(&mut self, life: &Lifecycle, actuator: &Actuator, now: Nanos) -> Option<Nanos> {
        if self
            .recent
            .values_mut()
            .any(|recent| recent.due(now).is_some_and(|due| now >= due))
        {
            self.look_who_left(life);
        }
        let mut next: Option<Nanos> = None;
        self.recent.retain(|&task, recent| {
            if recent.due(now).is_some_and(|due| now >= due) {
                actuator.give(life, task, true);
                recent.again += 1;
            }
            let due = recent.due(now);
            next = next.into_iter().chain(due).min();
            due.is_some()
        });
        next
    }

    /// Nobody looks after the scheduler until the next time: the run is about to be suspended, or goes on without it.
    pub(crate) fn rest(&mut self, life: &Lifecycle) {
        self.tended = None;
        life.tell_guardian(Beat::Rests);
    }

    pub(crate) fn removed(&mut self) -> Option<String> {
        self.failed.clone().or_else(|| self.kernel.removed())
    }

    pub(crate) fn unload(&mut self) {
        self.kernel.unload();
    }
}
