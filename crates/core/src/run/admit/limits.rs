//! How many tasks may be live at once, and how long after another a task may start.

use super::at_once::{AtOnceLearner, RateAt, Untried};
use super::{Admission, AdmissionInput, AdmissionNews, AdmittedTask};
use crate::run::fact::Warning;
use crate::run::task_record::TaskRecord;
use crate::task::TaskId;
use crate::topology::Machine;
use crate::units::Nanos;

impl Admission<'_> {
    /// Maximum number of live tasks: the user's, else the best that was learnt, else full width.
    pub(in crate::run) fn most_live(&self, machine: &Machine) -> usize {
        let learnt = self.at_once.as_ref().map(AtOnceLearner::limit);
        let limit = self.jobs.or(learnt);
        limit.unwrap_or_else(|| self.config.full_width(machine))
    }

    /// The user has changed the maximum number of live tasks.
    pub(in crate::run) fn limit_to(&mut self, jobs: usize) {
        self.jobs = Some(jobs);
    }

    /// A task has started.
    pub(in crate::run) fn started(&mut self, now: Nanos) {
        self.last_start = Some(now);
    }

    /// End of the delay after the last start; `None` before the first start, or without a delay.
    pub(super) fn delay_end(&self) -> Option<Nanos> {
        let last = self.last_start?;
        (self.config.delay > Nanos::ZERO).then(|| last + self.config.delay)
    }

    /// Begins to learn how many tasks are best at once, or begins anew if full width has changed.
    pub(super) fn begin_at_once(&mut self, machine: &Machine) {
        let full = self.config.full_width(machine);
        if !self.config.is_wide(full) {
            self.at_once = None;
            return;
        }
        let has_begun = self.at_once.as_ref().map(AtOnceLearner::full) == Some(full);
        let Some(known) = self.config.at_once.as_deref().filter(|_| !has_begun) else {
            return;
        };
        let mut at_once = AtOnceLearner::new(full, known, self.queue.arrived());
        if let Some(why) = Untried::on(machine) {
            at_once.refuse(why);
        }
        at_once.told = self.at_once.take().and_then(|before| before.told);
        self.at_once = Some(at_once);
    }

    /// Notes the admitted tasks for the number at once, and returns what is new of it.
    pub(super) fn report_at_once(
        &mut self,
        admitted: &[AdmittedTask],
        run: &AdmissionInput<'_>,
    ) -> Option<AdmissionNews> {
        let at_once = self.at_once.as_mut()?;
        let specs = admitted.iter().map(|task| run.spec(task.id));
        at_once.admitted(run.live.len(), specs);
        let was_fewer = at_once.told.is_some_and(|told| told.is_fewer());
        let is_asked = self.config.at_once_asked;
        let state = at_once.news(self.queue.arrived())?;
        let is_news = is_asked || was_fewer || state.is_fewer();
        is_news.then_some(AdmissionNews::Warned(Warning::AtOnce(state)))
    }

    /// A task has ended, for the first time or later. How long a failed one took says nothing of the number at once.
    pub(in crate::run) fn ended(&mut self, now: Nanos, record: &TaskRecord, ok: bool) {
        let left = self.queue.arrived();
        let Some(at_once) = &mut self.at_once else {
            return;
        };
        if !ok {
            at_once.give_up();
        } else if let (Some(started), 1) = (record.started, record.runs) {
            at_once.ended(record.spec.id, now - started, record.used.cpu_time, left);
        }
    }

    /// A task is not live any more: it has ended, is lost, or has to wait again.
    pub(in crate::run) fn left(&mut self, id: TaskId) {
        if let Some(at_once) = &mut self.at_once {
            at_once.forget(id);
        }
    }

    /// All tasks were held: the time of no live task is that of its number at once.
    pub(in crate::run) fn paused(&mut self) {
        if let Some(at_once) = &mut self.at_once {
            at_once.begin_epoch(0);
        }
    }

    /// The rates with different numbers at once, for later runs; empty if nothing was learnt.
    pub(in crate::run) fn rates(&self) -> Vec<RateAt> {
        self.at_once
            .as_ref()
            .map_or(Vec::new(), AtOnceLearner::learnt)
    }
}
