//! The life of admitted tasks: events, end, and restart.

use super::admit::lack_of_cpus;
use super::backend::{Backend, Event};
use super::config::{HaltWhen, Restart, TimeLimit};
use super::enter::fitting;
use super::error::RunError;
use super::fact::{Fact, Warning};
use super::result::EndedBy;
use super::shutdown::ended_by_user;
use super::state::{DyingTask, EarlyEnd, EndCounts, RunLoop};
use super::task_record::TaskRecord;
use crate::placement::Placement;
use crate::snapshot::Trigger;
use crate::task::{Exit, TaskId};
use crate::units::Nanos;
use std::sync::Arc;

/// SIGINT and SIGQUIT.
const FROM_KEYBOARD: [i32; 2] = [2, 3];

impl<B: Backend> RunLoop<'_, B> {
    /// Handles one event.
    pub(super) fn handle_event(
        &mut self,
        now: Nanos,
        event: Event,
        triggers: &mut Vec<Trigger>,
    ) -> Result<(), RunError<B::Error>> {
        match event {
            Event::Ended { task, exit } => self.end(now, task, exit, triggers),
            Event::Began { task, at } => self.begin_program(task, at),
            Event::Lost(id) => self.lose(now, id, triggers),
            Event::Slept(id) | Event::Woke(id) => {
                self.take_nap(now, id, event == Event::Woke(id), triggers)
            }
            Event::MachineChanged => self.change_machine(triggers),
            Event::PlanAdopted { generation } => self.plan_adopted(now, generation),
            Event::PlanRefused { generation, why } => {
                self.give_up_plans(
                    now,
                    format!("plan {generation} was refused: {why}"),
                    triggers,
                )?;
            }
            Event::SchedulerEjected { why } => self.give_up_plans(now, why, triggers)?,
            Event::EndTask { task, name } => self.end_by_user(now, task, &name, triggers),
            Event::GiveBack(id) => self.give_back(now, id, triggers),
            Event::JobLimit(jobs) => {
                self.admission.limit_to(jobs);
                self.show();
            }
            // The next turn takes them.
            Event::Arrivals => {}
            Event::Paused => {
                self.is_paused = true;
                self.admission.paused();
                self.show();
            }
            Event::Continued => {
                self.is_paused = false;
                triggers.push(Trigger::QuantumEnd);
                self.show();
            }
            Event::Drain => self.start_no_more(now),
            Event::Interrupt { signal } => {
                let drain = self.early_end.get_or_insert(EarlyEnd {
                    by: EndedBy::Signal(signal),
                    interrupts: 0,
                });
                drain.interrupts += 1;
                // After Ctrl-C the reader of the output ends, too: the first signal counts.
                if !matches!(drain.by, EndedBy::Signal(_)) {
                    drain.by = EndedBy::Signal(signal);
                }
                let is_first = drain.interrupts == 1;
                // A batch system sends SIGTERM several times at its time limit. A user who presses Ctrl-C again does
                // not want to wait.
                let again = !is_first && FROM_KEYBOARD.contains(&signal);
                if is_first || again {
                    self.recorder
                        .emit(now, Fact::Warned(&Warning::Interrupted { signal, again }));
                }
                self.end_all(now, again);
            }
        }
        Ok(())
    }

    /// Records that a task fell asleep or woke. A sleeping task lowers the load on the memory bus, so the policy is
    /// asked if a CPU is idle and a task waits.
    fn take_nap(&mut self, now: Nanos, id: TaskId, woke: bool, triggers: &mut Vec<Trigger>) {
        let Some(position) = self.snap.position(id) else {
            return;
        };
        let task = &mut self.snap.tasks[position];
        // A started task without a place has been frozen since: this event is stale, and the task counts as waiting.
        let frozen = task.running.is_none() && self.records[id].started.is_some();
        let was_awake = !std::mem::replace(&mut task.asleep, !woke && !frozen);
        if woke {
            if !frozen {
                // Time asleep does not count as waiting.
                task.waiting_since = now;
            }
            triggers.push(Trigger::Woke(id));
        } else if was_awake && !frozen && self.some_cpu_idles() && self.some_task_waits() {
            triggers.push(Trigger::LoadFell);
        }
    }

    fn some_cpu_idles(&self) -> bool {
        let machine = &*self.snap.machine;
        let mut taken = 0;
        for task in &self.snap.tasks {
            match task.running.as_ref().map(|running| &running.placement) {
                Some(Placement::Exclusive { cpus, .. }) => taken += cpus.len(),
                Some(Placement::Shared { .. }) => return false,
                None => {}
            }
        }
        taken < machine.cpus.len()
    }

    fn some_task_waits(&self) -> bool {
        self.snap
            .tasks
            .iter()
            .any(|task| task.running.is_none() && !task.asleep)
    }

    /// Adopts the machine's new set of CPUs, and marks tasks as displaced whose CPUs are gone, or could be others. All
    /// tasks are placed anew, because the machine has changed.
    pub(super) fn change_machine(&mut self, triggers: &mut Vec<Trigger>) {
        let before = std::mem::replace(&mut self.snap.machine, self.backend.machine());
        // When memory domains appear or disappear, the indices of the others may change.
        if before.memory_domains.len() != self.snap.machine.memory_domains.len() {
            self.traffic = (Nanos::MAX, Arc::new([]));
            for interval in self
                .records
                .values_mut()
                .filter_map(|record| record.interval.as_mut())
            {
                interval.traffic = self.traffic.1.clone();
            }
        }
        let machine = &*self.snap.machine;
        let all = machine.all_cpus();
        for task in &mut self.snap.tasks {
            task.cpus = fitting(&self.records[task.id].spec, machine);
            if !machine.nodes.is_empty() {
                // Tasks stay on their node, and the backend reports those that are lost with it.
                continue;
            }
            let stays = match task.running.as_ref().map(|running| &running.placement) {
                Some(Placement::Exclusive { cpus, .. }) => {
                    cpus.is_subset(&all) && cpus.len() == task.cpus as usize
                }
                // The CPUs that it shares may be more now.
                Some(Placement::Shared { .. }) => false,
                None => true,
            };
            if !stays {
                self.displaced.push(task.id);
            }
        }
        self.readmit(triggers);
        triggers.push(Trigger::QuantumEnd);
    }

    /// Queues the admitted tasks again that no node that is left can hold. Admission leaves them out.
    fn readmit(&mut self, triggers: &mut Vec<Trigger>) {
        let mut too_wide = Vec::new();
        for task in &self.snap.tasks {
            let record = &self.records[task.id];
            let lacks_cpus = lack_of_cpus(&record.spec, &self.snap.machine).is_some();
            if record.started.is_none() && lacks_cpus {
                too_wide.push(task.id);
            }
        }
        for id in too_wide {
            self.leave_scheduling(id, false, triggers);
            self.admission.readmit(id);
        }
    }

    /// Handles the end of a task, or its failed start.
    pub(super) fn end(&mut self, now: Nanos, id: TaskId, exit: Exit, triggers: &mut Vec<Trigger>) {
        let record = self.records.get(id);
        if record.is_none_or(|record| record.finished.is_some()) {
            return;
        }
        self.has_unshown_end = true;
        let never_ran = matches!(exit, Exit::NotStarted(_));
        if self.records[id].started.is_none() {
            self.admission.unqueue(id);
            if !never_ran {
                self.begin_late(now, id);
            }
        }
        let was_dying = self.dying.remove(&id).is_some();
        if !never_ran {
            self.begin_program(id, now);
            self.close(&[id], false);
            if was_dying {
                self.final_read(id);
            }
            self.records[id].resources = Some(self.backend.resources(id));
        }
        let record = &mut self.records[id];
        record.progress_learnt = self.learner.earned(id);
        if let Some(learnt) = self.learner.keep(id) {
            record.learnt = Some(Arc::new(learnt));
        }
        let exit = record.finish(now, exit, was_dying);
        let ok = exit.ok() && !record.timed_out;
        let is_first = record.first.is_none();
        if ok && is_first && matches!(self.config.timeout, Some(TimeLimit::PercentOfMedian(_))) {
            let ran = record.ran;
            let position = self.times.partition_point(|&time| time <= ran);
            self.times.insert(position, ran);
        }
        self.admission.ended(now, &self.records[id], ok);
        // A program that failed to start will fail to start again.
        if !ok && is_first && !never_ran && self.begin_attempt(id) {
            let record = &mut self.records[id];
            record.exit = Some(exit);
            let result = record.result();
            self.recorder.emit(now, Fact::Failed(&result));
            self.leave_scheduling(id, was_dying, triggers);
            self.queue_again(now, id);
            return;
        }
        if is_first {
            self.report_end(now, id, exit, ok);
        } else if !ok && !was_dying {
            // The result of a later run does not count, but the user should know that the task does not restart.
            let warning = Warning::NotRestarted(id, Some(exit));
            self.recorder.emit(now, Fact::Warned(&warning));
        }
        self.leave_scheduling(id, was_dying, triggers);
        match self.config.restart {
            Restart::UntilLast if self.early_end.is_none() => self.restart(now, id, ok),
            Restart::UntilLast => {}
            Restart::Never => self.forget(id),
        }
        if is_first {
            self.apply_halt_rule(now);
        }
    }

    /// Records that the program of a task that was handed over began.
    fn begin_program(&mut self, id: TaskId, at: Nanos) {
        let Some(record) = self.records.get_mut(id) else {
            return;
        };
        if !std::mem::replace(&mut record.handed_over, false) {
            return;
        }
        let began = record.started.map_or(at, |given| given.max(at));
        record.started = Some(began);
        record.tell_start(self.recorder);
        self.open_intervals(&[id], self.next_wake);
        if let Some(interval) = &mut self.records[id].interval {
            interval.since = began;
        }
    }

    /// Queues a lost task again, before all others. Its run counts neither as an attempt nor as a failure. A task that
    /// was asked to end has ended, and so has any other if no further task starts. One that had not begun never did.
    fn lose(&mut self, now: Nanos, id: TaskId, triggers: &mut Vec<Trigger>) {
        let Some(record) = self.records.get_mut(id) else {
            return;
        };
        if record.started.is_none() || record.finished.is_some() {
            return;
        }
        record.interval = None;
        let had_begun = !record.handed_over;
        let was_dying = self.dying.contains_key(&id);
        if record.ended_by_user && !had_begun {
            return self.end(now, id, ended_by_user(), triggers);
        }
        if had_begun && (was_dying || self.early_end.is_some()) {
            self.dying.entry(id).or_insert(DyingTask {
                kill_at: now,
                killed: true,
            });
            return self.end(now, id, Exit::ToldToEnd, triggers);
        }
        record.runs -= 1;
        let turn = self.snap.task(id).map(|task| task.turn);
        self.dying.remove(&id);
        self.leave_scheduling(id, was_dying, triggers);
        let record = &mut self.records[id];
        if had_begun {
            self.recorder.emit(now, Fact::Lost(&record.spec));
        }
        record.begin_anew(self.config.quantum);
        if self.early_end.is_none() {
            self.admission.lost(id, turn);
        }
    }

    /// Ends a task that has not begun: another machine will run it.
    fn give_back(&mut self, now: Nanos, id: TaskId, triggers: &mut Vec<Trigger>) {
        let record = self.records.get_mut(id);
        let is_new = |record: &&mut TaskRecord| !record.has_begun() && record.finished.is_none();
        let Some(record) = record.filter(is_new) else {
            return;
        };
        // No failure.
        record.ended_by_user = true;
        let exit = Exit::NotStarted("another node runs it".to_owned());
        self.end(now, id, exit, triggers);
    }

    /// Records the start of a task that was found running and has ended before it was placed.
    fn begin_late(&mut self, now: Nanos, id: TaskId) {
        let record = &mut self.records[id];
        record.started = Some(now);
        record.runs += 1;
        record.tell_start(self.recorder);
    }

    /// Prepares a failed task for its next attempt, if one is left.
    fn begin_attempt(&mut self, id: TaskId) -> bool {
        let record = &self.records[id];
        record.runs < self.config.attempts
            && !record.told_to_end
            && self.early_end.is_none()
            && self.backend.restart(id)
    }

    /// Counts and reports the first end of a task.
    fn report_end(&mut self, now: Nanos, id: TaskId, exit: Exit, ok: bool) {
        let record = &mut self.records[id];
        if ok {
            self.counts.succeeded += 1;
        } else if !record.ended_by_user {
            // A halt rule ignores jobs that the user ends.
            self.counts.failed += 1;
        }
        record.exit = Some(exit);
        let result = record.result();
        self.last_end = now;
        self.recorder.emit(now, Fact::Ended(&result));
        if self.config.restart == Restart::UntilLast {
            record.first = Some(Box::new(result));
        }
    }

    pub(super) fn apply_halt_rule(&mut self, now: Nanos) {
        let EndCounts { failed, succeeded } = self.counts;
        let total = (!self.is_open()).then_some(self.taken as u32);
        let verdict = self.config.halt.verdict(failed, succeeded, total);
        if verdict == HaltWhen::Never || self.early_end.is_some() {
            return;
        }
        self.early_end = Some(EarlyEnd {
            by: EndedBy::Halt,
            interrupts: 0,
        });
        self.recorder.emit(now, Fact::Warned(&Warning::Halting));
        match verdict {
            HaltWhen::Now => self.end_all(now, false),
            _ => self.drop_unstarted(),
        }
    }

    /// Restarts a task that succeeded, while some task has not ended once. After that, ends all tasks.
    pub(super) fn restart(&mut self, now: Nanos, id: TaskId, ok: bool) {
        if self.records.values().all(TaskRecord::has_ended_once) {
            if self.energy_j.is_none() {
                self.energy_j = Some(self.backend.energy_j());
                self.end_all(now, false);
            }
            return;
        }
        if !ok {
            return;
        }
        if !self.backend.restart(id) {
            self.recorder
                .emit(now, Fact::Warned(&Warning::NotRestarted(id, None)));
            return;
        }
        self.queue_again(now, id);
    }

    /// Queues an ended task for another run.
    fn queue_again(&mut self, now: Nanos, id: TaskId) {
        let is_open = self.is_open();
        self.records[id].begin_anew(self.config.quantum);
        self.admission.comes_again(id, now, is_open);
    }

    /// Removes an ended task from scheduling.
    fn leave_scheduling(&mut self, id: TaskId, was_dying: bool, triggers: &mut Vec<Trigger>) {
        self.learner.end(id);
        self.admission.left(id);
        if let Some(position) = self.snap.position(id) {
            self.snap.tasks.remove(position);
            triggers.push(Trigger::Ended(id));
        } else if was_dying {
            // It had left scheduling before, but its CPUs are free only now.
            triggers.push(Trigger::Ended(id));
        }
    }
}
