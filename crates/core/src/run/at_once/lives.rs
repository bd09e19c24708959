//! Which tasks lived with the same number of tasks from start to end, and what each of them took.

use super::effect::Sample;
use crate::expected::ExpectedFrom;
use crate::task::{TaskId, TaskSpec};
use crate::units::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A task that ended well.
#[derive(Clone, Copy)]
pub(in crate::run) struct End<'a> {
    pub(in crate::run) spec: &'a TaskSpec,
    /// Time from start to end.
    pub(in crate::run) time: Nanos,
    pub(in crate::run) cpu: Option<Nanos>,
}

/// A live task.
struct Life {
    epoch: u32,
    turn: u32,
    kind: u32,
}

/// The live tasks. An epoch is a time with the same number of them.
#[derive(Default)]
pub(super) struct Lives {
    /// Number of live tasks.
    pub(super) level: usize,
    /// Number of tasks that have been admitted.
    pub(super) turns: u32,
    epoch: u32,
    lives: BTreeMap<TaskId, Life>,
    /// Tasks of one program, whose own time was expected or was not, are of one kind.
    kinds: BTreeMap<(Arc<str>, bool), u32>,
}

impl Lives {
    /// Notes that tasks were admitted. `live` is their number now.
    pub(super) fn admitted<'a>(&mut self, live: usize, tasks: impl Iterator<Item = &'a TaskSpec>) {
        if live != self.level {
            self.level = live;
            self.epoch += 1;
        }
        for spec in tasks {
            self.turns += 1;
            if let Some(program) = &spec.program {
                let next = self.kinds.len() as u32;
                let kind = (program.clone(), expected_of(spec).is_some());
                let life = Life {
                    epoch: self.epoch,
                    turn: self.turns,
                    kind: *self.kinds.entry(kind).or_insert(next),
                };
                self.lives.insert(spec.id, life);
            }
        }
    }

    /// Forgets a task, which ended or is lost.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.lives.remove(&id);
    }

    /// What an ended task took, if it lived wholly in this epoch.
    pub(super) fn ended(&mut self, end: &End<'_>) -> Option<Sample> {
        let life = self.lives.remove(&end.spec.id)?;
        if life.epoch != self.epoch || end.time == Nanos::ZERO {
            return None;
        }
        let log = |time: Nanos| libm::log(time.as_s());
        let expected = expected_of(end.spec).map_or(0.0, log);
        let cpu = end.cpu.filter(|cpu| *cpu > Nanos::ZERO);
        Some(Sample {
            kind: life.kind,
            turn: life.turn,
            time: log(end.time) - expected,
            cpu: cpu.map(|cpu| log(cpu) - expected),
        })
    }

    /// The samples without a gap: all tasks of their kind that started before them have ended, too. Those that end
    /// first would be the short ones.
    pub(super) fn complete(&self, samples: &[Sample]) -> Vec<Sample> {
        let mut oldest: BTreeMap<u32, u32> = BTreeMap::new();
        for life in self.lives.values().filter(|life| life.epoch == self.epoch) {
            let turn = oldest.entry(life.kind).or_insert(life.turn);
            *turn = life.turn.min(*turn);
        }
        let mut complete = samples.to_vec();
        complete.retain(|sample| {
            oldest
                .get(&sample.kind)
                .is_none_or(|&turn| sample.turn < turn)
        });
        complete
    }
}

/// The time that is expected of this very task.
fn expected_of(spec: &TaskSpec) -> Option<Nanos> {
    let expected = spec.expected?;
    let is_known = expected.from == ExpectedFrom::Same && expected.time > Nanos::ZERO;
    is_known.then_some(expected.time)
}
