//! What runs, for a user who asks in the middle of a run.

use super::backend::Backend;
use super::looseness::cpus_of;
use super::recorder::{Doing, TaskNow};
use super::state::Loop;
use crate::task::TaskId;
use crate::units::{Absence, Nanos, Reading};

impl<B: Backend> Loop<'_, B> {
    /// Tells the recorder what each task does that has arrived and not ended.
    pub(super) fn answer(&mut self, now: Nanos) {
        let is_dying = |id: &TaskId| self.dying.contains_key(id);
        let all = (0..self.records.len() as u32).map(TaskId);
        let ids: Vec<TaskId> =
            all.filter(|id| is_dying(id) || self.snap.tasks.binary_search_by_key(id, |task| task.id).is_ok()).collect();
        let mut usages = Vec::new();
        self.backend.read(&ids, &mut usages);
        let mut tasks = Vec::new();
        for (id, usage) in ids.into_iter().zip(usages) {
            let record = &self.records[id.0 as usize];
            let view = self.snap.tasks.binary_search_by_key(&id, |task| task.id).ok().map(|at| &self.snap.tasks[at]);
            let doing = match view {
                None => Doing::Ending,
                Some(view) => match &view.running {
                    _ if view.asleep => Doing::Sleeps,
                    Some(running) => Doing::Runs(cpus_of(record.spec.width, &record.bound, running.placement.cpus())),
                    None if record.started.is_some() => Doing::Paused,
                    None => Doing::Queued,
                },
            };
            let progress = view.map_or(Reading::Absent(Absence::NotYetMeasured), |view| view.estimates.progress);
            let cpu_time = if usage.cpu_time.is_value() { usage.cpu_time } else { record.used.cpu_time };
            tasks.push(TaskNow { spec: &record.spec, doing, started: record.started, cpu_time, progress });
        }
        self.recorder.asked(now, &tasks);
    }
}
