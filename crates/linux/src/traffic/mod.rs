//! Lines that each memory domain reads and writes, counted by its memory controllers.
//!
//! The kernel offers these counters as perf PMUs of their own. They count for whoever asked (jobs of the run, other
//! processes, devices), so they are opened on a CPU and for no process, which mostly only administrators may. The
//! readers follow the kernel's sources. They were tested on small file trees only: no machine with such a PMU was at
//! hand.

mod discovery;
mod encoding;
mod meter;
mod places;
#[cfg(test)]
mod tests;

pub use meter::TrafficMeter;

const ITEM: &str = "memory traffic";
