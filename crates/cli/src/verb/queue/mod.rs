//! The queue of a machine: the service, and the verbs that ask it.

pub mod change;
mod connect;
pub mod join;
pub mod logs;
mod offer;
pub mod serve;
pub mod submit;
pub mod table;
pub mod wait;

use clap_complete::engine::ArgValueCandidates;

/// The jobs of the queue that a verb means.
#[derive(clap::Args)]
pub struct Jobs {
    /// Numbers of jobs, as `cosched submit` printed them
    #[arg(value_name = "JOB", required = true)]
    #[arg(add = ArgValueCandidates::new(offer::unfinished))]
    ids: Vec<u64>,
}
