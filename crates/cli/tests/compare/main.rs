//! `cosched compare`: what it runs, what it says, and what an interruption costs.

#[path = "../common/mod.rs"]
mod common;
mod ending;
mod resuming;
mod support;
mod verdicts;
