//! Why an experiment could not be carried out.

/// An experiment that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// Cancelled by the caller.
    #[error("interrupted")]
    Interrupted,
    /// A trial that could not be simulated, or whose jobs failed.
    #[error("{what}: {why}")]
    Trial {
        /// The trial, in words.
        what: String,
        /// The cause.
        why: String,
    },
}

/// What an experiment gave.
pub type Result<T> = std::result::Result<T, ReproduceError>;

impl ReproduceError {
    /// The failure of a trial.
    pub(crate) fn trial(what: &str, why: impl ToString) -> ReproduceError {
        ReproduceError::Trial {
            what: what.to_owned(),
            why: why.to_string(),
        }
    }
}
