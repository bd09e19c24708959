//! How many tasks are admitted at once (`--jobs auto`), learnt from the times of those that ended.
//!
//! Tasks that take W(n) each while n are live end at the rate X(n) = n / W(n) (Little's law). Fewer at once end sooner only if W
//! grows faster than n. So the controller tries another n for one generation of tasks, and compares ([`effect`]) those that lived
//! wholly under it ([`lives`]) with those before. It keeps the new n if X rises, or if X stays within a hundredth of the best and
//! CPU time falls. Then it tries a step twice as long, else it goes back.
//!
//! All that failed trials may cost together is a share of the tasks, and each counts twice as much as the one before. A trial
//! is not made if the spread of times would hide its effect.

mod effect;
mod lives;
mod rates;
#[cfg(test)]
mod tests;

use crate::task::{TaskId, TaskSpec};
use effect::{Effect, Sample, effect, spread, student};
pub(super) use lives::End;
use lives::Lives;
pub use rates::RateAt;
use rates::best;
use std::collections::BTreeMap;

/// What failed trials may cost together, as a share of all tasks.
const SHARE: f64 = 0.005;

/// How far the rate may fall below the best for less CPU time, as a logarithm.
const LOSS: f64 = 0.01;

/// Least step of a trial, as a logarithm.
const LEAST_STEP: f64 = 0.02;

/// Tasks that end in a trial for each one at once: before those that it measures, others end.
const TRANSITION: f64 = 1.3;

/// Tasks that must have ended before a trial, besides a generation; and those kept of later ones.
const BEFORE: usize = 8;
const KEPT: usize = 1_024;

/// A trial is judged after a generation, so that all parts of the machine count, but not before so many tasks have ended. It
/// is judged again after twice as many each time that it looks good but is not sure.
const LEAST_JUDGED: usize = 3;
const JUDGEMENTS: u32 = 6;

/// Spread of the ends of rounds, in times of a task, above which the last round does not depend on the number of tasks.
const BLURRED: f64 = 0.3;

/// Tasks left for each one at once, below which nothing is tried.
const LEAST_LEFT: usize = 2;

/// The number at once that is better than full width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtOnceFound {
    /// What it gains.
    pub best: RateAt,
    /// Full width.
    pub full: u32,
}

/// A number at once that is being tried.
struct Trial {
    jobs: usize,
    /// The step to it, and the least one that would have shown something.
    step: usize,
    least_step: usize,
    samples: Vec<Sample>,
    judgements: u32,
    /// Tasks that had ended when it began.
    began: usize,
}

/// The controller.
pub(super) struct AtOnce {
    full: usize,
    /// The number at once that is best so far, and those that lived with it.
    base: RateAt,
    samples: Vec<Sample>,
    trial: Option<Trial>,
    /// What was measured of each number, full width included.
    rates: BTreeMap<u32, RateAt>,
    lives: Lives,
    ended: usize,
    /// What failed trials have cost, in tasks; below zero what the last success gains.
    spent: f64,
    /// Failed trials since the last success.
    failures: u32,
    /// Longest step of the next trial, if a shorter one shows something; and its direction.
    step: usize,
    is_upward: bool,
    /// Something was found that nobody was told.
    has_news: bool,
}

impl AtOnce {
    /// Begins at full width.
    pub(super) fn new(full: usize) -> AtOnce {
        let base = RateAt::full(full);
        AtOnce {
            full,
            base,
            samples: Vec::new(),
            trial: None,
            rates: BTreeMap::from([(base.jobs, base)]),
            lives: Lives::default(),
            ended: 0,
            spent: 0.0,
            failures: 0,
            step: 1,
            is_upward: false,
            has_news: false,
        }
    }

    /// Begins with the number that is best for so many tasks, by the rates of an earlier run at this full width.
    pub(super) fn recall(&mut self, known: &[RateAt], tasks: usize) {
        let is_of_this = known.iter().map(RateAt::number).max() == Some(self.full);
        if !is_of_this || self.lives.turns > 0 {
            return;
        }
        self.rates = known.iter().map(|rate| (rate.jobs, *rate)).collect();
        self.base = best(known, tasks).unwrap_or(self.base);
        self.step = (self.full - self.base.number()).max(1);
        // Where the fewest known are best, fewer still may be better.
        let has_fewer = self.rates.range(..self.base.jobs).next().is_some();
        self.is_upward = has_fewer && self.base.number() < self.full;
        self.has_news = true;
    }

    /// Begins anew if full width has changed.
    pub(super) fn resize(&mut self, full: usize) {
        if full != self.full {
            let lives = std::mem::take(&mut self.lives);
            let (ended, spent) = (self.ended, self.spent);
            *self = AtOnce {
                lives,
                ended,
                spent,
                ..AtOnce::new(full)
            };
        }
    }

    /// Maximum number of live tasks.
    pub(super) fn limit(&self) -> usize {
        let trial = self.trial.as_ref().map(|trial| trial.jobs);
        trial.unwrap_or(self.base.number())
    }

    /// Notes that tasks were admitted. `live` is their number now.
    pub(super) fn admitted<'a>(&mut self, live: usize, tasks: impl Iterator<Item = &'a TaskSpec>) {
        self.lives.admitted(live, tasks);
    }

    /// Forgets a task, which ended or is lost.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.lives.forget(id);
    }

    /// Learns from the end of a task. `left` is the number of tasks that wait to be admitted.
    pub(super) fn ended(&mut self, end: &End<'_>, left: usize) {
        self.ended += 1;
        let Some(sample) = self.lives.ended(end) else {
            return;
        };
        if self.lives.level != self.limit() {
            return;
        }
        if let Some(mut trial) = self.trial.take() {
            trial.samples.push(sample);
            self.trial = self.judge(trial, left);
            return;
        }
        self.samples.push(sample);
        if self.samples.len() > 2 * KEPT {
            self.samples.drain(..KEPT);
        }
        if self.samples.len().is_multiple_of(BEFORE) {
            self.explore(left);
        }
    }

    /// Begins a trial, if one is worth its cost.
    fn explore(&mut self, left: usize) {
        if left < LEAST_LEFT * self.limit() {
            return;
        }
        let samples = self.lives.complete(&self.samples);
        let (spread, alike) = spread(&samples);
        let is_few = alike < BEFORE.max(self.base.number());
        if is_few || 2 * alike < samples.len() {
            return;
        }
        let budget = self.budget(spread, left);
        let mut steps = Vec::new();
        for step in 1..=self.reach() {
            let to = self.number_after(step);
            let log = step_to(self.base.number(), to).abs();
            let ends = 1.0 / alike as f64 + 1.0 / judged(to) as f64;
            // The trend that is fitted along doubles the interval.
            let hidden = 2.0 * student(alike as f64) * spread * ends.sqrt();
            let cost = TRANSITION * to.max(LEAST_JUDGED) as f64 * log;
            if log >= hidden.max(LEAST_STEP) && cost <= budget {
                steps.push(step);
            }
        }
        let Some(&least_step) = steps.first() else {
            return;
        };
        steps.retain(|&step| step <= self.step.max(least_step));
        let step = steps.last().copied().unwrap_or(least_step);
        self.samples = samples;
        self.trial = Some(Trial {
            jobs: self.number_after(step),
            step,
            least_step,
            samples: Vec::new(),
            judgements: 0,
            began: self.ended,
        });
    }

    /// The longest step of a trial.
    fn reach(&self) -> usize {
        let jobs = self.base.number();
        match self.is_upward {
            true => self.full - jobs,
            false => jobs.div_ceil(3).min(jobs - 1),
        }
    }

    fn number_after(&self, step: usize) -> usize {
        let jobs = self.base.number();
        match self.is_upward {
            true => jobs + step,
            false => jobs - step,
        }
    }

    /// What a trial may cost, in tasks. Tasks of equal length end in rounds: then it may also fill the last one, but not begin
    /// another, unless that is short beside the run.
    fn budget(&self, spread: f64, left: usize) -> f64 {
        let tasks = self.lives.turns as usize + left;
        let budget = SHARE * tasks as f64 - self.spent;
        let rounds = tasks as f64 / self.full as f64;
        let is_blurred = spread * rounds.sqrt() > BLURRED;
        let is_narrow = self.base.number() < self.full;
        if is_blurred || is_narrow || 1.0 <= 2.0 * SHARE * rounds {
            return budget;
        }
        let room = (self.full - tasks % self.full) % self.full;
        budget.min(room as f64)
    }

    /// Judges a trial, if enough of its tasks have ended, and returns it if it goes on.
    fn judge(&mut self, mut trial: Trial, left: usize) -> Option<Trial> {
        let due = judged(trial.jobs) << trial.judgements;
        if trial.samples.len() < due {
            return Some(trial);
        }
        let samples = self.lives.complete(&trial.samples);
        // Beside long tasks nothing may ever be complete.
        if samples.len() < due && trial.samples.len() < 4 * due.max(trial.jobs) {
            return Some(trial);
        }
        trial.judgements += 1;
        let step = step_to(self.base.number(), trial.jobs);
        let Some(time) = effect(&self.samples, &samples, |sample| Some(sample.time)) else {
            self.go_back(&trial, step.abs());
            return None;
        };
        let gain = Effect {
            mean: step - time.mean,
            ..time
        };
        let cpu = effect(&self.samples, &samples, |sample| sample.cpu);
        let found = self.rate_of(&trial, gain.mean, cpu, samples.len());
        let cost = -gain.mean * (self.ended - trial.began) as f64;
        let may_go_on =
            left > 0 && trial.judgements < JUDGEMENTS && cost <= 2.0 * SHARE * self.ended as f64;
        match self.verdict(&trial, gain, cpu) {
            Verdict::Unsure if may_go_on => return Some(trial),
            Verdict::Better => {
                self.rates.insert(found.jobs, found);
                self.go_on(&trial, found, samples, gain.mean * left as f64);
                self.explore(left);
                return self.trial.take();
            }
            _ => {
                self.rates.insert(found.jobs, found);
                self.go_back(&trial, (-gain.mean).max(-step));
            }
        }
        None
    }

    /// Ends a trial that found something better, which gains so many tasks.
    fn go_on(&mut self, trial: &Trial, found: RateAt, samples: Vec<Sample>, gained: f64) {
        self.spent -= gained.max(0.0);
        self.failures = 0;
        self.base = found;
        self.samples = samples;
        self.step = 2 * trial.step;
        self.is_upward &= trial.jobs < self.full;
        self.has_news = true;
    }

    /// Ends a trial that may have lost this much of the rate, as a logarithm.
    fn go_back(&mut self, trial: &Trial, loss: f64) {
        let tasks = (self.ended - trial.began) as f64;
        self.spent += loss.max(0.0) * tasks * f64::from(1_u32 << self.failures.min(16));
        if trial.step > trial.least_step {
            // It went too far.
            self.step = (trial.step / 4).max(1);
            return;
        }
        // The last success pays for nothing more.
        self.spent = self.spent.max(0.0);
        self.failures += 1;
        self.step = 1;
        self.is_upward = !self.is_upward && self.base.number() < self.full;
    }

    fn verdict(&self, trial: &Trial, gain: Effect, cpu: Option<Effect>) -> Verdict {
        let best = self.rates.values().map(|rate| rate.rate);
        let best = best.fold(self.base.rate, f64::max);
        let above_best = libm::log(self.base.rate / best) + gain.mean;
        let saves =
            trial.jobs < self.base.number() && cpu.is_some_and(|cpu| cpu.mean + cpu.half < 0.0);
        if gain.mean > gain.half || saves && above_best - gain.half >= -LOSS {
            Verdict::Better
        } else if gain.mean > 0.0 || saves && above_best >= -LOSS {
            Verdict::Unsure
        } else {
            Verdict::Worse
        }
    }

    fn rate_of(&self, trial: &Trial, gain: f64, cpu: Option<Effect>, ends: usize) -> RateAt {
        let cpu = cpu.zip(self.base.cpu);
        RateAt {
            jobs: trial.jobs as u32,
            rate: self.base.rate * libm::exp(gain),
            cpu: cpu.map(|(cpu, of_base)| of_base * libm::exp(cpu.mean)),
            ends: ends as u32,
        }
    }

    /// What is better than full width, if that was found since the last call and no step follows. `left` is the number of
    /// tasks that wait to be admitted.
    pub(super) fn news(&mut self, left: usize) -> Option<AtOnceFound> {
        let is_news = self.has_news && (self.trial.is_none() || left == 0);
        self.has_news &= !is_news;
        let is_found = is_news && self.base.number() < self.full;
        is_found.then_some(AtOnceFound {
            best: self.base,
            full: self.full as u32,
        })
    }

    /// What was measured, for later runs; empty if that is full width alone.
    pub(super) fn learnt(&self) -> Vec<RateAt> {
        if self.rates.len() < 2 {
            return Vec::new();
        }
        self.rates.values().copied().collect()
    }
}

#[derive(PartialEq)]
enum Verdict {
    Better,
    Unsure,
    Worse,
}

/// Tasks of a trial that are judged first.
fn judged(jobs: usize) -> usize {
    jobs.max(LEAST_JUDGED)
}

/// The logarithm of the step from one number to another.
fn step_to(from: usize, to: usize) -> f64 {
    libm::log(to as f64 / from as f64)
}
