//! A run over several nodes.
//!
//! The coordinator starts a worker on each node and sends it jobs, a JSON line each. The worker answers with frames.
//!
//! - [`protocol`]: orders and frames
//! - [`work`]: the worker

pub mod protocol;
mod worker;

pub use worker::{Worker, work};
