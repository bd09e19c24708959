//! The verbs of the command line, one per file.

pub mod attach;
pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod decide;
pub mod doctor;
pub mod help;
pub mod history;
pub mod list;
pub mod queue;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod set;
pub mod shell;
pub mod slurm;
pub mod status;
pub mod thaw;
pub mod top;
pub mod trace;
pub mod why;
pub mod worker;
pub mod workload;
