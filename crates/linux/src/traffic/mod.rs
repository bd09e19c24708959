//! Lines that each memory domain reads and writes, counted by its memory controllers.
//!
//! The kernel offers these counters as separate perf PMUs. They include all traffic (jobs of the run, other processes,
//! devices), so they are opened on a CPU and for no process, which usually only administrators may do. The readers
//! follow the kernel's sources. They were tested on small file trees only: no machine with such a PMU was available.

mod discovery;
mod encoding;
mod meter;
mod places;
#[cfg(test)]
mod tests;

pub(crate) use encoding::encode;
pub use meter::TrafficMeter;

const ITEM: &str = "memory traffic";
