//! Ends tasks early: time limits, interrupts, and the grace period between SIGTERM and SIGKILL.

use super::backend::{Backend, Kill};
use super::fact::{Fact, Warning};
use super::intervals::merge;
use super::result::EndedBy;
use super::state::{DyingTask, EarlyEnd, RunLoop};
use crate::snapshot::Trigger;
use crate::task::{Exit, TaskId};
use crate::units::Nanos;

impl<B: Backend> RunLoop<'_, B> {
    /// Reads the final usage of a task that had left scheduling.
    pub(super) fn final_read(&mut self, id: TaskId) {
        let mut usages = Vec::new();
        self.backend.read(&[id], &mut usages);
        if let Some(usage) = usages.pop() {
            let record = &mut self.records[id];
            record.used = merge(usage, &record.used);
        }
    }

    /// The limit on the time that a task is placed, if known.
    pub(super) fn time_limit(&self) -> Option<Nanos> {
        self.config
            .timeout
            .and_then(|limit| limit.after(&self.times))
    }

    /// Ends tasks at their time limit, and kills tasks whose grace period is over.
    pub(super) fn enforce_limits(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        if let Some(limit) = self.time_limit() {
            let mut over = Vec::new();
            for task in &self.snap.tasks {
                let record = &self.records[task.id];
                let mut ran = record.ran;
                // A filler is not placed: its time counts when its interval ends.
                if let (Some(interval), Some(_)) = (&record.interval, &task.running) {
                    ran += now - interval.since;
                }
                if ran >= limit {
                    over.push(task.id);
                }
            }
            for &id in &over {
                self.records[id].timed_out = true;
                self.recorder
                    .emit(now, Fact::Warned(&Warning::TimedOut(id)));
                triggers.push(Trigger::Ended(id));
            }
            self.begin_termination(now, &over, false);
        }
        for (&id, dying) in self
            .dying
            .iter_mut()
            .filter(|(_, dying)| !dying.killed && dying.kill_at <= now)
        {
            dying.killed = true;
            self.backend.kill(id, Kill::Kill);
        }
    }

    /// Ends a task for the user: SIGTERM, and SIGKILL after the grace period. One that has not begun never begins.
    pub(super) fn end_by_user(
        &mut self,
        now: Nanos,
        id: TaskId,
        name: &str,
        triggers: &mut Vec<Trigger>,
    ) {
        let Some(record) = self.records.get_mut(id) else {
            return;
        };
        if record.spec.name != name || record.finished.is_some() {
            return;
        }
        if let Some(dying) = self.dying.get_mut(&id) {
            // Asked twice, it is killed.
            dying.killed = true;
            return self.backend.kill(id, Kill::Kill);
        }
        record.ended_by_user = true;
        self.recorder
            .emit(now, Fact::Warned(&Warning::EndedByUser(id)));
        if self.records[id].has_begun() {
            self.admission.unqueue(id);
            triggers.push(Trigger::Ended(id));
            self.begin_termination(now, &[id], false);
        } else {
            self.end(now, id, ended_by_user(), triggers);
        }
    }

    /// Drops the tasks that have not begun, for the user or because no node is left. Running tasks go on.
    pub(super) fn start_no_more(&mut self, now: Nanos) {
        if self.early_end.is_some() {
            return;
        }
        let admitted = self.snap.tasks.iter().map(|task| task.id);
        let mut all = admitted.chain(self.admission.queue().iter().copied());
        let some_left = self.is_open() || all.any(|id| !self.records[id].has_begun());
        self.drop_unstarted();
        let has_cpus = !self.snap.machine.cpus.is_empty();
        self.early_end = Some(EarlyEnd {
            by: match (some_left, has_cpus) {
                (false, _) => EndedBy::Completion,
                (true, true) => EndedBy::Drain,
                (true, false) => EndedBy::NoNode,
            },
            interrupts: 0,
        });
        if has_cpus {
            self.recorder.emit(now, Fact::Warned(&Warning::Draining));
        }
    }

    /// Ends the run if its deadline is over and some task is left.
    pub(super) fn end_at_deadline(&mut self, now: Nanos) {
        let is_over = self.config.deadline.is_some_and(|end| end <= now);
        let some_left =
            self.is_open() || !self.admission.queue().is_empty() || !self.snap.tasks.is_empty();
        if !is_over || !some_left {
            return;
        }
        self.early_end = Some(EarlyEnd {
            by: EndedBy::Deadline,
            interrupts: 0,
        });
        self.recorder
            .emit(now, Fact::Warned(&Warning::DeadlineOver));
        self.end_all(now, false);
    }

    /// Ends every started task and drops the others.
    pub(super) fn end_all(&mut self, now: Nanos, at_once: bool) {
        self.drop_unstarted();
        let admitted = self.snap.tasks.iter().map(|task| task.id);
        let live: Vec<TaskId> = admitted.chain(self.admission.take_all()).collect();
        self.begin_termination(now, &live, at_once);
        if at_once {
            // Every further signal kills again.
            for (&id, dying) in &mut self.dying {
                dying.killed = true;
                self.backend.kill(id, Kill::Kill);
            }
        }
        // After the signals: a task must do nothing else before it gets its own.
        self.backend.ending();
    }

    pub(super) fn drop_unstarted(&mut self) {
        self.admission.drop_new();
        let records = &self.records;
        self.snap.tasks.retain(|task| records[task.id].has_begun());
    }

    /// Asks tasks to end, and removes them from scheduling. All leave the snapshot in one pass: one pass for each would
    /// cost quadratic time.
    pub(super) fn begin_termination(&mut self, now: Nanos, tasks: &[TaskId], at_once: bool) {
        self.close(tasks, false);
        for &id in tasks {
            self.records[id].interval = None;
            self.dying.insert(
                id,
                DyingTask {
                    kill_at: now + self.config.grace,
                    killed: at_once,
                },
            );
        }
        let dying = &self.dying;
        self.snap.tasks.retain(|task| !dying.contains_key(&task.id));
        let how = if at_once { Kill::Kill } else { Kill::Term };
        // Those that wait on another machine before those that they wait for.
        tasks
            .iter()
            .rev()
            .for_each(|&id| self.backend.kill(id, how));
    }
}

/// The end of a task that the user ended before it began.
pub(super) fn ended_by_user() -> Exit {
    Exit::NotStarted("the user ended it".to_owned())
}
