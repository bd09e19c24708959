//! Why an experiment could not be carried out.

use cosched_core::ParamError;
use cosched_core::model::ModelError;
use cosched_sim::SimError;

/// An experiment that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// Cancelled by the caller.
    #[error("interrupted")]
    Interrupted,
    /// A trial could not be simulated.
    #[error("{what}: {error}")]
    Simulation {
        /// The trial, in words.
        what: String,
        /// The cause.
        error: SimError,
    },
    /// A policy's parameter is wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A name that is not in a table: of a policy, machine, program or mix.
    #[error("there is no {kind} `{name}`; there are {have}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that exist, with commas between them.
        have: String,
    },
    /// The parameters of policies could not be fitted to a changed machine.
    #[error("fitting the parameters of {machine}: {error}")]
    Fit {
        /// The machine.
        machine: String,
        /// The cause.
        error: ModelError,
    },
    /// A policy that needs something that the simulated machine lacks.
    #[error("`{policy}` can't run on {machine}: {why}")]
    Unsuited {
        /// The policy.
        policy: String,
        /// The machine.
        machine: String,
        /// What is missing.
        why: String,
    },
    /// A trial that the loop refused.
    #[error("{what}: {why}")]
    Refused {
        /// The trial, in words.
        what: String,
        /// The loop's reason.
        why: String,
    },
    /// Tasks of a trial did not do their work.
    #[error("{what}: {tasks} tasks did not end well")]
    Failed {
        /// The trial, in words.
        what: String,
        /// Their number.
        tasks: usize,
    },
}
