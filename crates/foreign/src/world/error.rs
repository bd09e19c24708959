//! Why a world can't go on.

use crate::process::ForeignError;
use cosched_core::Nanos;

/// An error that ends a run in a world.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Its process is gone, or says what it may not say.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// No job runs any more, and nothing will change that.
    #[error("nothing runs at {} s of simulated time, and nothing has happened for long", .0.as_s())]
    Stuck(Nanos),
    /// The user did not want to wait for its answer any longer; the signal.
    #[error("interrupted while the world was to answer")]
    Interrupted(i32),
}
