//! The loop, against a world in memory.

mod ends;
mod faults;
mod progress;
mod starts;
mod support;
mod turns;
