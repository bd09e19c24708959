//! The main loop of a run.
//!
//! Each turn: handle events, close the intervals of the affected tasks, ask the policy, check and apply its decision,
//! and wait for the next event.

use super::backend::{Backend, Event};
use super::config::{Actuation, RunConfig};
use super::error::RunError;
use super::fact::{DecisionRecord, Fact, Warning};
use super::histogram::Histogram;
use super::intake::{Intake, Listed};
use super::recorder::Recorder;
use super::result::{EndedBy, PlanCounts, RunResult};
use super::state::RunLoop;
use super::task_record::TaskRecord;
use crate::capability::Capability;
use crate::check::check;
use crate::decision::{Change, Decision};
use crate::policy::{Policy, PolicyFailure, stand_in};
use crate::snapshot::Trigger;
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;

/// Delay before a recorder that is behind is asked again.
const CATCH_UP: Nanos = Nanos::from_ms(50);

/// Runs tasks, all of which are known before, to their end under a policy.
///
/// # Errors
/// As [`run_all`].
pub fn run<B: Backend>(
    backend: &mut B,
    policy: &mut dyn Policy,
    recorder: &mut dyn Recorder,
    tasks: Vec<TaskSpec>,
    config: &RunConfig,
) -> Result<RunResult, RunError<B::Error>> {
    run_all(backend, policy, recorder, &mut Listed::new(tasks), config)
}

/// Runs tasks to their end under a policy, until no more come.
///
/// # Errors
/// The tasks are misnumbered or do not fit the machine, plans were requested but are not supported, or the backend
/// fails. After an error nothing stays frozen once the backend is dropped.
pub fn run_all<B: Backend>(
    backend: &mut B,
    policy: &mut dyn Policy,
    recorder: &mut dyn Recorder,
    intake: &mut dyn Intake<B>,
    config: &RunConfig,
) -> Result<RunResult, RunError<B::Error>> {
    if config.actuation == Actuation::Plans
        && let Some(why) = backend.capabilities().why_missing(Capability::Plans)
    {
        return Err(RunError::NoPlans(why));
    }
    RunLoop::new(backend, policy, recorder, intake, config).run()
}

impl<B: Backend> RunLoop<'_, B> {
    fn run(mut self) -> Result<RunResult, RunError<B::Error>> {
        let mut events = Vec::new();
        let mut triggers = vec![Trigger::QuantumEnd];
        loop {
            let mut now = self.moment();
            if self.take_in(now)? {
                // What has just come has arrived.
                now = self.moment();
            }
            self.end_at_deadline(now);
            if !self.is_paused {
                self.admit(now, &mut triggers);
            }
            if self.snap.tasks.is_empty() && self.dying.is_empty() {
                if self.admission.queue().is_empty() && !self.is_open() {
                    break;
                }
                triggers.clear();
            }
            if !self.is_paused {
                self.wake_triggers(now, &mut triggers);
                if !triggers.is_empty() && !self.snap.tasks.is_empty() {
                    self.decide(std::mem::take(&mut triggers))?;
                }
                triggers.clear();
                self.show_if_due();
            }
            let until = self.next_instant();
            events.clear();
            self.backend.wait(until, &mut events)?;
            let now = self.moment();
            self.note_co_runners();
            // The other events are handled with the new machine.
            events.sort_by_key(|event| *event != Event::MachineChanged);
            for event in events.drain(..) {
                self.handle_event(now, event, &mut triggers)?;
            }
            self.enforce_limits(now, &mut triggers);
            self.recorder.tick(&self.snap, self.admission.queue().len());
        }
        self.show();
        self.recorder
            .emit(self.snap.now, Fact::Switched(&self.switches));
        if !self.samples.is_empty() {
            self.recorder
                .emit(self.snap.now, Fact::Sampled(&self.samples));
        }
        let mut tasks = self.results;
        tasks.extend(self.records.values().map(TaskRecord::result));
        tasks.sort_by_key(|task| task.spec.id);
        let occupation = match (self.plans, self.backend.planner()) {
            (Some(_), Some(planner)) => planner.occupation(),
            _ => None,
        };
        let plans = self.plans.map(|plans| PlanCounts {
            occupation,
            ..plans
        });
        Ok(RunResult {
            turnaround: self.last_end,
            tasks,
            left_out: self.left_out,
            ended_by: match self.early_end {
                Some(drain) => drain.by,
                None => self.admission.lack().unwrap_or(EndedBy::Completion),
            },
            overhead: self.overhead,
            policy_faults: self.policy_faults,
            plans,
            rates: self.admission.rates(),
            predictions: self.learner.prediction_errors(),
            energy_j: self.energy_j.unwrap_or_else(|| self.backend.energy_j()),
        })
    }

    /// Updates the snapshot's time. Earlier switches are reported first, even after plans were given up.
    fn moment(&mut self) -> Nanos {
        let now = self.backend.now();
        self.snap.now = now;
        if self.plans.is_some()
            && let Some(planner) = self.backend.planner()
        {
            planner.switches(&mut self.switches);
            self.switches.sort_by_key(|switch| switch.at);
            let until = self.switches.partition_point(|switch| switch.at <= now);
            self.recorder
                .emit(self.snap.now, Fact::Switched(&self.switches[..until]));
            self.switches.drain(..until);
        }
        now
    }

    /// Adds the triggers that depend on time alone, and updates waiting times.
    fn wake_triggers(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        if self.next_wake.is_some_and(|at| at <= now) {
            self.next_wake = None;
            self.overhead.quanta += 1;
            if !triggers.contains(&Trigger::QuantumEnd) {
                triggers.push(Trigger::QuantumEnd);
            }
        }
        for task in &mut self.snap.tasks {
            match &mut task.running {
                Some(running) => {
                    task.waiting_since = now;
                    if running.lease_end.is_some_and(|at| at <= now) {
                        running.lease_end = None;
                        triggers.push(Trigger::LeaseEnd(task.id));
                    }
                }
                // It has never run, so nothing of it is bound to a time.
                None if task.last_cpus.is_empty() => {}
                None => {
                    let record = &mut self.records[task.id];
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
        self.close_for(&triggers);
        self.snap.triggers = triggers;
        self.snap.queued = self.admission.arrived() as u32;
        self.snap.admits = match (&self.planning, self.backend.planner()) {
            (Some(_), Some(planner)) => planner.admits(),
            _ => None,
        };
        let observed = self.backend.stopwatch();

        let wants_state = self.recorder.wants_policy_state();
        let state = wants_state.then(|| self.policy.save());
        // The intervals that the decision ends change the estimates, and a replay needs those that the policy saw.
        let seen = wants_state.then(|| self.snap.clone());
        let rng = self.rng.state();
        let asked = self.backend.stopwatch();
        let decision = self.policy.try_decide(&self.snap, &mut self.rng);
        let decided = self.backend.stopwatch();
        let (decision, stood_in) = self.checked(decision)?;
        // The interval of a task that the decision stops or moves ends here, unless it was just closed.
        let moved = decision.changes.iter().filter(|change| self.breaks(change));
        let moved: Vec<TaskId> = moved.map(Change::task).collect();
        self.close(&moved, false);
        self.recorder.emit(
            self.snap.now,
            Fact::Decided(DecisionRecord {
                snapshot: seen.as_ref().unwrap_or(&self.snap),
                samples: &self.samples,
                policy_state: state.as_ref(),
                rng,
                decision: &decision,
                stood_in,
            }),
        );
        self.samples.clear();
        let recorded = self.backend.stopwatch();
        self.carry_out(decision)?;
        let applied = self.backend.stopwatch();
        self.overhead.decisions += 1;
        add_span(&mut self.overhead.observe, watch, observed);
        add_span(&mut self.overhead.decide, asked, decided);
        add_span(&mut self.overhead.apply, recorded, applied);
        Ok(())
    }

    /// Closes all intervals at the end of a quantum, otherwise those of tasks whose lease ends.
    fn close_for(&mut self, triggers: &[Trigger]) {
        let is_all = triggers.contains(&Trigger::QuantumEnd);
        if !is_all
            && !triggers
                .iter()
                .any(|trigger| matches!(trigger, Trigger::LeaseEnd(_)))
        {
            return;
        }
        let due = self.snap.tasks.iter().map(|task| task.id).filter(|&id| {
            let is_open = self.records[id].interval.is_some();
            is_open && (is_all || triggers.contains(&Trigger::LeaseEnd(id)))
        });
        let due: Vec<TaskId> = due.collect();
        self.close(&due, true);
    }

    /// The policy's decision or, if there is none or it is invalid, round-robin's, with whether round-robin stood in.
    fn checked(
        &mut self,
        decision: Result<Decision, PolicyFailure>,
    ) -> Result<(Decision, bool), RunError<B::Error>> {
        let now = self.snap.now;
        match decision {
            Ok(decision) => match check(&self.snap, &decision) {
                Ok(()) => return Ok((decision, false)),
                Err(fault) => {
                    self.policy.refused(&fault);
                    let why = fault.to_string();
                    self.recorder
                        .emit(now, Fact::Warned(&Warning::PolicyFault { why }));
                }
            },
            Err(PolicyFailure::NoAnswer(why)) => {
                self.recorder
                    .emit(now, Fact::Warned(&Warning::PolicyFault { why }));
            }
            Err(PolicyFailure::Hangs(why)) => return Err(RunError::PolicyHangs(why)),
        }
        self.policy_faults += 1;
        let decision = stand_in(&self.snap);
        if check(&self.snap, &decision).is_ok() {
            return Ok((decision, true));
        }
        // Round-robin's decision is invalid too: change nothing, and ask again in a quantum.
        let decision = Decision {
            next_wake: Some(now + self.config.quantum),
            ..Decision::default()
        };
        Ok((decision, true))
    }

    /// The next instant at which the loop must act even without an event.
    fn next_instant(&self) -> Option<Nanos> {
        let now = self.snap.now;
        let behind = self.recorder.is_behind().then_some(now + CATCH_UP);
        if self.is_paused {
            return behind;
        }
        let deadline = self.config.deadline.filter(|&at| at > now);
        let more = self.can_take().then_some(now);
        let show = self.show_when_idle();
        let mut instants = vec![
            self.next_wake,
            self.admission.ask_again(now),
            deadline,
            more,
            show,
            behind,
        ];
        let time_limit = self.time_limit();
        for task in &self.snap.tasks {
            if task.running.is_none() && task.last_cpus.is_empty() {
                continue;
            }
            if let Some(running) = &task.running {
                instants.extend(running.lease_end.map(Some));
                if time_limit.is_none() {
                    continue;
                }
            }
            let record = &self.records[task.id];
            match &task.running {
                Some(_) => {
                    if let (Some(limit), Some(interval)) = (time_limit, &record.interval) {
                        instants.push(Some(interval.since + (limit - record.ran)));
                    }
                }
                None if record.started.is_some() && !record.told_overdue && !task.asleep => {
                    instants.push(Some(task.waiting_since + self.config.max_pause));
                }
                None => {}
            }
        }
        let dying = self.dying.values().filter(|dying| !dying.killed);
        instants.extend(dying.map(|dying| Some(dying.kill_at)));
        instants.into_iter().flatten().min()
    }
}

fn add_span(times: &mut Histogram, from: Option<Nanos>, to: Option<Nanos>) {
    if let (Some(from), Some(to)) = (from, to) {
        times.add((to - from).0);
    }
}
