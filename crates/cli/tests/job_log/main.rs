//! The job log, and resuming by it.

#[path = "../common/mod.rs"]
mod common;
mod file;
mod one_run;
mod overwriting;
mod owner;
mod resume;
