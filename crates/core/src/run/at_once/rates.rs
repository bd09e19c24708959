//! At which rate tasks end with different numbers of them at once, as far as it was measured.

use super::LOSS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

impl RateAt {
    /// The rate at full width, to which all others are relative.
    pub(super) fn full(jobs: usize) -> RateAt {
        RateAt {
            jobs: jobs as u32,
            rate: 1.0,
            cpu: Some(1.0),
            ends: 0,
        }
    }

    /// The number of tasks at once.
    pub(super) fn number(&self) -> usize {
        self.jobs as usize
    }
}

/// The number of tasks at once with which so many tasks end first, by known rates; of equal ones the fewest, which use the
/// least CPU time.
pub(super) fn best(known: &BTreeMap<u32, RateAt>, tasks: usize) -> Option<RateAt> {
    let (&least, &most) = (known.keys().next()?, known.keys().next_back()?);
    let all: Vec<RateAt> = (least..=most).map(|jobs| between(known, jobs)).collect();
    let times = all.iter().map(|rate| time(rate, tasks));
    let first = times.fold(f64::INFINITY, f64::min);
    let is_first = |rate: &RateAt| time(rate, tasks) <= first * (1.0 + LOSS);
    all.into_iter().find(is_first)
}

/// The time that so many tasks take, as a multiple of a task's time at a rate of 1.
fn time(rate: &RateAt, tasks: usize) -> f64 {
    let jobs = f64::from(rate.jobs);
    let rounds = tasks as f64 / jobs;
    // The last round of many is blurred.
    let rounds = if rounds <= 2.0 {
        rounds.ceil()
    } else {
        rounds + 0.5
    };
    rounds * jobs / rate.rate
}

/// The rate at a number between the least and the greatest known one, on the straight line of the logarithms between its
/// neighbours.
fn between(known: &BTreeMap<u32, RateAt>, jobs: u32) -> RateAt {
    let below = known.range(..=jobs).next_back();
    let above = known.range(jobs..).next();
    let (Some((_, below)), Some((_, above))) = (below, above) else {
        return RateAt::full(jobs as usize);
    };
    if below.jobs == above.jobs {
        return *below;
    }
    let log = |value: f64| libm::log(value);
    let width = log(f64::from(above.jobs) / f64::from(below.jobs));
    let part = log(f64::from(jobs) / f64::from(below.jobs)) / width;
    let mean = |low: f64, high: f64| libm::exp(log(low) + part * log(high / low));
    RateAt {
        jobs,
        rate: mean(below.rate, above.rate),
        cpu: below.cpu.zip(above.cpu).map(|(low, high)| mean(low, high)),
        ends: below.ends.min(above.ends),
    }
}
