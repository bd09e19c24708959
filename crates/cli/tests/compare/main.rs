//! `cosched compare`: what it runs, what it says, and that it leaves nothing behind.

#[path = "../common/mod.rs"]
mod common;
mod ending;
mod support;
mod verdicts;
