//! How many tasks are admitted at once, learnt from the times of those that ended.
//!
//! Tasks that take W(n) each while n are live end at the rate X(n) = n / W(n) (Little's law). A trial admits another number for
//! a while, and then the old one again. Only tasks that lived wholly with one number count ([`lives`]), and both numbers are
//! compared with their uncertainty ([`effect`]). Other load that begins or ends meanwhile spreads the times of the old number.
//! The new number is kept if X rises, or if X stays within a hundredth of the best and CPU time falls.
//!
//! Failed trials may cost a hundredth of the tasks together, and each counts twice as much as the one before.

mod effect;
mod lives;
mod rates;
#[cfg(test)]
mod tests;
mod trial;

use crate::task::{TaskId, TaskSpec};
use crate::units::{Nanos, Reading};
use effect::{TaskTimes, spread};
use lives::LiveTasks;
use rates::best;
pub use rates::{AtOnceState, RateAt, Untried};
use std::collections::BTreeMap;
use std::sync::Arc;
use trial::{AtOnceTrial, TrialVerdict, step_to};

/// What failed trials may cost together, as a share of all tasks.
const SHARE: f64 = 0.01;

/// A trial changes the number by one in so many.
const STEP: usize = 8;

/// Least number of ended tasks before a trial, and the number kept of later ones.
const BEFORE: usize = 8;
const KEPT: usize = 1_024;

/// Least number of tasks that a trial measures.
const LEAST_DUE: usize = 3;

/// Spread of the ends of rounds, in times of a task, above which the last round does not depend on the number of tasks.
const BLURRED: f64 = 0.3;

/// The controller.
pub(super) struct AtOnceLearner {
    full: usize,
    /// The number at once that is best so far, and tasks that lived with it.
    base: RateAt,
    samples: Vec<TaskTimes>,
    trial: Option<AtOnceTrial>,
    /// The rates that were measured, full width included; empty if nothing can be learnt.
    rates: BTreeMap<u32, RateAt>,
    lives: LiveTasks,
    /// The program of the first task.
    program: Option<Arc<str>>,
    /// What failed trials have cost, in tasks; below zero what the last success gains.
    spent: f64,
    /// Failed trials since the last success.
    failures: u32,
    is_upward: bool,
    state: Option<AtOnceState>,
    /// The state that the user knows.
    pub(super) told: Option<AtOnceState>,
}

impl AtOnceLearner {
    /// Begins at full width, or with the number that is best for so many tasks by the rates of an earlier run.
    pub(super) fn new(full: usize, known: &[RateAt], tasks: usize) -> AtOnceLearner {
        let is_of_this = known.iter().map(RateAt::number).max() == Some(full);
        let known = known.iter().copied().filter(|_| is_of_this);
        let known: Vec<RateAt> = known.collect();
        let base = RateAt::full(full);
        let mut at_once = AtOnceLearner {
            full,
            base: best(&known, tasks).unwrap_or(base),
            samples: Vec::new(),
            trial: None,
            rates: BTreeMap::from([(base.jobs, base)]),
            lives: LiveTasks::default(),
            program: None,
            spent: 0.0,
            failures: is_of_this.into(),
            is_upward: is_of_this,
            state: None,
            told: None,
        };
        at_once
            .rates
            .extend(known.iter().map(|rate| (rate.jobs, *rate)));
        at_once.compare_with(known.iter().rev().nth(1).copied());
        at_once
    }

    /// Full width.
    pub(super) fn full(&self) -> usize {
        self.full
    }

    /// Keeps full width, because nothing can be learnt here.
    pub(super) fn refuse(&mut self, why: Untried) {
        self.base = RateAt::full(self.full);
        self.rates.clear();
        self.trial = None;
        self.state = Some(AtOnceState::Untried(why));
    }

    /// Maximum number of live tasks.
    pub(super) fn limit(&self) -> usize {
        let trial = self.trial.as_ref().filter(|trial| trial.back.is_none());
        trial.map_or(self.base.number(), |trial| trial.jobs)
    }

    /// Notes that tasks were admitted. `live` is their number now.
    pub(super) fn admitted<'a>(&mut self, live: usize, tasks: impl Iterator<Item = &'a TaskSpec>) {
        if live != self.lives.level {
            self.begin_epoch(live);
        }
        for spec in tasks {
            if self.lives.turns == 0 {
                self.program.clone_from(&spec.program);
            }
            if spec.cpus > 1 {
                self.refuse(Untried::Wide);
            } else if spec.program.is_none() || spec.program != self.program {
                self.refuse(Untried::Unlike);
            }
            self.lives.begin(spec.id);
        }
    }

    /// Notes that from now on so many tasks are live, or that all were paused.
    pub(super) fn begin_epoch(&mut self, live: usize) {
        self.samples = self.lives.complete(&self.samples);
        if let Some(trial) = &mut self.trial {
            trial.samples = self.lives.complete(&trial.samples);
        }
        self.lives.begin_epoch(live);
    }

    /// Forgets a task, which ended or is lost.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.lives.forget(id);
    }

    /// Learns from the end of a task. `left` is the number of tasks that wait to be admitted.
    pub(super) fn ended(&mut self, id: TaskId, time: Nanos, cpu: Reading<Nanos>, left: usize) {
        let limit = self.limit();
        let sample = self.lives.ended(id, time, cpu);
        let sample = sample.filter(|_| self.lives.level == limit && !self.rates.is_empty());
        match self.trial.take() {
            None => {
                self.samples.extend(sample);
                if sample.is_some() && self.samples.len().is_multiple_of(BEFORE) {
                    self.trial = self.explore(left);
                }
            }
            Some(mut trial) if trial.back.is_none() => {
                trial.ended += 1;
                trial.samples.extend(sample);
                let complete = self.lives.complete(&trial.samples).len();
                // Beside long tasks nothing may ever be complete.
                let is_due = complete >= trial.due || trial.samples.len() >= 4 * trial.due;
                trial.back = is_due.then_some(self.samples.len());
                self.trial = Some(trial);
            }
            Some(trial) => {
                self.samples.extend(sample);
                let is_due = self.samples.len() >= trial.back.unwrap_or(0) + trial.due;
                self.trial = match is_due || left == 0 {
                    true => self.judge(trial, left),
                    false => Some(trial),
                };
            }
        }
    }

    /// Begins a trial, if one is worth its cost.
    fn explore(&mut self, left: usize) -> Option<AtOnceTrial> {
        if self.samples.len() > 2 * KEPT {
            self.samples.drain(..KEPT);
        }
        let samples = self.lives.complete(&self.samples);
        if samples.len() < BEFORE.max(self.base.number()) {
            return None;
        }
        let spread = spread(&samples);
        let jobs = self.next()?;
        let step = step_to(self.base.number(), jobs).abs();
        // Enough for an effect as large as the step to be seen.
        let ratio = 3.0 * spread / step;
        let due = libm::ceil(ratio * ratio) as usize;
        let due = due.max(jobs).max(LEAST_DUE);
        let tasks = self.lives.turns as usize + left;
        let cost = self.cost(jobs, due, spread, tasks) * self.doubled();
        if cost <= SHARE * tasks as f64 - self.spent && left >= 2 * (jobs + due) {
            return Some(AtOnceTrial::new(jobs, due));
        }
        if !matches!(self.state, Some(AtOnceState::Found { .. })) {
            self.state = Some(few(cost));
        }
        None
    }

    /// The next number to try.
    fn next(&self) -> Option<usize> {
        let jobs = self.base.number();
        let step = (jobs / STEP).max(1);
        let is_upward = self.is_upward && jobs < self.full || jobs == 1;
        let next = match is_upward {
            true => (jobs + step).min(self.full),
            false => jobs - step,
        };
        (next != jobs).then_some(next)
    }

    /// What a trial costs at most, in tasks. Tasks of equal length end in rounds: then it costs at least one.
    fn cost(&self, jobs: usize, due: usize, spread: f64, tasks: usize) -> f64 {
        let lost = libm::exp(step_to(self.base.number(), jobs).abs()) - 1.0;
        let cost = lost * (due + jobs) as f64;
        let rounds = tasks as f64 / self.full as f64;
        if spread * rounds.sqrt() > BLURRED {
            cost
        } else {
            cost.max(self.full as f64)
        }
    }

    /// How often the next failed trial counts.
    fn doubled(&self) -> f64 {
        f64::from(1_u32 << self.failures.min(16))
    }

    /// Judges a trial, and returns it if it goes on.
    fn judge(&mut self, mut trial: AtOnceTrial, left: usize) -> Option<AtOnceTrial> {
        let samples = self.lives.complete(&self.samples);
        let best = self.rates.values().map(|rate| rate.rate);
        let best = best.fold(self.base.rate, f64::max);
        let Some(judgement) = trial.judge(&samples, self.base, best) else {
            self.lose(&trial);
            return None;
        };
        let lost = -judgement.gain * trial.ended as f64;
        let may_lose = SHARE * f64::from(self.lives.turns) - self.spent;
        let may_go_on = left > 4 * trial.due && lost <= may_lose;
        if judgement.verdict == TrialVerdict::Unsure && may_go_on && trial.extend() {
            return Some(trial);
        }
        let found = judgement.rate;
        self.rates.insert(found.jobs, found);
        if judgement.verdict == TrialVerdict::Better {
            let old = std::mem::replace(&mut self.base, found);
            self.samples = trial.samples;
            self.spent -= (judgement.gain * left as f64).max(0.0);
            self.failures = 0;
            self.compare_with(Some(old));
        } else {
            self.fail(lost);
            self.compare_with(Some(found));
        }
        None
    }

    /// Ends a trial that shows nothing.
    pub(super) fn give_up(&mut self) {
        if let Some(mut trial) = self.trial.take() {
            trial.ended += 1;
            self.lose(&trial);
        }
    }

    /// Notes what a trial has cost that shows nothing.
    fn lose(&mut self, trial: &AtOnceTrial) {
        let step = step_to(self.base.number(), trial.jobs).abs();
        self.fail(step * trial.ended as f64);
    }

    /// Notes that a trial has failed, which has cost so many tasks.
    fn fail(&mut self, lost: f64) {
        self.spent += lost.max(0.0) * self.doubled();
        // The last success pays for nothing more.
        self.spent = self.spent.max(0.0);
        self.failures += 1;
        self.is_upward = !self.is_upward;
    }

    /// Notes how the best number compares with full width, or full width with another one.
    fn compare_with(&mut self, other: Option<RateAt>) {
        let is_full = self.base.number() == self.full;
        if let Some(other) = if is_full { other } else { Some(self.base) } {
            let full = self.full as u32;
            self.state = Some(AtOnceState::Found {
                other,
                full,
                is_full,
            });
        }
    }

    /// What the user does not know yet. `left` is the number of tasks that wait to be admitted.
    pub(super) fn news(&mut self, left: usize) -> Option<AtOnceState> {
        if left == 0 && self.lives.turns > 0 && self.full > 1 && self.state.is_none() {
            let jobs = self.next().unwrap_or(1);
            let cost = self.cost(jobs, jobs.max(LEAST_DUE), 0.0, 0);
            self.state = Some(few(cost));
        }
        let kind = |state: Option<AtOnceState>| state.map(|state| state.kind());
        let is_new = kind(self.state) != kind(self.told);
        self.told = self.state;
        self.told.filter(|_| is_new)
    }

    /// What was measured, for later runs; empty if that is full width alone.
    pub(super) fn learnt(&self) -> Vec<RateAt> {
        let rates = self.rates.values().copied();
        rates.filter(|_| self.rates.len() > 1).collect()
    }
}

/// The state in a run too short for a trial that costs so many tasks.
fn few(cost: f64) -> AtOnceState {
    AtOnceState::Untried(Untried::Few(libm::ceil(cost / SHARE) as u32))
}
