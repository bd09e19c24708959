//! The weights of the tasks: each should get time, or progress, in proportion to its weight.
//!
//! Only ratios of weights count. So policies divide by a weight relative to that of another task, and equal weights of
//! any size change nothing.

use crate::snapshot::{Snapshot, TaskView};

/// The greatest weight in whole numbers.
pub(super) const GREATEST: u32 = 1 << 24;

/// The least and the greatest weight in a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weights {
    least: f64,
    pub(super) greatest: f64,
}

impl Weights {
    pub(crate) fn of(snap: &Snapshot) -> Weights {
        let all = snap.tasks.iter().map(|task| task.weight);
        Weights {
            least: all.clone().fold(f64::INFINITY, f64::min),
            greatest: all.fold(0.0, f64::max),
        }
    }

    pub(super) fn are_equal(self) -> bool {
        self.least >= self.greatest
    }

    /// A task's weight relative to the least: at least 1.
    pub(crate) fn over_least(self, task: &TaskView) -> f64 {
        task.weight / self.least
    }

    /// A task's weight relative to the greatest in whole numbers: from 1 to [`GREATEST`].
    pub(super) fn whole(self, task: &TaskView) -> u32 {
        let relative = task.weight / self.greatest;
        ((relative * f64::from(GREATEST) + 0.5) as u32).max(1)
    }
}

/// The progress of each task of the snapshot, divided by its weight over the least.
pub(super) fn weighted_progress(snap: &Snapshot, progress: fn(&TaskView) -> f64) -> Vec<f64> {
    let weights = Weights::of(snap);
    let tasks = snap.tasks.iter();
    tasks
        .map(|task| progress(task) / weights.over_least(task))
        .collect()
}

/// Whether each task of the snapshot has so much weight that it should always run; empty if weights are equal or none
/// has. CPU masks do not count, so a lighter task with the same mask may have to wait for `max_pause`.
///
/// A task can't use more than its CPUs. If its share would be more, it gets its CPUs for good, and the others divide
/// the rest (Chandra et al., "Surplus Fair Scheduling", OSDI 2000).
pub(crate) fn entitled(snap: &Snapshot) -> Vec<bool> {
    if Weights::of(snap).are_equal() {
        return Vec::new();
    }
    let mut heaviest: Vec<usize> = (0..snap.tasks.len()).collect();
    heaviest.retain(|&ix| !snap.tasks[ix].asleep);
    heaviest.sort_by(|&a, &b| snap.tasks[b].weight.total_cmp(&snap.tasks[a].weight));
    let sums = sums_to_the_end(snap, &heaviest);
    let mut left = snap.machine.cpus.len() as f64;
    let mut entitled = Vec::new();
    for (ix, sum) in heaviest.into_iter().zip(sums) {
        let task = &snap.tasks[ix];
        if task.weight * left < sum {
            break;
        }
        left -= f64::from(task.cpus);
        entitled.resize(snap.tasks.len(), false);
        entitled[ix] = true;
    }
    entitled
}

/// For each place in a list of tasks, the weights from there to the end, each times the task's CPUs.
fn sums_to_the_end(snap: &Snapshot, list: &[usize]) -> Vec<f64> {
    let mut sums = vec![0.0; list.len()];
    let mut sum = 0.0;
    for (place, &ix) in list.iter().enumerate().rev() {
        let task = &snap.tasks[ix];
        sum += task.weight * f64::from(task.cpus);
        sums[place] = sum;
    }
    sums
}
