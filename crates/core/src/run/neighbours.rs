//! Who ran beside whom, and who fits best beside those that run.
//!
//! Only with few CPUs: a run with many neighbours tells little of each, and more of them even out.

use super::backend::Backend;
use super::state::Loop;
use crate::estimate::{Interference, Neighbours};
use crate::placement::Placement;
use crate::snapshot::TaskView;
use crate::task::TaskId;
use crate::units::Nanos;

/// Maximum number of CPUs.
const MOST_CPUS: usize = 8;

impl<B: Backend> Loop<'_, B> {
    /// Adds the time since the last call to that of all tasks beside each other.
    pub(super) fn note_neighbours(&mut self) {
        let now = self.snap.now;
        let time = now - std::mem::replace(&mut self.neighbours_since, now);
        let machine = &self.snap.machine;
        if time == Nanos::ZERO || machine.cpus.len() > MOST_CPUS || !machine.nodes.is_empty() {
            return;
        }
        let mut running: Vec<TaskId> = Vec::new();
        for task in &self.snap.tasks {
            if has_cpus(task) {
                running.push(task.id);
            }
        }
        for &other in &running {
            let Some(program) = self.records[other].spec.program.clone() else {
                continue;
            };
            for &id in running.iter().filter(|&&id| id != other) {
                *self.records[id].beside.entry(program.clone()).or_default() += time;
            }
        }
    }

    /// The queue position of the task that surely fits better beside the running ones than the one at `place`.
    pub(super) fn better_beside(&self, place: usize) -> Option<usize> {
        let known = |id: TaskId| self.records[id].spec.interference;
        let running: Vec<Interference> = self
            .snap
            .tasks
            .iter()
            .filter_map(|task| known(task.id))
            .collect();
        let may_come = |id: TaskId| !self.records[id].is_again && self.records[id].spec.cpus == 1;
        let waiting = self.pending.iter().take(self.ordered).enumerate();
        let waiting = waiting.filter(|(_, id)| may_come(**id));
        let waiting = waiting.filter_map(|(place, &id)| Some((place, known(id)?)));
        let (places, waiting): (Vec<usize>, Vec<Interference>) = waiting.unzip();
        let first = known(self.pending[place])?;
        if running.is_empty() || waiting.is_empty() || self.snap.machine.cpus.len() > MOST_CPUS {
            return None;
        }
        let neighbours = Neighbours::new(&running, &waiting);
        let cost = |at: &usize| neighbours.cost(&waiting[*at]);
        let best = (0..waiting.len()).min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
        neighbours
            .prefer(&waiting[best], &first)
            .then_some(places[best])
    }
}

fn has_cpus(task: &TaskView) -> bool {
    let running = task.running.as_ref();
    running.is_some_and(|running| matches!(running.placement, Placement::Exclusive { .. }))
}
