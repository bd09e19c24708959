//! The queue of a machine: the service, and the verbs that ask it.

pub mod change;
mod connect;
pub mod join;
pub mod logs;
pub mod serve;
pub mod submit;
pub mod table;
pub mod wait;

pub use connect::all_jobs;

/// The jobs of the queue that a verb means.
#[derive(clap::Args)]
pub struct Jobs {
    /// Numbers of jobs, as `cosched submit` printed them
    #[arg(value_name = "JOB", required = true)]
    ids: Vec<u64>,
}
