//! What runs, for a user who asks in the middle of a run, and the whole state, for those who look at it.

use super::backend::Backend;
use super::looseness::cpus_of;
use super::now::{Doing, TaskNow};
use super::now::{RunNow, WatchedTask};
use super::state::Loop;
use super::task_record::TaskRecord;
use crate::decision::WaitReason;
use crate::sample::Usage;
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::units::{Absence, Nanos, Reading};
use std::collections::BTreeMap;

/// What a task has used is not read again for those who look while it was read so recently.
const FRESH: Nanos = Nanos::from_ms(1_000);

impl<B: Backend> Loop<'_, B> {
    /// Tells the recorder what each task does that has arrived and not ended.
    pub(super) fn answer(&mut self, now: Nanos) {
        let ids = self.live_ids();
        let mut usages = Vec::new();
        self.backend.read(&ids, &mut usages);
        let tasks: Vec<TaskNow<'_>> = ids
            .into_iter()
            .zip(&usages)
            .map(|(id, usage)| task_now(&self.records, &self.snap, id, Some(usage)))
            .collect();
        self.recorder.asked(now, &tasks);
    }

    /// Shows the recorder the whole state of the run.
    pub(super) fn show(&mut self, now: Nanos) {
        let ids = self.live_ids();
        // A paused task has used what it had used when it was paused. To read the others each time would cost most of
        // what looking costs.
        let old = |id: &&TaskId| {
            let interval = self.records[id.0 as usize].interval.as_ref();
            interval.is_some_and(|interval| interval.since + FRESH <= now)
                || self.dying.contains_key(id)
        };
        let old: Vec<TaskId> = ids.iter().filter(old).copied().collect();
        let mut usages = Vec::new();
        self.backend.read(&old, &mut usages);
        let energy_j = self.energy_j.unwrap_or_else(|| self.backend.energy_j());
        let usages: BTreeMap<TaskId, &Usage> =
            usages.iter().map(|usage| (usage.task, usage)).collect();
        let reasons: BTreeMap<TaskId, WaitReason> = self
            .waits
            .iter()
            .map(|wait| (wait.task, wait.reason))
            .collect();
        let tasks: Vec<WatchedTask<'_>> = ids
            .into_iter()
            .map(|id| {
                let record = &self.records[id.0 as usize];
                let view = self.snap.task(id);
                let waiting = view.filter(|view| view.running.is_none() && !view.asleep);
                let begun = waiting.filter(|_| record.started.is_some());
                let placed = record
                    .interval
                    .as_ref()
                    .filter(|_| view.is_some_and(|view| view.running.is_some()));
                let (earned, basis) = record.earned();
                WatchedTask {
                    now: task_now(&self.records, &self.snap, id, usages.get(&id).copied()),
                    view,
                    reason: waiting.and_then(|_| reasons.get(&id).copied()),
                    latest: begun.map(|view| view.waiting_since + self.config.max_pause),
                    ran: record.ran + placed.map_or(Nanos::ZERO, |interval| now - interval.since),
                    earned,
                    basis,
                    learnt: self.learner.earned(id),
                    runs: record.runs,
                }
            })
            .collect();
        self.recorder.watched(&RunNow {
            at: now,
            snapshot: &self.snap,
            config: self.config,
            tasks: &tasks,
            pending: &self.pending,
            decisions: self.overhead.decisions,
            energy_j,
        });
    }

    /// The tasks that have arrived and not ended.
    fn live_ids(&self) -> Vec<TaskId> {
        let live = self.snap.tasks.iter().map(|task| task.id);
        let mut ids: Vec<TaskId> = live.chain(self.dying.keys().copied()).collect();
        ids.sort_unstable();
        ids
    }
}

fn task_now<'a>(
    records: &'a [TaskRecord],
    snap: &'a Snapshot,
    id: TaskId,
    usage: Option<&Usage>,
) -> TaskNow<'a> {
    let record = &records[id.0 as usize];
    let view = snap.task(id);
    let doing = match view {
        None => Doing::Ending,
        Some(view) => match &view.running {
            _ if view.asleep => Doing::Sleeps,
            Some(running) => Doing::Runs(cpus_of(
                record.spec.width,
                &record.bound,
                running.placement.cpus(),
            )),
            None if record.started.is_some() => Doing::Paused,
            None => Doing::Queued,
        },
    };
    let progress = view.map_or(Reading::Absent(Absence::NotYetMeasured), |view| {
        view.estimates.progress
    });
    let read = usage.map(|usage| usage.cpu_time).filter(Reading::is_value);
    let cpu_time = read.unwrap_or(record.used.cpu_time);
    TaskNow {
        spec: &record.spec,
        doing,
        started: record.started,
        cpu_time,
        progress,
    }
}
