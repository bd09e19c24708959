//! The main loop of a run.
//!
//! Each turn: take in what happened, close the intervals of the tasks that it concerns, ask the policy, check its
//! answer, carry it out, and wait for the next thing to happen.

use super::backend::{Backend, Event};
use super::config::{Actuation, RunConfig};
use super::error::RunError;
use super::order::classes;
use super::recorder::{
    DecisionRecord, EndedBy, Overhead, PlanCounts, Recorder, RunResult, TaskResult, Warning,
};
use super::state::{Loop, Planning, Tally};
use super::task_record::TaskRecord;
use crate::capability::Capability;
use crate::check::check;
use crate::decision::{Change, Decision};
use crate::estimate::Learner;
use crate::model::contention::Contention;
use crate::policy::{Policy, stand_in};
use crate::rng::Rng;
use crate::snapshot::{Snapshot, TaskView, Trigger};
use crate::task::{TaskId, TaskSpec, Width};
use crate::topology::CpuSet;
use crate::units::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs tasks to their end under a policy.
///
/// # Errors
/// The tasks are misnumbered or can't run on this machine, plans were asked for and the backend carries out none, or
/// the backend fails. After an error nothing stays frozen once the backend is dropped.
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
            return Err(RunError::Numbering {
                name: task.name.clone(),
                is: task.id.0,
                should: ix,
            });
        }
        let usable = |mask: &CpuSet| mask.intersection(&machine.all_cpus()).len();
        let have = task.allowed.as_ref().map_or(machine.cpus.len(), usable);
        if task.cpus as usize > have || task.cpus == 0 {
            return Err(RunError::TooLarge {
                name: task.name.clone(),
                needs: task.cpus,
                have,
            });
        }
    }
    let by_plans = config.actuation == Actuation::Plans;
    if let Some(why) = backend
        .capabilities()
        .why_missing(Capability::Plans)
        .filter(|_| by_plans)
    {
        return Err(RunError::NoPlans(why));
    }
    let mut pending: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    pending.sort_by_key(|id| (tasks[id.0 as usize].arrives, *id));
    let snap = Snapshot {
        machine,
        now: Nanos::ZERO,
        triggers: Vec::new(),
        queued: 0,
        contention: Contention::default(),
        admits: None,
        tasks: Vec::new(),
    };
    let measures_widths = tasks.iter().any(|task| task.width == Width::Measured);
    let classes = classes(&tasks, config);
    let records = tasks
        .into_iter()
        .map(|spec| TaskRecord::new(spec, config.quantum))
        .collect();
    let learner = Learner::new(&snap.machine.core_types, config.quantum);
    Loop {
        backend,
        policy,
        recorder,
        config,
        rng: Rng::new(config.seed),
        snap,
        records,
        pending: pending.into(),
        ordered: 0,
        classes,
        turns: 0,
        told_memory: false,
        told_short: false,
        measures_widths,
        dying: BTreeMap::new(),
        samples: Vec::new(),
        learner,
        next_wake: None,
        drain: None,
        counts: Tally::default(),
        overhead: Overhead::default(),
        policy_faults: 0,
        room_retry: None,
        last_start: None,
        times: Vec::new(),
        energy_j: None,
        next_state: Nanos::ZERO,
        waits: Vec::new(),
        displaced: Vec::new(),
        switches: Vec::new(),
        planning: by_plans.then(Planning::default),
        plans: by_plans.then(PlanCounts::default),
        traffic: (Nanos::MAX, Arc::new([])),
    }
    .run()
}

impl<B: Backend> Loop<'_, B> {
    fn run(mut self) -> Result<RunResult, RunError<B::Error>> {
        let mut events = Vec::new();
        let mut triggers = vec![Trigger::QuantumEnd];
        loop {
            let now = self.moment();
            self.admit(now, &mut triggers);
            if self.snap.tasks.is_empty() && self.dying.is_empty() {
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
            self.show_if_due();
            let until = self.next_instant();
            events.clear();
            self.backend.wait(until, &mut events)?;
            let now = self.moment();
            // What else has happened is seen on the machine as it is now.
            events.sort_by_key(|event| *event != Event::MachineChanged);
            for event in events.drain(..) {
                self.handle_event(now, event, &mut triggers)?;
            }
            self.enforce_limits(now, &mut triggers);
            self.recorder.tick(&self.snap, self.pending.len());
        }
        self.show();
        self.recorder.switched(&self.switches);
        if !self.samples.is_empty() {
            self.recorder.left(&self.samples);
        }
        let tasks: Vec<TaskResult> = self.records.iter().map(TaskRecord::result).collect();
        let occupation = match (self.plans, self.backend.planner()) {
            (Some(_), Some(planner)) => planner.occupation(),
            _ => None,
        };
        let plans = self.plans.map(|plans| PlanCounts {
            occupation,
            ..plans
        });
        Ok(RunResult {
            turnaround: tasks
                .iter()
                .filter_map(|task| task.finished)
                .max()
                .unwrap_or_default(),
            tasks,
            ended_by: self.drain.map_or(EndedBy::Completion, |drain| drain.by),
            overhead: self.overhead,
            policy_faults: self.policy_faults,
            plans,
            energy_j: self.energy_j.unwrap_or_else(|| self.backend.energy_j()),
        })
    }

    /// What is told from here on is of this moment. Switches before it are told first, also after plans were given up.
    fn moment(&mut self) -> Nanos {
        let now = self.backend.now();
        self.snap.now = now;
        if self.plans.is_some()
            && let Some(planner) = self.backend.planner()
        {
            planner.switches(&mut self.switches);
            self.switches.sort_by_key(|switch| switch.at);
            let until = self.switches.partition_point(|switch| switch.at <= now);
            self.recorder.switched(&self.switches[..until]);
            self.switches.drain(..until);
        }
        now
    }

    /// Adds the triggers that follow from the time alone, and brings waiting times up to date.
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
                    task.overdue =
                        record.started.is_some() && !task.asleep && waited >= self.config.max_pause;
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
        displaced.retain(|&id| {
            self.snap
                .task(id)
                .is_some_and(|task| task.running.is_some())
        });
        if displaced.is_empty() {
            return Ok(());
        }
        self.close(&displaced, false);
        let changes: Vec<Change> = displaced
            .into_iter()
            .map(|task| Change::Stop { task })
            .collect();
        self.carry_out(Decision {
            changes,
            next_wake: self.next_wake,
            ..Decision::default()
        })
    }

    /// Closes intervals, asks the policy, checks and applies.
    fn decide(&mut self, triggers: Vec<Trigger>) -> Result<(), RunError<B::Error>> {
        self.stop_displaced()?;
        let watch = self.backend.stopwatch();
        let now = self.snap.now;
        if triggers.contains(&Trigger::QuantumEnd) {
            let open = |task: &&TaskView| self.records[task.id.0 as usize].interval.is_some();
            let open: Vec<TaskId> = self
                .snap
                .tasks
                .iter()
                .filter(open)
                .map(|task| task.id)
                .collect();
            self.close(&open, true);
        } else {
            let ended = triggers.iter().filter_map(|trigger| match trigger {
                Trigger::LeaseEnd(id) => Some(*id),
                _ => None,
            });
            let ended: Vec<TaskId> = ended.collect();
            self.close(&ended, true);
        }
        self.snap.triggers = triggers;
        self.snap.queued = self.ordered as u32;
        self.snap.admits = match (&self.planning, self.backend.planner()) {
            (Some(_), Some(planner)) => planner.admits(),
            _ => None,
        };
        let observed = self.backend.stopwatch();

        let state = self
            .recorder
            .wants_policy_state()
            .then(|| self.policy.save());
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
                // Not even round-robin's decision can be carried out: leave what runs, and ask again in a quantum.
                decision = Decision {
                    next_wake: Some(now + self.config.quantum),
                    ..Decision::default()
                };
            }
        }
        // The interval of a task that the decision stops or moves ends here, unless it was closed just now.
        let moved: Vec<TaskId> = decision
            .changes
            .iter()
            .filter(|change| self.breaks(change))
            .map(Change::task)
            .collect();
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
        self.carry_out(decision)?;
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

    /// The next instant at which the loop must act even if no event comes.
    fn next_instant(&self) -> Option<Nanos> {
        let mut next = self.next_wake;
        let mut at = |instant: Nanos| next = Some(next.map_or(instant, |next| next.min(instant)));
        if let Some(&id) = self.pending.front() {
            let arrives = self.records[id.0 as usize].spec.arrives;
            if arrives > self.snap.now {
                at(arrives);
            }
            if let Some(end) = self.delay_end().filter(|&end| end > self.snap.now) {
                at(end);
            }
        }
        let time_limit = self.time_limit();
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
                    if let (Some(limit), Some(interval)) = (time_limit, &record.interval) {
                        at(interval.since + (limit - record.ran));
                    }
                }
                None if record.started.is_some() && !record.told_overdue && !task.asleep => {
                    at(task.waiting_since + self.config.max_pause);
                }
                None => {}
            }
        }
        for dying in self.dying.values().filter(|dying| !dying.killed) {
            at(dying.kill_at);
        }
        next
    }
}
