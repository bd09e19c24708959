//! The loop: observe, estimate, decide, check, apply, record.

mod backend;
mod config;
mod histogram;
mod recorder;

pub use backend::{Backend, Event, Feed, Feeds, Kill};
pub use config::{Halt, HaltOn, HaltParseError, HaltWhen, RunConfig};
pub use histogram::Histogram;
pub use recorder::{DecisionRecord, EndedBy, NullRecorder, Overhead, Recorder, RunResult, TaskResult, Warning};
