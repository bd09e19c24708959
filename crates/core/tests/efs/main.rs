//! `efs` in the world in memory: which tasks run, which wait and why, and for how long at most.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod bus;
mod demand;
mod fairness;
mod idle;
mod log;
#[path = "../memory/mod.rs"]
mod memory;
mod replay;
mod starvation;
