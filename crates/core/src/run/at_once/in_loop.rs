//! The controller's part in the main loop.

use super::{AtOnce, Untried};
use crate::run::backend::Backend;
use crate::run::fact::{Fact, Warning};
use crate::run::state::Loop;
use crate::task::TaskId;
use crate::units::Nanos;

impl<B: Backend> Loop<'_, B> {
    /// Lets the controller begin, or begin anew if full width has changed.
    pub(in crate::run) fn begin_at_once(&mut self) {
        let full = self.full_width();
        if !self.config.is_wide(full) {
            self.at_once = None;
            return;
        }
        let known = self.config.at_once.as_deref();
        let has_begun = self.at_once.as_ref().map(AtOnce::full) == Some(full);
        let Some(known) = known.filter(|_| !has_begun) else {
            return;
        };
        let mut at_once = AtOnce::new(full, known, self.ordered);
        if let Some(why) = Untried::on(&self.snap.machine) {
            at_once.refuse(why);
        }
        at_once.told = self.at_once.take().and_then(|before| before.told);
        self.at_once = Some(at_once);
    }

    /// Reports admitted tasks to the controller, and its news to the user.
    pub(in crate::run) fn report_at_once(&mut self, now: Nanos, admitted: &[TaskId]) {
        let Some(at_once) = &mut self.at_once else {
            return;
        };
        let specs = admitted.iter().map(|&id| &self.records[id].spec);
        at_once.admitted(self.snap.tasks.len(), specs);
        let was_fewer = at_once.told.is_some_and(|told| told.is_fewer());
        let is_asked = self.config.at_once_asked;
        let news = at_once.news(self.ordered);
        if let Some(state) = news.filter(|state| is_asked || was_fewer || state.is_fewer()) {
            self.recorder
                .emit(now, Fact::Warned(&Warning::AtOnce(state)));
        }
    }

    /// Lets the controller learn from the first end of a task. How long a failed one took tells nothing.
    pub(in crate::run) fn learn_at_once(&mut self, now: Nanos, id: TaskId, ok: bool) {
        let record = &self.records[id];
        let Some(at_once) = &mut self.at_once else {
            return;
        };
        if !ok {
            at_once.give_up();
        } else if let (Some(started), 1) = (record.started, record.runs) {
            at_once.ended(id, now - started, record.used.cpu_time, self.ordered);
        }
    }
}
