//! The loop, against a world in memory.

mod ends;
mod faults;
mod progress;
mod starts;
mod streams;
mod support;
mod turns;
