//! The verbs of the command line, one per file.

pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod status;
pub(crate) mod thaw;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod why;
pub(crate) mod workload;
