//! The job log, and resuming by it.

mod file;
mod one_run;
mod overwriting;
mod owner;
mod resume;
