//! How many tasks are admitted at once (`--jobs auto`), learnt from the times of those that ended.
//!
//! Tasks that take W(n) each while n are live end at the rate X(n) = n / W(n) (Little's law). Fewer at once end sooner only if W
//! grows faster than n. So the controller tries another n for one generation of tasks, and compares ([`effect`]) those that lived
//! wholly under it with those before. It keeps the new n if X rises, or if X stays within a hundredth of the best and CPU
//! time falls. Then it tries a step twice as long, else it goes back.
//!
//! All that failed trials may cost together is a two-hundredth of the tasks, and each counts twice as much as the one before. A trial is not made if the spread of times would hide its
//! effect.

mod effect;
#[cfg(test)]
mod tests;

use crate::expected::ExpectedFrom;
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;
use effect::{Effect, Sample, effect, spread, student};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What failed trials may cost together, as a share of all tasks.
const SHARE: f64 = 0.005;

/// How far the rate may fall below the best for less CPU time, as a logarithm.
const LOSS: f64 = 0.01;

/// Least step of a trial, as a logarithm.
const LEAST_STEP: f64 = 0.02;

/// Tasks that end in a trial for each one at once: before those that it measures, others end.
const TRANSITION: f64 = 1.3;

/// Tasks that must have ended before a trial: at first, and kept of later ones.
const BEFORE: usize = 8;
const KEPT: usize = 512;

/// Tasks of a trial that are judged first; twice as many each time that it looks good but is not sure.
const LEAST_JUDGED: usize = 3;
const JUDGED: usize = 32;
const JUDGEMENTS: u32 = 6;

/// Spread of the ends of rounds, in times of a task, above which the last round does not depend on the number of tasks.
const BLURRED: f64 = 0.3;

/// Tasks left for each one at once, below which nothing is tried.
const LEAST_LEFT: usize = 2;

/// The rate of ends with a number of tasks at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateAt {
    /// The number of tasks at once.
    pub jobs: u32,
    /// Tasks that end in a time, relative to full width.
    pub rate: f64,
    /// CPU time of a task, relative to full width; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Tasks that were measured.
    pub ends: u32,
}

/// The number at once that is better than full width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtOnceFound {
    /// What it gains.
    pub best: RateAt,
    /// Full width.
    pub full: u32,
}

/// A task that ended well.
pub(super) struct End {
    pub(super) id: TaskId,
    /// Time from start to end.
    pub(super) time: Nanos,
    pub(super) cpu: Option<Nanos>,
    /// The time expected of this very task, for which its own is divided.
    pub(super) expected: Option<Nanos>,
}

/// A live task.
struct Live {
    epoch: u32,
    turn: u32,
    kind: u32,
}

/// The controller.
pub(super) struct AtOnce {
    full: usize,
    /// The number at once that is best so far.
    base: RateAt,
    trial: Option<usize>,
    /// What was measured of each number, full width included.
    rates: BTreeMap<u32, RateAt>,
    /// Tasks live since the last change of their number, which began this epoch.
    level: usize,
    epoch: u32,
    turns: u32,
    live: BTreeMap<TaskId, Live>,
    kinds: BTreeMap<(Arc<str>, bool), u32>,
    /// Samples of the base, and of the trial.
    old: Vec<Sample>,
    new: Vec<Sample>,
    judgements: u32,
    ended: usize,
    /// Tasks that had ended when the trial began.
    began: usize,
    /// What failed trials have cost, in tasks; below zero what the last success gains.
    spent: f64,
    /// The step of the trial, and the least one that would have shown something.
    step: usize,
    least_step: usize,
    failures: u32,
    is_upward: bool,
    /// Something was found that nobody was told.
    has_news: bool,
}

impl AtOnce {
    /// Begins at full width.
    pub(super) fn new(full: usize) -> AtOnce {
        let base = RateAt {
            jobs: full as u32,
            rate: 1.0,
            cpu: Some(1.0),
            ends: 0,
        };
        AtOnce {
            full,
            base,
            trial: None,
            rates: BTreeMap::from([(base.jobs, base)]),
            level: 0,
            epoch: 0,
            turns: 0,
            live: BTreeMap::new(),
            kinds: BTreeMap::new(),
            old: Vec::new(),
            new: Vec::new(),
            judgements: 0,
            ended: 0,
            began: 0,
            spent: 0.0,
            step: 1,
            least_step: 1,
            failures: 0,
            is_upward: false,
            has_news: false,
        }
    }

    /// Begins with the number at which so many tasks end first, by the rates of an earlier run at this full width.
    pub(super) fn recall(&mut self, known: &[RateAt], tasks: usize) {
        let is_of_this = known.iter().any(|rate| rate.jobs as usize == self.full);
        if !is_of_this || self.turns > 0 {
            return;
        }
        self.rates = known.iter().map(|rate| (rate.jobs, *rate)).collect();
        let least = self.rates.keys().next().map_or(1, |&jobs| jobs as usize);
        let times: Vec<f64> = (least..=self.full)
            .map(|jobs| self.time_of(jobs, tasks))
            .collect();
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        // Of equal ones the fewest, which use the least CPU time.
        let best = times.iter().position(|&time| time <= first * (1.0 + LOSS));
        self.base = self.rate_at(least + best.unwrap_or(self.full - least));
        // Where the fewest known are best, fewer still may be better.
        self.is_upward = self.base.jobs as usize > least;
        self.step = (self.full - self.base.jobs as usize).max(1);
        self.has_news = self.found().is_some();
    }

    /// The time that so many tasks take, as a multiple of a task's time at full width.
    fn time_of(&self, jobs: usize, tasks: usize) -> f64 {
        let rounds = tasks as f64 / jobs as f64;
        // The last round of many is blurred.
        let rounds = if rounds <= 2.0 {
            rounds.ceil()
        } else {
            rounds + 0.5
        };
        rounds * jobs as f64 / self.rate_at(jobs).rate
    }

    /// The rate at a number between two known ones, on the straight line of their logarithms.
    fn rate_at(&self, jobs: usize) -> RateAt {
        let jobs = jobs as u32;
        let below = self.rates.range(..=jobs).next_back();
        let above = self.rates.range(jobs..).next();
        let (Some((_, below)), Some((_, above))) = (below, above) else {
            return below.or(above).map_or(self.base, |(_, rate)| *rate);
        };
        if below.jobs == above.jobs {
            return *below;
        }
        let log = |jobs: u32| libm::log(f64::from(jobs));
        let part = (log(jobs) - log(below.jobs)) / (log(above.jobs) - log(below.jobs));
        let between = |low: f64, high: f64| {
            let (low, high) = (libm::log(low), libm::log(high));
            libm::exp(low + part * (high - low))
        };
        RateAt {
            jobs,
            rate: between(below.rate, above.rate),
            cpu: Some(between(below.cpu.unwrap_or(1.0), above.cpu.unwrap_or(1.0))),
            ends: below.ends.min(above.ends),
        }
    }

    /// Begins anew if full width has changed.
    pub(super) fn resize(&mut self, full: usize) {
        if full != self.full {
            let (ended, spent) = (self.ended, self.spent);
            *self = AtOnce {
                ended,
                spent,
                turns: self.turns,
                epoch: self.epoch + 1,
                kinds: std::mem::take(&mut self.kinds),
                ..AtOnce::new(full)
            };
        }
    }

    /// Maximum number of live tasks.
    pub(super) fn limit(&self) -> usize {
        self.trial.unwrap_or(self.base.jobs as usize)
    }

    /// Notes that tasks were admitted. `live` is their number now.
    pub(super) fn admitted<'a>(
        &mut self,
        live: usize,
        tasks: impl Iterator<Item = (TaskId, &'a TaskSpec)>,
    ) {
        if live != self.level {
            self.level = live;
            self.epoch += 1;
        }
        for (id, spec) in tasks {
            self.turns += 1;
            let Some(template) = &spec.template else {
                continue;
            };
            let next = self.kinds.len() as u32;
            let is_expected = expected_of(spec).is_some();
            let kind = self.kinds.entry((template.clone(), is_expected));
            let task = Live {
                epoch: self.epoch,
                turn: self.turns,
                kind: *kind.or_insert(next),
            };
            self.live.insert(id, task);
        }
    }

    /// Forgets a task that ended without telling anything.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.live.remove(&id);
    }

    /// Notes the end of a task. `left` is the number of tasks that wait to be admitted.
    pub(super) fn ended(&mut self, end: &End, left: usize) {
        self.ended += 1;
        let Some(task) = self.live.remove(&end.id) else {
            return;
        };
        // It lived with another number of tasks, or the number is not what the controller wants.
        if task.epoch != self.epoch || self.level != self.limit() || end.time == Nanos::ZERO {
            return;
        }
        let log = |time: Nanos| libm::log(time.as_s());
        let expected = end.expected.map_or(0.0, log);
        let cpu = end.cpu.filter(|cpu| *cpu > Nanos::ZERO);
        let sample = Sample {
            kind: task.kind,
            turn: task.turn,
            time: log(end.time) - expected,
            cpu: cpu.map(|cpu| log(cpu) - expected),
        };
        if let Some(jobs) = self.trial {
            self.new.push(sample);
            self.judge(jobs, left);
        } else {
            self.old.push(sample);
            if self.old.len() > 2 * KEPT {
                self.old.drain(..KEPT);
            }
            let is_due = self.old.len().is_multiple_of(BEFORE);
            if is_due && left >= LEAST_LEFT * self.limit() {
                self.explore(left);
            }
        }
    }

    /// The samples without a gap: all tasks of their kind that started before them have ended, too. Those that end
    /// first would be the short ones.
    fn complete(&self, samples: &[Sample]) -> Vec<Sample> {
        let mut oldest: BTreeMap<u32, u32> = BTreeMap::new();
        for task in self.live.values().filter(|task| task.epoch == self.epoch) {
            let turn = oldest.entry(task.kind).or_insert(task.turn);
            *turn = task.turn.min(*turn);
        }
        let is_complete =
            |sample: &&Sample| oldest.get(&sample.kind).is_none_or(|&turn| sample.turn < turn);
        samples.iter().filter(is_complete).copied().collect()
    }

    /// Begins a trial, if one is worth its cost.
    fn explore(&mut self, left: usize) {
        let old = self.complete(&self.old);
        let (spread, alike) = spread(&old);
        if alike < BEFORE || 2 * alike < old.len() {
            return;
        }
        let jobs = self.base.jobs as usize;
        let budget = self.budget(spread, left);
        let reach = if self.is_upward {
            self.full - jobs
        } else {
            jobs.div_ceil(3)
        };
        let (mut chosen, mut least) = (None, 1);
        for step in 1..=reach {
            let to = if self.is_upward {
                jobs + step
            } else {
                jobs - step
            };
            let log = step_of(jobs, to).abs();
            let ends = 1.0 / alike as f64 + 1.0 / judged(to) as f64;
            // The trend that is fitted along doubles the interval.
            let hidden = 2.0 * student(alike as f64) * spread * ends.sqrt();
            let cost = TRANSITION * to.max(LEAST_JUDGED) as f64 * log;
            let may = log >= hidden.max(LEAST_STEP) && cost <= budget;
            if may && chosen.is_none() {
                least = step;
            }
            if may && (chosen.is_none() || step <= self.step) {
                chosen = Some((to, step));
            }
        }
        if let Some((to, step)) = chosen {
            (self.trial, self.step, self.began) = (Some(to), step, self.ended);
            self.least_step = least;
            (self.old, self.new, self.judgements) = (old, Vec::new(), 0);
        }
    }

    /// What a trial may cost, in tasks. Tasks of equal length end in rounds: then it may also fill the last one, but not begin
    /// another, unless that is short beside the run.
    fn budget(&self, spread: f64, left: usize) -> f64 {
        let tasks = self.turns as usize + left;
        let share = SHARE * tasks as f64;
        let rounds = tasks as f64 / self.full as f64;
        let is_blurred = spread * rounds.sqrt() > BLURRED;
        let room = (self.full - tasks % self.full) % self.full;
        if is_blurred || self.full as f64 <= share || self.base.jobs as usize != self.full {
            share - self.spent
        } else {
            (share - self.spent).min(room as f64)
        }
    }

    /// Judges the trial, if enough of its tasks have ended.
    fn judge(&mut self, jobs: usize, left: usize) {
        let due = judged(jobs) << self.judgements;
        // Beside long tasks nothing may ever be complete.
        let is_late = self.new.len() >= 4 * due.max(jobs);
        if self.new.len() < due {
            return;
        }
        let new = self.complete(&self.new);
        if new.len() < due && !is_late {
            return;
        }
        self.judgements += 1;
        let step = step_of(self.base.jobs as usize, jobs);
        let Some(time) = effect(&self.old, &new, |sample| Some(sample.time)) else {
            return self.go_back(step.abs());
        };
        let cpu = effect(&self.old, &new, |sample| sample.cpu);
        let gain = step - time.mean;
        let found = self.rate_of(jobs, gain, cpu, new.len());
        let verdict = self.verdict(jobs, gain, time.half, cpu);
        let cost = -gain * (self.ended - self.began) as f64;
        let may_go_on = self.judgements < JUDGEMENTS && cost <= SHARE * self.ended as f64;
        if verdict == Verdict::Unsure && may_go_on && left > 0 {
            return;
        }
        self.rates.insert(found.jobs, found);
        if verdict != Verdict::Better {
            return self.go_back((-gain).max(-step));
        }
        self.spent -= (gain * left as f64).max(0.0);
        self.failures = 0;
        self.base = found;
        self.old = new;
        self.trial = None;
        self.step *= 2;
        self.has_news = true;
        if jobs == self.full {
            self.is_upward = false;
        }
        if left >= LEAST_LEFT * jobs {
            self.explore(left);
        }
    }

    /// Ends a trial that may have lost this much of the rate, as a logarithm.
    fn go_back(&mut self, loss: f64) {
        let tasks = (self.ended - self.began) as f64;
        self.spent += loss.max(0.0) * tasks * f64::from(1_u32 << self.failures.min(16));
        self.trial = None;
        if self.step > self.least_step {
            // It went too far.
            self.step = (self.step / 4).max(1);
            return;
        }
        // The last success pays for nothing more.
        self.spent = self.spent.max(0.0);
        self.failures += 1;
        self.is_upward = !self.is_upward && (self.base.jobs as usize) < self.full;
    }

    fn verdict(&self, jobs: usize, gain: f64, half: f64, cpu: Option<Effect>) -> Verdict {
        let best = self.rates.values().map(|rate| rate.rate);
        let best = best.fold(self.base.rate, f64::max);
        let above_best = libm::log(self.base.rate / best) + gain;
        let is_fewer = jobs < self.base.jobs as usize;
        let saves = cpu.is_some_and(|cpu| cpu.mean + cpu.half < 0.0);
        if gain > half || is_fewer && saves && above_best - half >= -LOSS {
            Verdict::Better
        } else if gain > 0.0 || is_fewer && saves && above_best >= -LOSS {
            Verdict::Unsure
        } else {
            Verdict::Worse
        }
    }

    fn rate_of(&self, jobs: usize, gain: f64, cpu: Option<Effect>, ends: usize) -> RateAt {
        let of_base = self.base.cpu;
        RateAt {
            jobs: jobs as u32,
            rate: self.base.rate * libm::exp(gain),
            cpu: cpu.and_then(|cpu| Some(of_base? * libm::exp(cpu.mean))),
            ends: ends as u32,
        }
    }

    /// What is better than full width, if anything is.
    pub(super) fn found(&self) -> Option<AtOnceFound> {
        let is_found = (self.base.jobs as usize) < self.full;
        is_found.then_some(AtOnceFound {
            best: self.base,
            full: self.full as u32,
        })
    }

    /// What was found since the last call, once no step follows. `left` is the number of tasks that wait to be admitted.
    pub(super) fn news(&mut self, left: usize) -> Option<AtOnceFound> {
        let is_settled = self.trial.is_none() || left == 0;
        let is_news = self.has_news && is_settled;
        self.has_news &= !is_settled;
        self.found().filter(|_| is_news)
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
    jobs.clamp(LEAST_JUDGED, JUDGED)
}

/// The time that is expected of this very task.
pub(super) fn expected_of(spec: &TaskSpec) -> Option<Nanos> {
    let expected = spec.expected.filter(|expected| expected.from == ExpectedFrom::Same);
    let time = expected.map(|expected| expected.time);
    time.filter(|time| *time > Nanos::ZERO)
}

/// The logarithm of the step from one number to another.
fn step_of(from: usize, to: usize) -> f64 {
    libm::log(to as f64 / from as f64)
}
