//! Why a run can't begin, or can't go on.

use crate::units::Absence;

/// A run that can't begin, or can't go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] E),
    /// A task needs more CPUs than it may use.
    #[error("task `{name}` needs {needs} CPUs at once, and {have} can be used")]
    TooLarge {
        /// The task's name.
        name: String,
        /// CPUs that it needs.
        needs: u32,
        /// CPUs that it may use.
        have: usize,
    },
    /// The tasks are not numbered 0, 1, 2 and so on, in their order.
    #[error("task `{name}` is number {is} and should be {should}")]
    Numbering {
        /// The task's name.
        name: String,
        /// The number that the task has.
        is: u32,
        /// The number that the task should have: its place in the list, from 0.
        should: usize,
    },
    /// Plans were asked for, and the backend carries out none.
    #[error("plans can't be carried out here: {0}")]
    NoPlans(Absence),
}
