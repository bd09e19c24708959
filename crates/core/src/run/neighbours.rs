//! Who ran beside whom, and who fits best beside those that run.
//!
//! Only with few CPUs: a run with many neighbours tells little of each, and more of them even out.

use super::backend::Backend;
use super::state::Loop;
use crate::estimate::{Candidate, Interference, RunningPrograms};
use crate::placement::Placement;
use crate::snapshot::TaskView;
use crate::task::TaskId;
use crate::units::Nanos;
use std::sync::Arc;

/// Maximum number of CPUs.
const MOST_CPUS: usize = 8;
/// Maximum number of waiting tasks to compare.
const MOST_COMPARED: usize = 256;
/// The name of all programs that have none.
const NAMELESS: &str = "";

impl<B: Backend> Loop<'_, B> {
    /// Adds the time since the last call to `beside` of all running tasks. Tasks on shared CPUs have no certain neighbours.
    pub(super) fn note_neighbours(&mut self) {
        let now = self.snap.now;
        let time = now - std::mem::replace(&mut self.neighbours_since, now);
        let machine = &self.snap.machine;
        if time == Nanos::ZERO || machine.cpus.len() > MOST_CPUS || !machine.nodes.is_empty() {
            return;
        }
        let running = self.snap.tasks.iter().filter(|task| task.running.is_some());
        if self.is_paused || !running.clone().all(|task| has_own_cpus(task)) {
            return;
        }
        let running: Vec<TaskId> = running.map(|task| task.id).collect();
        for &other in &running {
            let program = self.program(other);
            for &id in &running {
                let record = &mut self.records[id];
                if id == other {
                    record.noted += time;
                } else {
                    *record.beside.entry(program.clone()).or_default() += time;
                }
            }
        }
    }

    fn program(&self, task: TaskId) -> Arc<str> {
        let program = &self.records[task].spec.program;
        program.clone().unwrap_or_else(|| NAMELESS.into())
    }

    /// The queue position of a task that clearly fits better beside the running ones than the one at `place`.
    pub(super) fn better_beside(&self, place: usize) -> Option<usize> {
        let first = &self.records[self.pending[place]].spec;
        let interference = first.interference?;
        if self.snap.machine.cpus.len() > MOST_CPUS || first.cpus > 1 {
            return None;
        }
        let running = self.snap.tasks.iter().map(|task| {
            let known = self.records[task.id].spec.interference;
            (
                self.program(task.id),
                known.unwrap_or(Interference::AVERAGE),
            )
        });
        RunningPrograms::new(running).better(&self.comparable(), &interference)
    }

    /// The waiting tasks of one CPU of which something is known, with their queue positions. A task that is there again comes
    /// last in any case.
    fn comparable(&self) -> Vec<Candidate> {
        let waiting = self.pending.iter().take(self.ordered.min(MOST_COMPARED));
        let mut all = Vec::new();
        for (place, &id) in waiting.enumerate() {
            let record = &self.records[id];
            if let Some(interference) = record.spec.interference
                && record.spec.cpus == 1
                && !record.is_again
            {
                all.push((place, interference));
            }
        }
        all
    }
}

fn has_own_cpus(task: &TaskView) -> bool {
    let running = task.running.as_ref();
    running.is_some_and(|running| matches!(running.placement, Placement::Exclusive { .. }))
}
