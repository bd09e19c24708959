//! What is to be shown: the state of a run, and what the user has chosen to see of it.

use crate::view::TopView;
use cosched_report::{JobNow, RunStatus};

/// Everything that a screen shows.
#[derive(Clone, Copy, Debug)]
pub struct TopScene<'a> {
    /// The state of the run.
    pub status: &'a RunStatus,
    /// Something that the user should know of the run, such as its end.
    pub told: Option<&'a str>,
    /// What the user has chosen to see.
    pub view: &'a TopView,
    /// The positions of the jobs in their order.
    pub rows: &'a [usize],
}

impl TopScene<'_> {
    /// The selected job.
    pub(crate) fn selected(&self) -> Option<&JobNow> {
        self.rows
            .get(self.view.place(self.status, self.rows))
            .map(|&ix| &self.status.jobs[ix])
    }
}
