//! Virtual time: the time that a task has run, divided by its weight. Tasks whose virtual times stay together share the
//! time in proportion to their weights.

use super::round::Round;
use crate::snapshot::TaskView;
use crate::task::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The virtual times of the tasks, in ns.
///
/// A task that is new, slept, or always runs begins at the least virtual time of the others. So it gains nothing from
/// the time before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VirtualTimes {
    /// The least virtual time of the tasks that take turns; it never falls.
    least: i64,
    /// What is added to the weighted run time of each task.
    added: BTreeMap<TaskId, i64>,
}

/// Run time divided by weight, in ns.
fn weighted_run(task: &TaskView) -> i64 {
    (task.estimates.ran.0 as f64 / task.weight) as i64
}

impl VirtualTimes {
    /// The virtual time of a task.
    fn of(&self, task: &TaskView) -> i64 {
        let added = self.added.get(&task.id).copied().unwrap_or(0);
        weighted_run(task).saturating_add(added)
    }

    /// Takes in what the tasks of a round have run.
    pub(super) fn update(&mut self, round: &Round<'_>) {
        self.added.retain(|&id, _| round.snap.task(id).is_some());
        for &ix in &round.order {
            let task = round.task(ix);
            let behind = self.least.saturating_sub(self.of(task));
            let is_new = !self.added.contains_key(&task.id);
            if is_new || behind > 0 || round.is_critical(ix) {
                *self.added.entry(task.id).or_default() += behind;
            }
        }
        // Between quanta only waiting tasks are in the order.
        if !round.full {
            return;
        }
        let turns = round.order.iter().filter(|&&ix| !round.is_critical(ix));
        let times = turns.map(|&ix| self.of(round.task(ix)));
        self.least = times.min().unwrap_or(self.least);
    }

    /// The virtual time of each task of the snapshot, in seconds.
    pub(super) fn all(&self, round: &Round<'_>) -> Vec<f64> {
        let tasks = round.snap.tasks.iter();
        tasks.map(|task| self.of(task) as f64 / 1e9).collect()
    }
}
