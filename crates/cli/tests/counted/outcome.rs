//! What came of a run, by the truth, and how well its record says so.

use crate::candidates::{CANDIDATES, LAWS, MIXES};
use crate::figures::{errors_of, jobs, mean, true_slowdown};
use crate::run::EndedRun;
use serde_json::Value;

/// A run of the comparison, by indices in its tables.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) law: usize,
    pub(crate) mix: usize,
    pub(crate) repeat: usize,
    pub(crate) candidate: usize,
}

/// The mean error of a figure over the jobs that have it.
#[derive(Clone, Copy)]
pub(crate) struct JobError {
    pub(crate) mean: f64,
    /// The share of the jobs.
    pub(crate) share: f64,
}

pub(crate) struct Outcome {
    pub(crate) place: Place,
    /// The policy that decided.
    pub(crate) policy: String,
    /// Time from the start until the last job ended.
    pub(crate) makespan_s: f64,
    pub(crate) mean_turnaround_s: f64,
    pub(crate) mean_slowdown: f64,
    /// The greatest slowdown by the least.
    pub(crate) unfairness: f64,
    pub(crate) energy_j: f64,
    pub(crate) progress: JobError,
    pub(crate) learnt: JobError,
    pub(crate) slowdown: JobError,
    /// Relative errors of what the record says of the machine.
    pub(crate) energy_error: Option<f64>,
    pub(crate) reads_error: Option<f64>,
}

impl Outcome {
    pub(crate) fn of(ended: &EndedRun, place: Place) -> Outcome {
        let slowdowns: Vec<f64> = jobs(ended).map(|job| true_slowdown(ended, job)).collect();
        let finishes = finishes_s(ended);
        let [progress, learnt, slowdown] =
            errors_of(ended).means().map(|(mean, number)| JobError {
                mean,
                share: number as f64 / slowdowns.len() as f64,
            });
        let joules = ended.record["energy"]["joules"].as_f64();
        Outcome {
            place,
            policy: ended.record["policy"].as_str().expect("a name").to_owned(),
            makespan_s: greatest(&finishes),
            mean_turnaround_s: mean(&finishes),
            mean_slowdown: mean(&slowdowns),
            unfairness: greatest(&slowdowns) / least(&slowdowns),
            energy_j: ended.machine.energy_j,
            progress,
            learnt,
            slowdown,
            energy_error: joules.map(|joules| joules / ended.machine.energy_j - 1.0),
            reads_error: reads_of_jobs(ended).map(|reads| reads / ended.machine.reads - 1.0),
        }
    }

    /// A line for a person who waits.
    pub(crate) fn line(&self) -> String {
        let Place {
            law,
            mix,
            repeat,
            candidate,
        } = self.place;
        format!(
            "{}, {}, repeat {}, {}: {:.2} s, mean {:.2} s, slowdown {:.2}, unfairness {:.2}, {:.0} J; \
             progress off by {:.1} % in {:.0} % of the jobs",
            LAWS[law].name,
            MIXES[mix].name,
            repeat + 1,
            CANDIDATES[candidate].name(),
            self.makespan_s,
            self.mean_turnaround_s,
            self.mean_slowdown,
            self.unfairness,
            self.energy_j,
            100.0 * self.progress.mean,
            100.0 * self.progress.share,
        )
    }
}

/// When the jobs ended. All have come at the start.
fn finishes_s(ended: &EndedRun) -> Vec<f64> {
    let time = |job: &Value| job["end_s"].as_f64().expect("it has ended");
    jobs(ended).map(time).collect()
}

/// None if the record lacks them for any job.
fn reads_of_jobs(ended: &EndedRun) -> Option<f64> {
    jobs(ended)
        .map(|job| job["counts"]["mm_reads"].as_f64())
        .sum()
}

pub(crate) fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub(crate) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
