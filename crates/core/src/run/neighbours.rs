//! Who ran beside whom.
//!
//! Only with few CPUs: a run with many neighbours tells little of each, and more of them even out.

use super::backend::Backend;
use super::state::Loop;
use crate::task::TaskId;
use crate::units::Nanos;
use std::sync::Arc;

/// Maximum number of CPUs.
pub(super) const MOST_CPUS: usize = 8;
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
        if self.is_paused || !running.clone().all(|task| task.exclusive_cpus().is_some()) {
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

    /// The name of a task's program.
    pub(super) fn program(&self, task: TaskId) -> Arc<str> {
        let program = &self.records[task].spec.program;
        program.clone().unwrap_or_else(|| NAMELESS.into())
    }
}
