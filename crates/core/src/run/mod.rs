//! The loop: observe, estimate, decide, check, apply, record.

mod backend;
mod config;
mod histogram;
mod main_loop;
mod recorder;

pub use backend::{Backend, Capabilities, Capability, Event, Kill};
pub use config::{Halt, HaltOn, HaltParseError, HaltWhen, Restart, RunConfig};
pub use histogram::Histogram;
pub use main_loop::{RunError, run};
pub use recorder::{DecisionRecord, EndedBy, NullRecorder, Overhead, Recorder, RunResult, TaskResult, Warning};
