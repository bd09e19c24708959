//! What every workload keeps to: the work that it accepts, and what it tells of it.

use super::measure::Spent;
use super::memory::MemoryError;
use std::fmt::Debug;
use std::ops::RangeInclusive;

/// Amounts of work that a workload accepts. None is no work; the most keeps every count and product within 64 bits' reach
/// and is years of work.
pub(crate) const WORK: RangeInclusive<u64> = 1..=1_000_000_000_000_000;

/// A workload with its options.
pub(crate) trait Workload: Debug {
    /// Sets up, does the work and says what was done.
    ///
    /// # Errors
    /// When the memory that the options ask for can't be had.
    fn run(&self, seed: u64) -> Result<Outcome, MemoryError>;
}

/// What a workload did.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Units of work done, exactly as many as were asked for.
    pub(crate) work: u64,
    /// Bytes touched again and again while the clock ran: the asked working set rounded down to whole lines, or 0 for a
    /// workload that keeps to registers.
    pub(crate) working_set_bytes: u64,
    /// A hash of everything that was loaded or computed, a function of options and seed alone.
    pub(crate) checksum: u64,
    /// Time spent before the work: allocation, first touch, calibration.
    pub(crate) setup: Spent,
    /// Time spent on the work itself.
    pub(crate) run: Spent,
    /// What this workload alone has to say, in order: a name fit for a JSON key, and its value.
    pub(crate) details: Vec<(&'static str, serde_json::Value)>,
}
