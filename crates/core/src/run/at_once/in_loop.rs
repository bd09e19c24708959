//! The controller's part in the main loop.

use super::{AtOnce, Untried};
use crate::run::backend::Backend;
use crate::run::recorder::Warning;
use crate::run::state::Loop;
use crate::task::TaskId;
use crate::units::Nanos;

impl<B: Backend> Loop<'_, B> {
    /// Lets the controller begin, or begin anew if full width has changed.
    pub(in crate::run) fn begin_at_once(&mut self) {
        let full = self.full_width();
        let known = self.config.at_once.as_deref();
        let has_begun = self.at_once.as_ref().map(AtOnce::full) == Some(full);
        let Some(known) = known.filter(|_| !has_begun) else {
            return;
        };
        let mut at_once = AtOnce::new(full, known, self.ordered);
        let machine = &self.snap.machine;
        if !machine.nodes.is_empty() {
            at_once.refuse(Untried::Nodes);
        } else if machine.memory_domains.len() > 1 {
            at_once.refuse(Untried::Domains);
        }
        self.at_once = Some(at_once);
    }

    /// Reports admitted tasks to the controller, and its news to the user.
    pub(in crate::run) fn report_at_once(&mut self, now: Nanos, admitted: &[TaskId]) {
        let Some(at_once) = &mut self.at_once else {
            return;
        };
        let specs = admitted.iter().map(|&id| &self.records[id].spec);
        at_once.admitted(self.snap.tasks.len(), specs);
        let tells_all = self.config.tells_untried;
        let news = at_once.news(self.ordered);
        if let Some(state) = news.filter(|state| tells_all || state.is_found()) {
            self.recorder.warn(now, &Warning::AtOnce(state));
        }
    }

    /// Lets the controller learn from the first end of a task.
    pub(in crate::run) fn learn_at_once(&mut self, now: Nanos, id: TaskId) {
        let record = &self.records[id];
        if let (Some(at_once), Some(started), 1) = (&mut self.at_once, record.started, record.runs)
        {
            at_once.ended(id, now - started, record.used.cpu_time, self.ordered);
        }
    }
}
