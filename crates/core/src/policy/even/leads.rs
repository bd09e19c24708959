//! The lead of each job over the others.

use super::lengths::Lengths;
use crate::policy::estimation::learnt_progress;
use crate::policy::prelude::*;

/// The lead that divides a job's weight by e, as a share of the mean progress; at least a quantum. Smaller is fairer and
/// slower.
const TAU: f64 = 0.01;
/// Greatest distance from the median that counts, in tau. A job half as far ahead of the last may have to wait.
const FARTHEST: f64 = 3.0;
/// A job further behind the median, in tau, is no longer waited for: its progress was estimated too high until it was measured,
/// or it can't keep up.
const LOST: f64 = 4.5;
/// Least share of the CPUs for which there are jobs that may run, however far ahead. With more, a full memory would serve
/// the jobs that do not read, and the readers would fall behind.
const LEAST_BUSY: f64 = 0.75;

/// The jobs' progress and leads.
pub(super) struct Leads {
    /// Progress of each task of the snapshot, in quanta, divided by its weight over the least.
    pub(super) progress: Vec<f64>,
    median: f64,
    /// The greatest progress with which a job runs.
    pub(super) limit: f64,
    tau: f64,
}

impl Leads {
    pub(super) fn new(round: &Round<'_>) -> Leads {
        let progress = weighted_progress(round.snap, learnt_progress);
        let mut all: Vec<f64> = (0..)
            .zip(&progress)
            .filter(|&(ix, _)| depends_on_choice(round, ix))
            .map(|(_, &progress)| progress)
            .collect();
        if all.is_empty() {
            all.clone_from(&progress);
        }
        all.sort_unstable_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let tau = f64::max(1.0, TAU * mean);
        let nth = |nth: usize| all.get(nth).or(all.last()).copied().unwrap_or(0.0);
        let median = nth(all.len() / 2);
        let busy = (LEAST_BUSY * f64::from(round.left())) as usize;
        let filling = nth(busy.saturating_sub(1));
        let is_waited_for = |progress: &&f64| **progress >= median - LOST * tau;
        let last = all.iter().find(is_waited_for).unwrap_or(&median);
        let near = last + 0.5 * FARTHEST * tau;
        let limit = near.max(filling);
        Leads {
            progress,
            median,
            limit,
            tau,
        }
    }

    /// No leads: the order is that of the weights for the least mean turnaround, and `progress` their inverse.
    pub(super) fn by_end(snap: &Snapshot, lengths: &Lengths, quantum: Nanos) -> Leads {
        let weight = |task: &TaskView| lengths.weight(task, quantum);
        let tasks = snap.tasks.iter();
        Leads {
            progress: tasks.map(|task| 1.0 / weight(task)).collect(),
            median: 0.0,
            limit: f64::INFINITY,
            tau: f64::INFINITY,
        }
    }

    /// Whether a task is too far ahead to run.
    pub(super) fn is_ahead(&self, ix: u32) -> bool {
        self.progress[ix as usize] > self.limit
    }

    /// How far a task is behind the median, in tau.
    pub(super) fn behind(&self, ix: u32) -> f64 {
        let behind = (self.median - self.progress[ix as usize]) / self.tau;
        behind.clamp(-FARTHEST, FARTHEST)
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
