//! Which tasks lived with the same number of tasks from start to end, and what each of them took.

use super::effect::TaskTimes;
use crate::task::TaskId;
use crate::units::{Nanos, Reading};
use std::collections::BTreeMap;

/// A live task.
struct LiveTask {
    epoch: u32,
    turn: u32,
}

/// The live tasks. An epoch is a time with the same number of them.
#[derive(Default)]
pub(super) struct LiveTasks {
    /// Number of live tasks.
    pub(super) level: usize,
    /// Number of tasks that have been admitted.
    pub(super) turns: u32,
    epoch: u32,
    lives: BTreeMap<TaskId, LiveTask>,
}

impl LiveTasks {
    pub(super) fn begin_epoch(&mut self, live: usize) {
        self.level = live;
        self.epoch += 1;
    }

    /// Notes that a task was admitted in this epoch.
    pub(super) fn begin(&mut self, id: TaskId) {
        self.turns += 1;
        let life = LiveTask {
            epoch: self.epoch,
            turn: self.turns,
        };
        self.lives.insert(id, life);
    }

    /// Forgets a task, which ended or is lost.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.lives.remove(&id);
    }

    /// What an ended task took, if it lived wholly in this epoch.
    pub(super) fn ended(
        &mut self,
        id: TaskId,
        time: Nanos,
        cpu: Reading<Nanos>,
    ) -> Option<TaskTimes> {
        let life = self.lives.remove(&id)?;
        if life.epoch != self.epoch || time == Nanos::ZERO {
            return None;
        }
        let log = |time: Nanos| libm::log(time.as_s());
        Some(TaskTimes {
            turn: life.turn,
            time: log(time),
            cpu: cpu.value().filter(|cpu| *cpu > Nanos::ZERO).map(log),
        })
    }

    /// Drops the samples of tasks that started after a task of this epoch that still lives: those that end first would be the
    /// short ones.
    pub(super) fn complete(&self, samples: &[TaskTimes]) -> Vec<TaskTimes> {
        let live = self.lives.values().filter(|life| life.epoch == self.epoch);
        let oldest = live.map(|life| life.turn).min().unwrap_or(u32::MAX);
        let complete = samples.iter().filter(|sample| sample.turn < oldest);
        complete.copied().collect()
    }
}
