//! A run over several nodes.
//!
//! The coordinator starts a worker on each node and sends it jobs, a JSON line each. The worker answers with frames.
//!
//! - [`protocol`]: orders and frames
//! - [`Cluster`]: the nodes as a backend; `node` and `link`: one of them, and the way to it; `jobs`: where each job is;
//!   `sink`: the files of a node; `machine`: all nodes as a machine
//! - [`work`]: the worker

mod cluster;
mod jobs;
mod link;
mod machine;
mod node;
pub mod protocol;
mod sink;
mod worker;

pub use cluster::{Cluster, ClusterError, ClusterOutput, Launch, capabilities};
pub use jobs::NodeJob;
pub use protocol::JobStream;
pub use sink::OutputPiece;
pub use worker::{NodeWorker, WorkerEnd, work};
