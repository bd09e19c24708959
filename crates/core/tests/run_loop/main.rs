//! The loop, against a world in memory.

mod ends;
mod faults;
#[path = "../memory/mod.rs"]
mod memory;
mod progress;
mod starts;
mod support;
mod turns;
