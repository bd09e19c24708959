//! Shows the state of the run to observers, and the visible progress of tasks to policies that want it.

use super::backend::Backend;
use super::looseness::cpus_of;
use super::now::{Doing, RunNow, WatchedTask};
use super::state::RunLoop;
use super::task_record::TaskRecord;
use crate::by_task::ByTask;
use crate::decision::WaitReason;
use crate::estimate::Learner;
use crate::sample::Usage;
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::units::{Absence, Nanos, Reading};
use crate::visible::Visible;
use std::collections::BTreeMap;

/// Least time between two states.
const INTERVAL: Nanos = Nanos::from_ms(1_000);
/// Least time between states, as a multiple of the time to produce one.
const SHARE: u64 = 100;

impl<B: Backend> RunLoop<'_, B> {
    /// [Shows](RunLoop::show) the run, if due.
    pub(super) fn show_if_due(&mut self) {
        let now = self.snap.now;
        if now < self.next_state {
            return;
        }
        let before = self.backend.stopwatch();
        self.show();
        let after = self.backend.stopwatch();
        let took = after
            .zip(before)
            .map_or(0, |(after, before)| (after - before).0);
        self.next_state = now + INTERVAL.max(Nanos(took.saturating_mul(SHARE)));
    }

    /// When to show the run although nothing happens. An idle run sleeps until a task comes, and its last task must not
    /// seem to be live until then.
    pub(super) fn show_when_idle(&self) -> Option<Nanos> {
        let is_idle = self.snap.tasks.is_empty() && self.dying.is_empty();
        let is_due = is_idle && self.has_unshown_end && self.recorder.wants_state();
        is_due.then_some(self.next_state)
    }

    /// Looks at the progress of tasks and shows the recorder the state of the run, each if wanted.
    pub(super) fn show(&mut self) {
        let (is_wanted, is_watched) = (self.policy.wants_visible(), self.recorder.wants_state());
        self.has_unshown_end = false;
        if !is_wanted && !is_watched {
            return;
        }
        let ids = self.live_ids();
        let visible = self.visible(&ids);
        if is_wanted {
            self.note_paces(&visible);
        }
        if is_watched {
            self.show_tasks(ids, &visible);
        }
    }

    fn show_tasks(&mut self, ids: Vec<TaskId>, visible: &BTreeMap<TaskId, Reading<Visible>>) {
        let usages = self.read_old(&ids);
        let energy_j = self.energy_j.unwrap_or_else(|| self.backend.energy_j());
        let mut reasons = BTreeMap::new();
        for wait in &self.waits {
            reasons.insert(wait.task, wait.reason);
        }
        let known = WatchedRun {
            records: &self.records,
            snap: &self.snap,
            learner: &self.learner,
            max_pause: self.config.max_pause,
        };
        let mut tasks = Vec::new();
        for id in ids {
            let mut task = known.task(id, usages.get(&id), reasons.get(&id).copied());
            task.visible = visible.get(&id).copied();
            tasks.push(task);
        }
        self.recorder.state(&RunNow {
            at: self.snap.now,
            is_paused: self.is_paused,
            most_live: self.admission.most_live(&self.snap.machine),
            snapshot: &self.snap,
            config: self.config,
            tasks: &tasks,
            pending: self.admission.queue(),
            decisions: self.overhead.decisions,
            energy_j,
        });
    }

    /// Reads the usage of tasks whose last reading is old. A paused task needs no new reading.
    fn read_old(&mut self, ids: &[TaskId]) -> BTreeMap<TaskId, Usage> {
        let now = self.snap.now;
        let mut old = Vec::new();
        for &id in ids {
            let interval = self.records[id].interval.as_ref();
            let is_old = interval.is_some_and(|interval| interval.since + INTERVAL <= now);
            if is_old || self.dying.contains_key(&id) {
                old.push(id);
            }
        }
        let mut usages = Vec::new();
        self.backend.read(&old, &mut usages);
        usages
            .into_iter()
            .map(|usage| (usage.task, usage))
            .collect()
    }

    /// Looks at the visible progress of the tasks that run.
    fn visible(&mut self, ids: &[TaskId]) -> BTreeMap<TaskId, Reading<Visible>> {
        let mut running = ids.to_vec();
        running.retain(|&id| {
            let view = self.snap.task(id);
            view.is_some_and(|view| view.running.is_some())
        });
        let mut visible = Vec::new();
        self.backend.visible(&running, &mut visible);
        visible.into_iter().collect()
    }

    /// Estimates how long tasks still take, by their visible progress. A task that was not looked at now goes on at its pace.
    fn note_paces(&mut self, visible: &BTreeMap<TaskId, Reading<Visible>>) {
        let now = self.snap.now;
        for task in &mut self.snap.tasks {
            let record = &mut self.records[task.id];
            let Some(started) = record.started else {
                continue;
            };
            let placed = record.interval.as_ref().filter(|_| task.running.is_some());
            let open = placed.map_or(Nanos::ZERO, |interval| now - interval.since);
            let ran = task.estimates.ran + open;
            if let Some(&seen) = visible.get(&task.id) {
                record.pace.saw(now - started, ran, seen);
            }
            let left = record.pace.placed_left_s(ran).ok().map(Nanos::from_s);
            task.estimates.visible_left = Reading::from_option(left, Absence::NotYetMeasured);
        }
    }

    /// The tasks that have arrived and have not ended.
    fn live_ids(&self) -> Vec<TaskId> {
        let live = self.snap.tasks.iter().map(|task| task.id);
        let mut ids: Vec<TaskId> = live.chain(self.dying.keys().copied()).collect();
        ids.sort_unstable();
        ids
    }
}

/// The loop's data about its tasks.
struct WatchedRun<'a> {
    records: &'a ByTask<TaskRecord>,
    snap: &'a Snapshot,
    learner: &'a Learner,
    max_pause: Nanos,
}

impl<'a> WatchedRun<'a> {
    fn task(
        &self,
        id: TaskId,
        usage: Option<&Usage>,
        reason: Option<WaitReason>,
    ) -> WatchedTask<'a> {
        let record = &self.records[id];
        let view = self.snap.task(id);
        let is_placed = view.is_some_and(|view| view.running.is_some());
        let waiting = view.filter(|view| !is_placed && !view.asleep);
        let begun = waiting.filter(|_| record.started.is_some());
        let placed = record.interval.as_ref().filter(|_| is_placed);
        let placed_for = placed.map_or(Nanos::ZERO, |interval| self.snap.now - interval.since);
        let read = usage.map(|usage| usage.cpu_time).filter(Reading::is_value);
        let (earned, basis) = record.earned();
        WatchedTask {
            spec: &record.spec,
            doing: self.doing(id),
            started: record.started,
            cpu_time: read.unwrap_or(record.used.cpu_time),
            view,
            reason: reason.filter(|_| waiting.is_some()),
            latest: begun.map(|view| view.waiting_since + self.max_pause),
            ran: record.ran + placed_for,
            earned,
            basis,
            learnt: self.learner.earned(id),
            visible: None,
            runs: record.runs,
        }
    }

    fn doing(&self, id: TaskId) -> Doing<'a> {
        let record = &self.records[id];
        let Some(view) = self.snap.task(id) else {
            return Doing::Ending;
        };
        match &view.running {
            _ if view.asleep => Doing::Sleeps,
            Some(running) => {
                let own = running.placement.cpus();
                Doing::Runs(cpus_of(record.spec.width, &record.bound, own))
            }
            None if record.started.is_some() => Doing::Paused,
            None => Doing::Queued,
        }
    }
}
