//! A number at once that is being tried, and the judgement of it.

use super::effect::{TaskTimes, TimeEffect, effect};
use super::rates::{LOSS, RateAt};

/// A trial measures twice as many tasks each time that it looks good but is not sure.
const MOST_PARTS: u32 = 6;

/// A trial.
pub(super) struct AtOnceTrial {
    pub(super) jobs: usize,
    /// Tasks that lived with it.
    pub(super) samples: Vec<TaskTimes>,
    /// Least number of these, and of those that live with the old number afterwards.
    pub(super) due: usize,
    /// All tasks that ended meanwhile.
    pub(super) ended: usize,
    /// Samples of the old number when that was admitted again.
    pub(super) back: Option<usize>,
    parts: u32,
}

/// What a trial has shown.
pub(super) struct TrialJudgement {
    pub(super) verdict: TrialVerdict,
    /// The new rate.
    pub(super) rate: RateAt,
    /// How far it is above the old one, as a logarithm.
    pub(super) gain: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum TrialVerdict {
    Better,
    Unsure,
    Worse,
}

impl AtOnceTrial {
    pub(super) fn new(jobs: usize, due: usize) -> AtOnceTrial {
        AtOnceTrial {
            jobs,
            samples: Vec::new(),
            due,
            ended: 0,
            back: None,
            parts: 1,
        }
    }

    /// Goes on for twice as many tasks; false if it took too long.
    pub(super) fn extend(&mut self) -> bool {
        self.due *= 2;
        self.parts += 1;
        self.back = None;
        self.parts <= MOST_PARTS
    }

    /// Compares it with tasks that lived with the old number, whose rate is `old`; `None` if too few are known. `best` is the
    /// best known rate.
    pub(super) fn judge(
        &self,
        samples: &[TaskTimes],
        old: RateAt,
        best: f64,
    ) -> Option<TrialJudgement> {
        let step = step_to(old.number(), self.jobs);
        let time = effect(samples, &self.samples, |sample| Some(sample.time))?;
        let gain = TimeEffect {
            mean: step - time.mean,
            ..time
        };
        let cpu = effect(samples, &self.samples, |sample| sample.cpu);
        let above_best = libm::log(old.rate / best) + gain.mean;
        let saves = step < 0.0 && cpu.is_some_and(|cpu| cpu.mean + cpu.half < 0.0);
        let verdict = if gain.mean > gain.half || saves && above_best - gain.half >= -LOSS {
            TrialVerdict::Better
        } else if gain.mean > 0.0 || saves && above_best >= -LOSS {
            TrialVerdict::Unsure
        } else {
            TrialVerdict::Worse
        };
        let rate = RateAt {
            jobs: self.jobs as u32,
            rate: old.rate * libm::exp(gain.mean),
            cpu: cpu
                .zip(old.cpu)
                .map(|(cpu, of_old)| of_old * libm::exp(cpu.mean)),
            ends: self.samples.len() as u32,
        };
        Some(TrialJudgement {
            verdict,
            rate,
            gain: gain.mean,
        })
    }
}

/// The logarithm of the step from one number to another.
pub(super) fn step_to(from: usize, to: usize) -> f64 {
    libm::log(to as f64 / from as f64)
}
