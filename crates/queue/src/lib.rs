//! The queue of a machine: a service that keeps jobs, and its clients.
//!
//! The service owns the socket and the database. It never schedules: its worker, an ordinary `cosched run` on a stream of
//! jobs, does. Each job has a reaper, which outlives both and writes into files when the job started and how it ended. So
//! the service and its worker can be killed at any moment: the next start reads these files and goes on.
//!
//! - [`QueuedJob`] and its [`QueuedJobState`]; [`QueueFolder`]: where the service keeps its files; [`QueueError`]
//! - `claim`: the files of reapers; `store`: the database
//! - [`ServiceNotice`]: what the service says to who started it
//! - `queue`: what the service knows, its requests and its orders; `worker`: the child that runs the jobs
//! - [`QueueRequest`] and [`QueueAnswer`]: the protocol; [`QueueClient`]; [`serve`]

mod claim;
mod client;
mod error;
mod folder;
mod job;
mod notice;
mod protocol;
mod queue;
mod server;
mod store;
mod worker;

pub use client::{ClientError, QueueClient};
pub use error::QueueError;
pub use folder::QueueFolder;
pub use job::{QueuedJob, QueuedJobState};
pub use notice::ServiceNotice;
pub use protocol::{JobLine, JobSelection, JobSubmission, QueueAnswer, QueueRequest, ServiceInfo};
pub use queue::Describe;
pub use server::{ServiceConfig, serve};
