//! The tests of the built binary, as one program, which builds sooner than many.

mod common;
mod compare;
mod console;
mod docs;
mod exit_codes;
mod faults;
mod history;
mod input_errors;
mod job_log;
mod log_folders;
mod metrics;
mod report;
mod reproduce;
mod run_batch;
mod run_record;
mod schemas;
mod simulated;
mod simulated_refusals;
mod status;
mod top;
mod trace;
mod values;
mod why;
mod width;
mod workload;
