//! The loop itself.
//!
//! Each turn: take in what happened, close the intervals of the tasks that it concerns, ask the policy, check its
//! answer, carry it out, and wait for the next thing to happen. The loop knows the plan (who was placed where, for how
//! long, beside whom); a backend only says what a task has used so far. So a sample means the same in every world.

use super::backend::{Backend, Event, Kill};
use super::config::{HaltWhen, Restart, RunConfig};
use super::recorder::{DecisionRecord, EndedBy, Overhead, Recorder, RunResult, TaskResult, Warning};
use crate::check::check;
use crate::decision::{Change, Decision};
use crate::estimate::TaskEstimator;
use crate::placement::{Placement, Purpose};
use crate::policy::{Policy, stand_in};
use crate::rng::Rng;
use crate::sample::{Sample, Usage};
use crate::snapshot::{ProgressBasis, Running, Snapshot, TaskView, Trigger};
use crate::task::{Exit, TaskId, TaskSpec};
use crate::topology::CpuSet;
use crate::units::{Absence, Nanos, Reading};
use std::collections::VecDeque;
use std::sync::Arc;

/// How often a backend that had no room for one more task is asked again.
const ROOM_RETRY: Nanos = Nanos::from_ms(1_000);

/// A run that can't go on, or can't begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] E),
    /// A task needs more CPUs than there are.
    #[error("task `{name}` needs {needs} CPUs at once, and {have} can be used")]
    TooLarge {
        /// The task.
        name: String,
        /// CPUs that it needs.
        needs: u32,
        /// CPUs that it may use.
        have: usize,
    },
    /// Task numbers must be 0, 1, 2 and so on.
    #[error("task `{name}` is number {is} and should be {should}")]
    Numbering {
        /// The task.
        name: String,
        /// Its number.
        is: u32,
        /// The number that its place asks for.
        should: usize,
    },
}

/// Runs tasks to their end under a policy.
///
/// # Errors
/// The tasks can't run on this machine, or the backend fails; the backend then has nothing frozen left once it is
/// dropped.
pub fn run<B: Backend>(
    backend: &mut B,
    policy: &mut dyn Policy,
    recorder: &mut dyn Recorder,
    tasks: Vec<TaskSpec>,
    config: &RunConfig,
) -> Result<RunResult, RunError<B::Error>> {
    let machine = backend.machine();
    for (ix, task) in tasks.iter().enumerate() {
        if task.id.0 as usize != ix {
            return Err(RunError::Numbering { name: task.name.clone(), is: task.id.0, should: ix });
        }
        let usable = |mask: &CpuSet| mask.intersection(&machine.all_cpus()).len();
        let have = task.allowed.as_ref().map_or(machine.cpus.len(), usable);
        if task.cpus as usize > have || task.cpus == 0 {
            return Err(RunError::TooLarge { name: task.name.clone(), needs: task.cpus, have });
        }
    }
    let mut pending: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    pending.sort_by_key(|id| (tasks[id.0 as usize].arrives, *id));
    let snap = Snapshot { machine, now: Nanos::ZERO, triggers: Vec::new(), tasks: Vec::new() };
    let records = tasks.into_iter().map(|spec| TaskRecord::new(spec, config.quantum)).collect();
    Loop {
        backend,
        policy,
        recorder,
        config,
        rng: Rng::new(config.seed),
        snap,
        records,
        pending: pending.into(),
        samples: Vec::new(),
        next_wake: None,
        drain: None,
        counts: Tally::default(),
        overhead: Overhead::default(),
        policy_faults: 0,
        room_retry: None,
        energy_j: None,
        displaced: Vec::new(),
    }
    .run()
}

/// What the loop keeps of a task beside its view.
struct TaskRecord {
    spec: TaskSpec,
    estimator: TaskEstimator,
    interval: Option<Interval>,
    used: Usage,
    started: Option<Nanos>,
    finished: Option<Nanos>,
    exit: Option<Exit>,
    waited_max: Nanos,
    ran: Nanos,
    progress_basis: ProgressBasis,
    last_solo: Reading<f64>,
    dying: Option<Dying>,
    timed_out: bool,
    told_to_end: bool,
    told_overdue: bool,
    runs: u32,
    /// The result of the first run, where tasks are started again.
    first: Option<Box<TaskResult>>,
}

/// The open interval of a placed task.
struct Interval {
    since: Nanos,
    planned_end: Option<Nanos>,
    purpose: Purpose,
    cpus: CpuSet,
    whole_core: bool,
    co_runners: Arc<[TaskId]>,
    disturbed: bool,
}

/// A task that was asked to end.
#[derive(Clone, Copy)]
struct Dying {
    kill_at: Nanos,
    killed: bool,
}

#[derive(Default)]
struct Tally {
    failed: u32,
    succeeded: u32,
}

/// The run is coming to its end before its time.
struct Drain {
    by: EndedBy,
    interrupts: u32,
}

struct Loop<'a, B: Backend> {
    backend: &'a mut B,
    policy: &'a mut dyn Policy,
    recorder: &'a mut dyn Recorder,
    config: &'a RunConfig,
    rng: Rng,
    /// Its tasks are those that take part: arrived, not ended, not dying.
    snap: Snapshot,
    records: Vec<TaskRecord>,
    pending: VecDeque<TaskId>,
    samples: Vec<Sample>,
    next_wake: Option<Nanos>,
    drain: Option<Drain>,
    counts: Tally,
    overhead: Overhead,
    policy_faults: u64,
    room_retry: Option<Nanos>,
    /// Energy when every task had ended once, if others went on then.
    energy_j: Option<Reading<f64>>,
    /// Tasks placed on CPUs that are gone.
    displaced: Vec<TaskId>,
}

impl TaskRecord {
    fn new(spec: TaskSpec, quantum: Nanos) -> TaskRecord {
        let used = Usage::zero(spec.id);
        TaskRecord {
            spec,
            estimator: TaskEstimator::new(quantum, 0.0),
            interval: None,
            used,
            started: None,
            finished: None,
            exit: None,
            waited_max: Nanos::ZERO,
            ran: Nanos::ZERO,
            progress_basis: ProgressBasis::Provisional,
            last_solo: Reading::Absent(Absence::NoSoloEstimate),
            dying: None,
            timed_out: false,
            told_to_end: false,
            told_overdue: false,
            runs: 0,
            first: None,
        }
    }

    /// Forgets the run that has ended, but for its result and how many there were.
    fn begin_anew(&mut self, quantum: Nanos) {
        let fresh = TaskRecord::new(self.spec.clone(), quantum);
        *self = TaskRecord { runs: self.runs, first: self.first.take(), ..fresh };
    }

    fn has_ended_once(&self) -> bool {
        self.first.is_some() || self.finished.is_some()
    }

    fn result(&self) -> TaskResult {
        if let Some(first) = &self.first {
            return TaskResult { runs: self.runs, ..(**first).clone() };
        }
        let started = self.started.is_some();
        let traced = self.estimator.earned_by_trace();
        let progress = match (traced, self.progress_basis) {
            _ if !started => Reading::Absent(Absence::NotStarted),
            (Some(progress), _) => Reading::Value(progress),
            (_, ProgressBasis::Provisional) => {
                Reading::Absent(self.last_solo.absence().unwrap_or(Absence::NoSoloEstimate))
            }
            (_, _) => Reading::Value(self.estimator.earned()),
        };
        TaskResult {
            spec: self.spec.clone(),
            started: self.started,
            finished: self.finished,
            exit: self.exit.clone(),
            timed_out: self.timed_out,
            told_to_end: self.told_to_end,
            cpu_time: if started { self.used.cpu_time } else { Reading::Absent(Absence::NotStarted) },
            waited_max: self.waited_max,
            ran: self.ran,
            counts: self.used.counts,
            multiplexed: self.used.multiplexed,
            progress,
            progress_basis: if traced.is_some() { ProgressBasis::Trace } else { self.progress_basis },
            runs: self.runs,
        }
    }
}

impl<B: Backend> Loop<'_, B> {
    fn run(mut self) -> Result<RunResult, RunError<B::Error>> {
        let mut events = Vec::new();
        let mut triggers = vec![Trigger::QuantumEnd];
        loop {
            let now = self.backend.now();
            self.snap.now = now;
            self.admit(now, &mut triggers);
            if self.snap.tasks.is_empty() && !self.records.iter().any(|record| record.dying.is_some()) {
                if self.pending.is_empty() {
                    break;
                }
                triggers.clear();
            }
            self.wake_triggers(now, &mut triggers);
            if !triggers.is_empty() && !self.snap.tasks.is_empty() {
                self.decide(std::mem::take(&mut triggers))?;
            }
            triggers.clear();
            let until = self.next_instant();
            events.clear();
            self.backend.wait(until, &mut events)?;
            let now = self.backend.now();
            self.snap.now = now;
            for event in events.drain(..) {
                self.handle_event(now, event, &mut triggers);
            }
            self.enforce_limits(now, &mut triggers);
            self.recorder.tick(&self.snap, self.pending.len());
        }
        if !self.samples.is_empty() {
            self.recorder.left(&self.samples);
        }
        let tasks: Vec<TaskResult> = self.records.iter().map(TaskRecord::result).collect();
        Ok(RunResult {
            turnaround: tasks.iter().filter_map(|task| task.finished).max().unwrap_or_default(),
            tasks,
            ended_by: self.drain.map_or(EndedBy::Completion, |drain| drain.by),
            overhead: self.overhead,
            policy_faults: self.policy_faults,
            energy_j: self.energy_j.unwrap_or_else(|| self.backend.energy_j()),
        })
    }

    /// Lets tasks in whose time has come, as far as the limits allow.
    fn admit(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        self.room_retry = None;
        while let Some(&id) = self.pending.front() {
            let record = &mut self.records[id.0 as usize];
            let dying = |record: &TaskRecord| record.dying.is_some();
            if record.spec.arrives > now || self.snap.tasks.len() >= self.config.jobs {
                break;
            }
            let any_live = !self.snap.tasks.is_empty();
            if !self.backend.may_start() && (any_live || self.records.iter().any(dying)) {
                self.room_retry = Some(now + ROOM_RETRY);
                break;
            }
            self.pending.pop_front();
            let least = |of: fn(&TaskView) -> Reading<f64>| {
                self.snap.tasks.iter().filter_map(|task| of(task).value()).reduce(f64::min).unwrap_or(0.0)
            };
            let late = (least(|task| task.estimates.progress), least(|task| task.estimates.trace_progress));
            let record = &mut self.records[id.0 as usize];
            record.estimator = TaskEstimator::new(self.config.quantum, late.0).with_trace(&record.spec.solo, late.1);
            let view = TaskView {
                id,
                name: record.spec.name.as_str().into(),
                cpus: record.spec.cpus,
                allowed: record.spec.allowed.clone(),
                nice: record.spec.nice,
                origin: record.spec.origin,
                control: record.spec.control,
                arrived: if record.first.is_some() { now } else { record.spec.arrives },
                running: None,
                asleep: false,
                waiting_since: now,
                overdue: false,
                last_cpus: CpuSet::new(),
                estimates: record.estimator.initial(&record.spec.solo),
            };
            let pos = self.snap.tasks.partition_point(|task| task.id < id);
            self.snap.tasks.insert(pos, view);
            triggers.push(Trigger::Arrived(id));
        }
    }

    /// Adds what the clock alone says, and brings waiting times up to date.
    fn wake_triggers(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        if self.next_wake.is_some_and(|at| at <= now) {
            self.next_wake = None;
            self.overhead.quanta += 1;
            if !triggers.contains(&Trigger::QuantumEnd) {
                triggers.push(Trigger::QuantumEnd);
            }
        }
        for task in &mut self.snap.tasks {
            let record = &mut self.records[task.id.0 as usize];
            match &mut task.running {
                Some(running) => {
                    task.waiting_since = now;
                    if running.lease_end.is_some_and(|at| at <= now) {
                        running.lease_end = None;
                        triggers.push(Trigger::LeaseEnd(task.id));
                    }
                }
                None => {
                    let waited = now - task.waiting_since;
                    task.overdue = record.started.is_some() && !task.asleep && waited >= self.config.max_pause;
                    if task.overdue && !std::mem::replace(&mut record.told_overdue, true) {
                        triggers.push(Trigger::Starved(task.id));
                    }
                }
            }
        }
    }

    /// Stops the tasks whose CPUs are gone, so that they are placed anew.
    fn stop_displaced(&mut self) -> Result<(), RunError<B::Error>> {
        let mut displaced = std::mem::take(&mut self.displaced);
        displaced.retain(|&id| self.snap.task(id).is_some_and(|task| task.running.is_some()));
        if displaced.is_empty() {
            return Ok(());
        }
        self.close(&displaced, false);
        let changes: Vec<Change> = displaced.into_iter().map(|task| Change::Stop { task }).collect();
        self.backend.apply(&changes)?;
        self.commit(Decision { changes, next_wake: self.next_wake, ..Decision::default() });
        Ok(())
    }

    /// Closes intervals, asks the policy, checks and applies.
    fn decide(&mut self, triggers: Vec<Trigger>) -> Result<(), RunError<B::Error>> {
        self.stop_displaced()?;
        let watch = self.backend.stopwatch();
        let now = self.snap.now;
        if triggers.contains(&Trigger::QuantumEnd) {
            let running = self.snap.tasks.iter().filter(|task| task.running.is_some());
            let running: Vec<TaskId> = running.map(|task| task.id).collect();
            self.close(&running, true);
        } else {
            let ended = triggers.iter().filter_map(|trigger| match trigger {
                Trigger::LeaseEnd(id) => Some(*id),
                _ => None,
            });
            let ended: Vec<TaskId> = ended.collect();
            self.close(&ended, true);
        }
        self.snap.triggers = triggers;
        let observed = self.backend.stopwatch();

        let state = self.recorder.wants_policy_state().then(|| self.policy.save());
        let rng = self.rng.state();
        let asked = self.backend.stopwatch();
        let mut decision = self.policy.decide(&self.snap, &mut self.rng);
        let decided = self.backend.stopwatch();
        let mut stood_in = false;
        if let Err(fault) = check(&self.snap, &decision) {
            self.policy_faults += 1;
            self.recorder.warn(now, &Warning::PolicyFault(fault));
            decision = stand_in(&self.snap);
            stood_in = true;
            if check(&self.snap, &decision).is_err() {
                // Nothing fits at all, not even in turn: leave what runs and look again in a quantum.
                decision = Decision { next_wake: Some(now + self.config.quantum), ..Decision::default() };
            }
        }
        // What the decision stops or moves ends its interval here, unless it has just been closed.
        let moved: Vec<TaskId> =
            decision.changes.iter().filter(|change| self.breaks(change)).map(Change::task).collect();
        self.close(&moved, false);
        self.recorder.decided(DecisionRecord {
            snapshot: &self.snap,
            samples: &self.samples,
            policy_state: state.as_ref(),
            rng,
            decision: &decision,
            stood_in,
        });
        self.samples.clear();
        let recorded = self.backend.stopwatch();
        self.backend.apply(&decision.changes)?;
        self.commit(decision);
        let applied = self.backend.stopwatch();
        self.overhead.decisions += 1;
        if let (Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)) =
            (watch, observed, asked, decided, recorded, applied)
        {
            self.overhead.observe.add((b - a).0);
            self.overhead.decide.add((d - c).0);
            self.overhead.apply.add((f - e).0);
        }
        Ok(())
    }

    /// Whether a change ends the interval of a running task: it stops it, or places it otherwise than it is.
    fn breaks(&self, change: &Change) -> bool {
        let Some(task) = self.snap.task(change.task()) else { return false };
        let Some(running) = &task.running else { return false };
        match change {
            Change::Stop { .. } => true,
            Change::Place { placement, purpose, .. } => running.placement != *placement || running.purpose != *purpose,
        }
    }

    /// Ends the open intervals of these tasks and feeds the estimators; with `reopen`, the next begins at once.
    fn close(&mut self, tasks: &[TaskId], reopen: bool) {
        let now = self.snap.now;
        let due = |id: &&TaskId| {
            let interval = self.records[id.0 as usize].interval.as_ref();
            interval.is_some_and(|interval| interval.since < now)
        };
        let due: Vec<TaskId> = tasks.iter().filter(due).copied().collect();
        if due.is_empty() {
            return;
        }
        let mut usages = Vec::with_capacity(due.len());
        self.backend.read(&due, &mut usages);
        let all: Arc<[TaskId]> = self.running_now();
        for usage in usages {
            let record = &mut self.records[usage.task.0 as usize];
            let Some(interval) = record.interval.take() else { continue };
            let length = now - interval.since;
            let sample = Sample {
                task: usage.task,
                at: now,
                interval: length,
                planned: interval.planned_end.map_or(length, |end| end - interval.since),
                purpose: interval.purpose,
                cpus: interval.cpus.clone(),
                whole_core: interval.whole_core,
                co_runners: interval.co_runners.clone(),
                disturbed: interval.disturbed,
                cpu_time: delta(usage.cpu_time, record.used.cpu_time),
                counts: usage.counts.since(&record.used.counts),
                multiplexed: usage.multiplexed,
            };
            record.used = merge(usage, &record.used);
            record.ran += length;
            if let Ok(pos) = self.snap.tasks.binary_search_by_key(&usage.task, |task| task.id) {
                let estimates = &mut self.snap.tasks[pos].estimates;
                record.estimator.update(&sample, estimates);
                record.progress_basis = estimates.progress_basis;
                record.last_solo = estimates.solo_ipc;
            }
            self.samples.push(sample);
            if reopen {
                record.interval = Some(Interval {
                    since: now,
                    planned_end: None,
                    co_runners: all.clone(),
                    disturbed: false,
                    ..interval
                });
            }
        }
    }

    fn running_now(&self) -> Arc<[TaskId]> {
        self.snap.tasks.iter().filter(|task| task.running.is_some()).map(|task| task.id).collect()
    }

    /// Brings the loop's own picture in line with a decision that was applied.
    fn commit(&mut self, decision: Decision) {
        let now = self.snap.now;
        let wake = decision.next_wake;
        let mut joined_ordinary = false;
        let mut placed = Vec::new();
        for change in decision.changes {
            let Ok(pos) = self.snap.tasks.binary_search_by_key(&change.task(), |task| task.id) else { continue };
            let task = &mut self.snap.tasks[pos];
            let record = &mut self.records[task.id.0 as usize];
            match change {
                Change::Stop { .. } => {
                    task.running = None;
                    task.waiting_since = now;
                    // A frozen task can't be seen to wake: it waits like the others.
                    task.asleep = false;
                    record.interval = None;
                }
                Change::Place { placement, lease_end, purpose, .. } => {
                    let since = task.running.as_ref().map_or(now, |running| running.since);
                    if task.running.is_none() {
                        joined_ordinary |= purpose == Purpose::Run;
                        if record.started.is_none() {
                            record.started = Some(now);
                            record.runs += 1;
                            match record.first {
                                None => self.recorder.started(now, &record.spec),
                                Some(_) => self.recorder.restarted(now, &record.spec, record.runs),
                            }
                        } else {
                            record.waited_max = record.waited_max.max(now - task.waiting_since);
                        }
                    }
                    record.told_overdue = false;
                    task.overdue = false;
                    task.waiting_since = now;
                    task.last_cpus = placement.cpus().clone();
                    task.running = Some(Running { placement, purpose, since, lease_end });
                    placed.push(task.id);
                }
            }
        }
        let all = self.running_now();
        let whole = self.whole_cores();
        for id in placed {
            let Some(task) = self.snap.task(id) else { continue };
            let Some(running) = &task.running else { continue };
            let planned_end = [running.lease_end, wake].into_iter().flatten().min();
            let fresh = Interval {
                since: now,
                planned_end,
                purpose: running.purpose,
                cpus: running.placement.cpus().clone(),
                whole_core: false,
                co_runners: all.clone(),
                disturbed: false,
            };
            let record = &mut self.records[id.0 as usize];
            match &mut record.interval {
                Some(open) if open.since < now => open.planned_end = planned_end,
                slot => *slot = Some(fresh),
            }
        }
        for (task, whole_core) in self.snap.tasks.iter().zip(whole) {
            if let Some(interval) = &mut self.records[task.id.0 as usize].interval {
                if interval.since == now {
                    interval.whole_core = whole_core;
                    if interval.planned_end.is_none() {
                        interval.planned_end = wake;
                    }
                } else {
                    interval.whole_core &= whole_core;
                    interval.disturbed |= joined_ordinary;
                }
            }
        }
        self.next_wake = wake;
    }

    /// For each task of the snapshot whether no other task runs, or may run, on its cores.
    fn whole_cores(&self) -> Vec<bool> {
        let machine = &*self.snap.machine;
        let mut users = vec![0u32; machine.cores.len()];
        let cores_of = |task: &TaskView| {
            let cpus = task.running.iter().flat_map(|running| running.placement.cpus().iter());
            let mut cores: Vec<usize> =
                cpus.filter_map(|cpu| machine.index_of(cpu)).map(|ix| machine.cpus[ix].core).collect();
            cores.sort_unstable();
            cores.dedup();
            cores
        };
        // Where the kernel time-shares, everybody may meet everybody: one look at the numbers is enough.
        let shared =
            |task: &TaskView| matches!(task.running, Some(Running { placement: Placement::Shared { .. }, .. }));
        if self.snap.tasks.iter().any(shared) {
            let running = self.snap.tasks.iter().filter(|task| task.running.is_some()).count();
            return vec![running == 1; self.snap.tasks.len()];
        }
        for task in &self.snap.tasks {
            cores_of(task).into_iter().for_each(|core| users[core] += 1);
        }
        let alone = |task: &TaskView| cores_of(task).into_iter().all(|core| users[core] == 1);
        self.snap.tasks.iter().map(alone).collect()
    }

    /// The next instant at which the loop has something to do without being told.
    fn next_instant(&self) -> Option<Nanos> {
        let mut next = self.next_wake;
        let mut at = |instant: Nanos| next = Some(next.map_or(instant, |next| next.min(instant)));
        if let Some(&id) = self.pending.front() {
            let arrives = self.records[id.0 as usize].spec.arrives;
            if arrives > self.snap.now {
                at(arrives);
            }
        }
        if let Some(retry) = self.room_retry {
            at(retry);
        }
        for task in &self.snap.tasks {
            let record = &self.records[task.id.0 as usize];
            match &task.running {
                Some(running) => {
                    if let Some(end) = running.lease_end {
                        at(end);
                    }
                    if let (Some(timeout), Some(interval)) = (self.config.timeout, &record.interval) {
                        at(interval.since + (timeout - record.ran));
                    }
                }
                None if record.started.is_some() && !record.told_overdue && !task.asleep => {
                    at(task.waiting_since + self.config.max_pause);
                }
                None => {}
            }
        }
        for dying in self.records.iter().filter_map(|record| record.dying).filter(|dying| !dying.killed) {
            at(dying.kill_at);
        }
        next
    }

    /// Takes in one event.
    fn handle_event(&mut self, now: Nanos, event: Event, triggers: &mut Vec<Trigger>) {
        match event {
            Event::Ended { task, exit } => self.end(now, task, exit, triggers),
            Event::Slept(id) | Event::Woke(id) => {
                if let Ok(pos) = self.snap.tasks.binary_search_by_key(&id, |task| task.id) {
                    let woke = event == Event::Woke(id);
                    let task = &mut self.snap.tasks[pos];
                    // News of a task that was frozen since is too late: see below at `Change::Stop`.
                    let frozen = task.running.is_none() && self.records[id.0 as usize].started.is_some();
                    task.asleep = !woke && !frozen;
                    if woke {
                        if !frozen {
                            // What it slept, it did not wait.
                            task.waiting_since = now;
                        }
                        triggers.push(Trigger::Woke(id));
                    }
                }
            }
            Event::MachineChanged => self.change_machine(triggers),
            Event::Interrupt { signal } => {
                let drain = self.drain.get_or_insert(Drain { by: EndedBy::Signal(signal), interrupts: 0 });
                drain.interrupts += 1;
                drain.by = EndedBy::Signal(signal);
                let again = drain.interrupts > 1;
                self.recorder.warn(now, &Warning::Interrupted { signal, again });
                self.end_all(now, again);
            }
        }
    }

    /// Takes another set of CPUs for the machine. Whoever was placed on one that is gone is placed anew, and with it
    /// everybody: the plan was made for another machine.
    fn change_machine(&mut self, triggers: &mut Vec<Trigger>) {
        self.snap.machine = self.backend.machine();
        let all = self.snap.machine.all_cpus();
        let lost =
            |task: &&TaskView| task.running.as_ref().is_some_and(|running| !running.placement.cpus().is_subset(&all));
        self.displaced.extend(self.snap.tasks.iter().filter(lost).map(|task| task.id));
        triggers.push(Trigger::QuantumEnd);
    }

    fn end(&mut self, now: Nanos, id: TaskId, exit: Exit, triggers: &mut Vec<Trigger>) {
        let Some(record) = self.records.get(id.0 as usize).filter(|record| record.finished.is_none()) else { return };
        let never_ran = matches!(exit, Exit::NotStarted(_));
        let was_dying = record.dying.is_some();
        if !never_ran {
            self.close(&[id], false);
            if was_dying {
                self.final_read(id);
            }
        }
        let record = &mut self.records[id.0 as usize];
        if never_ran {
            record.started = None;
            record.runs = record.runs.saturating_sub(1);
        }
        record.interval = None;
        record.finished = Some(now);
        record.dying = None;
        record.told_to_end = was_dying && !record.timed_out;
        let ok = exit.ok() && !record.timed_out;
        let is_first = record.first.is_none();
        if !is_first {
            // How a later run ends counts for nothing, but that there is no other after it is worth knowing.
            if !ok && !was_dying {
                self.recorder.warn(now, &Warning::NotRestarted(id, Some(exit)));
            }
        } else {
            if ok {
                self.counts.succeeded += 1;
            } else {
                self.counts.failed += 1;
            }
            record.exit = Some(exit);
            let result = record.result();
            self.recorder.ended(now, &result);
            if self.config.restart == Restart::UntilLast {
                record.first = Some(Box::new(result));
            }
        }
        if let Ok(pos) = self.snap.tasks.binary_search_by_key(&id, |task| task.id) {
            self.snap.tasks.remove(pos);
            triggers.push(Trigger::Ended(id));
        } else if was_dying {
            // It was out of the picture already; its CPUs are free only now.
            triggers.push(Trigger::Ended(id));
        }
        if self.config.restart == Restart::UntilLast && self.drain.is_none() {
            self.restart(now, id, ok);
        }
        if !is_first {
            return;
        }
        let total = self.records.len() as u32;
        let verdict = self.config.halt.verdict(self.counts.failed, self.counts.succeeded, total);
        if verdict != HaltWhen::Never && self.drain.is_none() {
            self.drain = Some(Drain { by: EndedBy::Halt, interrupts: 0 });
            self.recorder.warn(now, &Warning::Halting);
            match verdict {
                HaltWhen::Now => self.end_all(now, false),
                _ => self.drop_unstarted(),
            }
        }
    }

    /// Starts a task that has ended well again, as long as another has not ended once; then it is over for all.
    fn restart(&mut self, now: Nanos, id: TaskId, ok: bool) {
        if self.records.iter().all(TaskRecord::has_ended_once) {
            if self.energy_j.is_none() {
                self.energy_j = Some(self.backend.energy_j());
                self.end_all(now, false);
            }
            return;
        }
        if !ok {
            return;
        }
        if !self.backend.restart(id) {
            self.recorder.warn(now, &Warning::NotRestarted(id, None));
            return;
        }
        let Loop { records, pending, config, .. } = self;
        records[id.0 as usize].begin_anew(config.quantum);
        // Behind all that have arrived, and before those that have not.
        let pos = pending.partition_point(|other| records[other.0 as usize].spec.arrives <= now);
        pending.insert(pos, id);
    }

    /// The last figures of a task that took no part any more.
    fn final_read(&mut self, id: TaskId) {
        let mut usages = Vec::new();
        self.backend.read(&[id], &mut usages);
        if let Some(usage) = usages.pop() {
            let record = &mut self.records[id.0 as usize];
            record.used = merge(usage, &record.used);
        }
    }

    /// Looks after time-outs and after tasks that were asked to end and have not.
    fn enforce_limits(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        if let Some(timeout) = self.config.timeout {
            let over = |task: &&TaskView| {
                let record = &self.records[task.id.0 as usize];
                record.interval.as_ref().is_some_and(|interval| record.ran + (now - interval.since) >= timeout)
            };
            let over: Vec<TaskId> = self.snap.tasks.iter().filter(over).map(|task| task.id).collect();
            for id in over {
                self.records[id.0 as usize].timed_out = true;
                self.recorder.warn(now, &Warning::TimedOut(id));
                self.begin_termination(now, id, false);
                triggers.push(Trigger::Ended(id));
            }
        }
        for record in &mut self.records {
            if let Some(dying) = &mut record.dying
                && !dying.killed
                && dying.kill_at <= now
            {
                dying.killed = true;
                self.backend.kill(record.spec.id, Kill::Kill);
            }
        }
    }

    /// Ends every started task and forgets the others.
    fn end_all(&mut self, now: Nanos, at_once: bool) {
        self.drop_unstarted();
        let live: Vec<TaskId> = self.snap.tasks.iter().map(|task| task.id).collect();
        for id in live {
            self.begin_termination(now, id, at_once);
        }
        if at_once {
            for record in &mut self.records {
                if let Some(dying) = &mut record.dying
                    && !std::mem::replace(&mut dying.killed, true)
                {
                    self.backend.kill(record.spec.id, Kill::Kill);
                }
            }
        }
    }

    fn drop_unstarted(&mut self) {
        self.pending.clear();
        let records = &self.records;
        self.snap.tasks.retain(|task| records[task.id.0 as usize].started.is_some());
    }

    /// Asks a task to end; from now on it takes no part in scheduling.
    fn begin_termination(&mut self, now: Nanos, id: TaskId, at_once: bool) {
        self.close(&[id], false);
        let Ok(pos) = self.snap.tasks.binary_search_by_key(&id, |task| task.id) else { return };
        self.snap.tasks.remove(pos);
        let record = &mut self.records[id.0 as usize];
        record.interval = None;
        record.dying = Some(Dying { kill_at: now + self.config.grace, killed: at_once });
        self.backend.kill(id, if at_once { Kill::Kill } else { Kill::Term });
    }
}

fn delta(now: Reading<Nanos>, before: Reading<Nanos>) -> Reading<Nanos> {
    now.and_then(|now| before.map(|before| now - before))
}

/// The newer totals; where a counter has stopped answering, its last value is not the task's total: it stays absent.
fn merge(new: Usage, old: &Usage) -> Usage {
    Usage { multiplexed: new.multiplexed || old.multiplexed, ..new }
}
