//! The lead of each job over the others, and how it changes the weights over time.

use super::lengths::Lengths;
use crate::policy::estimation::learnt_progress;
use crate::policy::prelude::*;
use std::collections::BTreeMap;

/// The lead that divides a job's weight by e: in quanta, and as a share of the mean progress. The greater one counts.
/// Smaller is fairer and slower.
const TAU_QUANTA: f64 = 1.0;
const TAU_SHARE: f64 = 0.01;
/// Greatest distance behind the median that counts, in tau.
const DEEPEST: f64 = 4.0;
/// Change of the logarithm of a job's weight in a quantum, per tau of its lead over the mean, if tau is a quantum.
const INTEGRAL_SHARE: f64 = 0.1;
/// Greatest lead that counts, in tau, and greatest integral.
pub(super) const MOST_LEAD: f64 = 3.0;
const MOST_INTEGRAL: f64 = 4.0;
/// Decay factor of the integral of a job that is too far behind, per quantum.
const FADES: f64 = 0.95;

/// The jobs' progress and leads.
pub(super) struct Leads {
    /// Progress of each task of the snapshot, in quanta, divided by its weight over the least.
    pub(super) progress: Vec<f64>,
    /// The tasks to compare with, and the median of their progress.
    counted: Vec<u32>,
    median: f64,
    /// Progress at lead 0.
    least: f64,
    tau: f64,
}

impl Leads {
    pub(super) fn new(round: &Round<'_>) -> Leads {
        let tasks = &round.snap.tasks;
        let progress = weighted_progress(round.snap, learnt_progress);
        let mut counted: Vec<u32> = (0..tasks.len() as u32)
            .filter(|&ix| depends_on_choice(round, ix))
            .collect();
        if counted.is_empty() {
            counted = (0..tasks.len() as u32).collect();
        }
        let mut all: Vec<f64> = counted.iter().map(|&ix| progress[ix as usize]).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let tau = f64::max(TAU_QUANTA, TAU_SHARE * mean);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let half = all.len() / 2;
        let median = if all.is_empty() {
            0.0
        } else {
            *all.select_nth_unstable_by(half, f64::total_cmp).1
        };
        Leads {
            progress,
            counted,
            median,
            least: least.max(median - DEEPEST * tau),
            tau,
        }
    }

    /// No leads: the order is that of the weights for the least mean turnaround, and `progress` their inverse.
    pub(super) fn by_end(snap: &Snapshot, lengths: &Lengths, quantum: Nanos) -> Leads {
        let weight = |task: &TaskView| lengths.weight(task, snap.now, quantum);
        let tasks = snap.tasks.iter();
        Leads {
            progress: tasks.map(|task| 1.0 / weight(task)).collect(),
            counted: Vec::new(),
            median: 0.0,
            least: 0.0,
            tau: f64::INFINITY,
        }
    }

    /// The lead of a task, in tau.
    pub(super) fn of(&self, ix: u32) -> f64 {
        (self.progress[ix as usize] - self.least).max(0.0) / self.tau
    }

    /// The progress at a lead.
    pub(super) fn at(&self, lead: f64) -> f64 {
        self.least + lead * self.tau
    }

    fn over_median(&self, ix: u32) -> f64 {
        let lead = (self.progress[ix as usize] - self.median) / self.tau;
        lead.clamp(-MOST_LEAD, MOST_LEAD)
    }
}

/// Whether a choice can change a task's progress. Only such tasks count for the median.
fn depends_on_choice(round: &Round<'_>, ix: u32) -> bool {
    let task = round.task(ix);
    !task.asleep
        && !task.is_fixed()
        && task.control.place
        && task.allowed.is_none()
        && !round.is_critical(ix)
}

/// The integral part of the logarithm of each job's weight.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Integrals(BTreeMap<TaskId, f64>);

impl Integrals {
    pub(super) fn of(&self, task: TaskId) -> f64 {
        self.0.get(&task).copied().unwrap_or(0.0)
    }

    /// Lowers the weights of the jobs that stay ahead, and raises those of the jobs that stay behind.
    pub(super) fn add(&mut self, snap: &Snapshot, leads: &Leads) {
        self.0.retain(|&id, _| snap.task(id).is_some());
        let count = leads.counted.len().max(1) as f64;
        let all = leads.counted.iter().map(|&ix| leads.over_median(ix));
        let mean = all.sum::<f64>() / count;
        let mut sum = 0.0;
        for &ix in &leads.counted {
            let integral = self.0.entry(snap.tasks[ix as usize].id).or_default();
            if leads.progress[ix as usize] < leads.least {
                // More weight would not bring it nearer, but would cost the others.
                *integral *= FADES;
            } else {
                let change = INTEGRAL_SHARE * (leads.over_median(ix) - mean) / leads.tau.max(1.0);
                *integral = (*integral - change).clamp(-MOST_INTEGRAL, MOST_INTEGRAL);
            }
            sum += *integral;
        }
        for &ix in &leads.counted {
            *self.0.entry(snap.tasks[ix as usize].id).or_default() -= sum / count;
        }
    }
}
