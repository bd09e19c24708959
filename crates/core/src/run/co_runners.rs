//! Who ran beside whom. Later runs [learn](crate::estimate::Interference) from that who fits beside whom.

use super::admit::{MOST_CPUS, program_of};
use super::backend::Backend;
use super::state::RunLoop;
use crate::task::TaskId;
use crate::units::Nanos;

impl<B: Backend> RunLoop<'_, B> {
    /// Adds the time since the last call to `beside` of all running tasks. Tasks on shared CPUs have no certain co-runners.
    pub(super) fn note_co_runners(&mut self) {
        let now = self.snap.now;
        let time = now - std::mem::replace(&mut self.co_runners_since, now);
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
            let program = program_of(&self.records[other].spec);
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
}
