//! Errors of a run.

use crate::units::Absence;

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] E),
    /// The policy does not answer, and the run can't go on without it.
    #[error("the policy does not decide: {0}")]
    PolicyHangs(String),
    /// A task needs more CPUs than it may use.
    #[error("task `{name}` needs {needs} CPUs at once, and {have} can be used")]
    TooLarge {
        /// The task's name.
        name: String,
        /// CPUs needed.
        needs: u32,
        /// CPUs allowed.
        have: usize,
    },
    /// The tasks are not numbered 0, 1, 2, ... in their order.
    #[error("task `{name}` is number {is} and should be {should}")]
    Numbering {
        /// The task's name.
        name: String,
        /// Its number.
        is: u32,
        /// Its expected number: its position in the list, from 0.
        should: usize,
    },
    /// Plans were requested, but the backend does not support them.
    #[error("plans can't be carried out here: {0}")]
    NoPlans(Absence),
}
