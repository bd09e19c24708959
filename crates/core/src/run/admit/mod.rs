//! Who may begin now, and why each of the others waits.
//!
//! A task that has come waits in the [queue](AdmissionQueue). The loop asks [`Admission`] once a turn who may begin, and says
//! with the question what only the loop knows ([`AdmissionInput`]). Between two questions it reports what happens: tasks
//! come, start, end, are lost. Four things decide:
//!
//! - the order, by which [`next`] finds the next task: [`order`] for a batch, [`response`] where tasks arrive over time;
//! - who may come before longer ones: [`overtaking`], and [`beside`] for who fits best beside the running ones;
//! - the number at once and the delay: [`limits`], with the number that [`at_once`] learns;
//! - the backend, which knows free memory and other runs.
//!
//! What speaks against a task is an [`AdmissionHold`](hold::AdmissionHold).

mod at_once;
mod beside;
mod hold;
mod limits;
mod next;
mod order;
mod overtaking;
mod queue;
mod response;
#[cfg(test)]
mod tests;

use super::backend::MayStart;
use super::config::RunConfig;
use super::fact::{Fact, Warning};
use super::result::EndedBy;
use super::task_record::TaskRecord;
use crate::by_task::ByTask;
use crate::decision::WaitReason;
use crate::rng::Rng;
use crate::task::{TaskId, TaskSpec};
use crate::topology::Machine;
use crate::units::Nanos;
use at_once::AtOnceLearner;
pub use at_once::{AtOnceState, RateAt, Untried};
pub(super) use beside::{MOST_CPUS, program_of};
pub(super) use hold::lack_of_cpus;
pub use order::first_in_order;
use queue::AdmissionQueue;
use std::collections::VecDeque;

/// What admission knows.
pub(super) struct Admission<'a> {
    config: &'a RunConfig,
    queue: AdmissionQueue,
    /// Draws the order, if it is random.
    lots: Rng,
    /// Whether any task was given with a later time of arrival.
    arrive_over_time: bool,
    /// The maximum number of live tasks, if the user has changed it.
    jobs: Option<usize>,
    /// Learns how many tasks are best at once.
    at_once: Option<AtOnceLearner>,
    /// Number of tasks admitted.
    turns: u32,
    /// Time of the last start.
    last_start: Option<Nanos>,
    /// When to ask the backend again.
    room_retry: Option<Nanos>,
    /// Whether the user was warned that tasks wait for memory.
    told_memory: bool,
    /// Whether the user was warned that a task starts though memory is short.
    told_short: bool,
    /// Why some task does not start in this run.
    lack: Option<EndedBy>,
}

/// What admission is told with the question who may begin.
pub(super) struct AdmissionInput<'a> {
    pub(super) now: Nanos,
    pub(super) machine: &'a Machine,
    /// Of these admission reads what was given, and whether and when it started.
    pub(super) records: &'a ByTask<TaskRecord>,
    /// The admitted tasks that have neither ended nor been asked to, in ascending order. Admission adds those that it admits.
    pub(super) live: Vec<TaskId>,
    /// Whether some task was asked to end and has not yet.
    pub(super) some_end: bool,
    /// Whether more tasks may come.
    pub(super) is_open: bool,
    /// Asks the backend whether a task may start. After yes it counts as admitted there.
    pub(super) may_start: &'a mut dyn FnMut(&TaskSpec) -> MayStart,
}

/// Who begins now, and what the user is to know of the others.
#[derive(Default)]
pub(super) struct AdmissionAnswer {
    pub(super) admitted: Vec<AdmittedTask>,
    pub(super) news: Vec<AdmissionNews>,
}

/// A task that begins now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AdmittedTask {
    pub(super) id: TaskId,
    /// Its arrival; a restarted task arrives again.
    pub(super) arrived: Nanos,
    /// Its position in the order of admission.
    pub(super) turn: u32,
}

/// What the user is to know of tasks that wait.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AdmissionNews {
    LeftOut { task: TaskId, reason: WaitReason },
    Warned(Warning),
}

impl AdmissionNews {
    pub(super) fn fact(&self) -> Fact<'_> {
        match *self {
            AdmissionNews::LeftOut { task, reason } => Fact::LeftOut { task, reason },
            AdmissionNews::Warned(ref warning) => Fact::Warned(warning),
        }
    }
}

impl AdmissionInput<'_> {
    /// Whether a task is live or still ends. If not, some task must begin, or the run would stand still.
    fn some_live(&self) -> bool {
        !self.live.is_empty() || self.some_end
    }

    /// Whether a CPU is left for one more task. A task beyond the CPUs would only wait for one instead.
    fn has_cpu(&self) -> bool {
        self.live.len() < self.machine.cpus.len()
    }

    /// Whether a live task has not been started.
    fn some_live_is_new(&self) -> bool {
        let mut live = self.live.iter();
        live.any(|&id| self.records[id].started.is_none())
    }

    fn spec(&self, id: TaskId) -> &TaskSpec {
        &self.records[id].spec
    }

    fn add_live(&mut self, id: TaskId) {
        let position = self.live.partition_point(|&other| other < id);
        self.live.insert(position, id);
    }
}

impl<'a> Admission<'a> {
    pub(super) fn new(config: &'a RunConfig) -> Admission<'a> {
        Admission {
            config,
            queue: AdmissionQueue::default(),
            lots: Rng::new(config.seed),
            arrive_over_time: false,
            jobs: None,
            at_once: None,
            turns: 0,
            last_start: None,
            room_retry: None,
            told_memory: false,
            told_short: false,
            lack: None,
        }
    }

    /// Says who may begin now, and takes them from the queue.
    pub(super) fn who_may_begin(&mut self, run: &mut AdmissionInput<'_>) -> AdmissionAnswer {
        let mut answer = AdmissionAnswer::default();
        self.room_retry = None;
        self.put_in_order(run);
        self.begin_at_once(run.machine);
        while self.queue.arrived() > 0 && self.hold_of_all(run).is_none() {
            let Some(place) = self.place_of_next(run, &mut answer.news) else {
                break;
            };
            let Some(id) = self.queue.take(place) else {
                break;
            };
            answer.admitted.push(self.admitted(id, run));
            run.add_live(id);
        }
        answer
            .news
            .extend(self.report_at_once(&answer.admitted, run));
        answer
    }

    /// A task that was just taken from the queue, with its next turn.
    fn admitted(&mut self, id: TaskId, run: &AdmissionInput<'_>) -> AdmittedTask {
        let queued = &self.queue[id];
        let turn = queued.turn.unwrap_or(self.turns);
        let arrived = match queued.is_again {
            true => run.now,
            // It may have queued since its arrival.
            false => queued.arrives,
        };
        self.turns += 1;
        AdmittedTask { id, arrived, turn }
    }

    /// When to ask again, even if nothing happens.
    pub(super) fn ask_again(&self, now: Nanos) -> Option<Nanos> {
        let mut instants = vec![self.room_retry];
        if let Some(first) = self.queue.first() {
            let arrives = self.queue[first].arrives;
            instants.push(Some(arrives).filter(|&at| at > now));
            instants.push(self.delay_end().filter(|&at| at > now));
        }
        instants.into_iter().flatten().min()
    }

    /// The tasks that have not been admitted, the next ones first.
    pub(super) fn queue(&self) -> &VecDeque<TaskId> {
        self.queue.ids()
    }

    /// Number of queued tasks that have arrived.
    pub(super) fn arrived(&self) -> usize {
        self.queue.arrived()
    }

    /// Why some task did not start in this run; `None` if all did.
    pub(super) fn lack(&self) -> Option<EndedBy> {
        self.lack
    }

    /// A new task has come, or will arrive later.
    pub(super) fn came(&mut self, task: &TaskSpec, now: Nanos) {
        self.arrive_over_time |= task.arrives > now;
        let class = order::class(task, self.config, &mut self.lots);
        self.queue.came(task, class);
    }

    /// An ended task is to run again.
    pub(super) fn comes_again(&mut self, id: TaskId, now: Nanos, is_open: bool) {
        let by_response = self.goes_by_response(is_open);
        self.queue.comes_again(id, now, by_response);
    }

    /// An admitted task was lost, and starts anew before all others. It keeps its turn.
    pub(super) fn lost(&mut self, id: TaskId, turn: Option<u32>) {
        self.queue.lost(id, turn);
    }

    /// An admitted task that has not started waits for admission again, before all others.
    pub(super) fn readmit(&mut self, id: TaskId) {
        self.queue.put_first(id);
    }

    /// A task does not wait any more; it need not have waited.
    pub(super) fn unqueue(&mut self, id: TaskId) {
        self.queue.remove(id);
    }

    /// No new task is to begin. Those that were found running stay queued.
    pub(super) fn drop_new(&mut self) {
        self.queue.drop_new();
    }

    /// Empties the queue.
    pub(super) fn take_all(&mut self) -> VecDeque<TaskId> {
        self.queue.take_all()
    }

    /// A task will not be named again.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.queue.forget(id);
    }
}
