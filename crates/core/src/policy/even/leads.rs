//! How far each job is ahead of the others, and how that changes the weights over time.

use crate::policy::estimation::learnt_progress;
use crate::policy::prelude::*;
use std::collections::BTreeMap;

/// The lead for which a job counts e times less, in quanta and as a share of the mean progress. The greater of the two
/// counts. Less is fairer and slower.
const TAU_QUANTA: f64 = 1.0;
const TAU_SHARE: f64 = 0.01;
/// A job that is behind the median by more than this many tau counts as if it were behind by so many.
const DEEPEST: f64 = 4.0;
/// The part of a job's lead over the mean, in tau, by which the logarithm of its weight changes in each quantum, if tau is a
/// quantum.
const INTEGRAL_SHARE: f64 = 0.1;
/// The most that counts of a lead, in tau, and of the sum of leads.
pub(super) const MOST_LEAD: f64 = 3.0;
const MOST_INTEGRAL: f64 = 4.0;
/// Decay factor of the sum of a job that is too far behind, per quantum.
const FADES: f64 = 0.95;

/// What the jobs' progress means for their weights.
pub(super) struct Leads {
    /// Of each task of the snapshot, in quanta.
    pub(super) progress: Vec<f64>,
    /// The tasks that the others are compared with, and the median of their progress.
    counted: Vec<u32>,
    median: f64,
    /// Progress from which leads are counted.
    least: f64,
    tau: f64,
}

impl Leads {
    pub(super) fn new(round: &Round<'_>) -> Leads {
        let tasks = &round.snap.tasks;
        let progress: Vec<f64> = tasks.iter().map(learnt_progress).collect();
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

    /// The lead of a task in tau.
    pub(super) fn of(&self, ix: u32) -> f64 {
        (self.progress[ix as usize] - self.least).max(0.0) / self.tau
    }

    /// The progress of whoever has this lead.
    pub(super) fn at(&self, lead: f64) -> f64 {
        self.least + lead * self.tau
    }

    fn over_median(&self, ix: u32) -> f64 {
        let lead = (self.progress[ix as usize] - self.median) / self.tau;
        lead.clamp(-MOST_LEAD, MOST_LEAD)
    }
}

/// Whether a choice can change a task's progress. Only such tasks count towards the median.
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

    /// Lets the weights of those that stay ahead fall, and of those that stay behind rise.
    pub(super) fn add(&mut self, snap: &Snapshot, leads: &Leads) {
        self.0.retain(|&id, _| snap.task(id).is_some());
        let count = leads.counted.len().max(1) as f64;
        let all = leads.counted.iter().map(|&ix| leads.over_median(ix));
        let mean = all.sum::<f64>() / count;
        let mut sum = 0.0;
        for &ix in &leads.counted {
            let integral = self.0.entry(snap.tasks[ix as usize].id).or_default();
            if leads.progress[ix as usize] < leads.least {
                // More weight would not bring it nearer, and cost the others.
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
