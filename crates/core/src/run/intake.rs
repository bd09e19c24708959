//! Where the tasks of a run come from, beside [`Backend`](super::Backend).

use crate::task::TaskSpec;

/// A source of tasks. They are numbered from 0 in the order of submission.
///
/// The loop asks at every turn, so a backend that waits must return when new tasks have come.
pub trait Intake<B> {
    /// Appends tasks that have come, at most `room` unless all are known anyway. Lets the backend know what it needs to
    /// start them. A task may [arrive](TaskSpec::arrives) later.
    fn take(&mut self, backend: &mut B, room: usize, out: &mut Vec<TaskSpec>);

    /// Whether more tasks are there already than the last call took.
    fn is_ready(&self) -> bool;

    /// Whether all tasks have been taken.
    fn has_ended(&self) -> bool;
}

/// Tasks that are all known before the run, to a backend as well.
pub struct Listed(Vec<TaskSpec>);

impl Listed {
    /// These tasks.
    pub fn new(tasks: Vec<TaskSpec>) -> Listed {
        Listed(tasks)
    }
}

impl<B> Intake<B> for Listed {
    fn take(&mut self, _backend: &mut B, _room: usize, out: &mut Vec<TaskSpec>) {
        out.append(&mut self.0);
    }

    fn is_ready(&self) -> bool {
        !self.0.is_empty()
    }

    fn has_ended(&self) -> bool {
        self.0.is_empty()
    }
}
