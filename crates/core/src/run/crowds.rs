//! Tasks with more threads than CPUs: the user is advised, because only the program's number of threads can help.

use super::backend::Backend;
use super::fact::{Fact, Warning};
use super::looseness::cpus_of;
use super::state::RunLoop;
use crate::placement::Placement;
use crate::sample::{Usage, Wanting};
use crate::snapshot::TaskView;
use crate::task::TaskId;
use crate::topology::CpuSet;

impl<B: Backend> RunLoop<'_, B> {
    /// Notes how many threads of a running task want a CPU, at the end of its interval with this usage. Warns if there
    /// have been too many for some time.
    pub(super) fn note_crowd(&mut self, id: TaskId, wanting: Wanting, usage: &Usage) {
        let cpus = self.cpus_for_threads(id);
        let record = &mut self.records[id];
        let Some(threads) = wanting.of_one_process.value() else {
            return;
        };
        let used = usage.cpu_time.value().zip(record.used.cpu_time.value());
        let (Some((now, before)), Some(interval)) = (used, &record.interval) else {
            return;
        };
        let used = (now - before).share_of(self.snap.now - interval.since);
        if let Some(threads) = record.crowding.add(threads, cpus, used) {
            let warning = Warning::FewCpus {
                task: id,
                threads,
                cpus,
            };
            self.recorder.emit(self.snap.now, Fact::Warned(&warning));
        }
    }

    /// The CPUs for the threads of a running task: those that it may use, or its part of those that tasks share.
    fn cpus_for_threads(&self, id: TaskId) -> u32 {
        let task = self.snap.task(id);
        let Some(running) = task.and_then(|task| task.running.as_ref()) else {
            return 0;
        };
        let record = &self.records[id];
        let cpus = match &running.placement {
            Placement::Exclusive { cpus, .. } => {
                cpus_of(record.spec.width, &record.bound, cpus).len()
            }
            Placement::Shared { mask } => {
                let tasks = self.snap.tasks.iter();
                let sharing = tasks.filter(|task| shares(task, mask)).count();
                (mask.len() / sharing.max(1)).max(1)
            }
        };
        cpus as u32
    }
}

/// Whether a task shares some of these CPUs.
fn shares(task: &TaskView, cpus: &CpuSet) -> bool {
    let placement = task.running.as_ref().map(|running| &running.placement);
    matches!(placement, Some(Placement::Shared { mask }) if !mask.intersection(cpus).is_empty())
}
