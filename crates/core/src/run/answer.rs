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
        let live = self.snap.tasks.iter().map(|task| task.id);
        let mut ids: Vec<TaskId> = live.chain(self.dying.keys().copied()).collect();
        ids.sort_unstable();
        let mut usages = Vec::new();
        self.backend.read(&ids, &mut usages);
        let mut tasks = Vec::new();
        for (id, usage) in ids.into_iter().zip(usages) {
            let record = &self.records[id.0 as usize];
            let view = self.snap.task(id);
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
