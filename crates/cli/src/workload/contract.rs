//! The contract of every workload: the work that it accepts, and the outcome that it reports.

use super::measure::Spent;
use super::memory::MemoryError;
use std::ops::RangeInclusive;

/// Amounts of work that a workload accepts: at least 1, and at most years of work, so that every count and product
/// stays within the reach of 64 bits.
pub const WORK: RangeInclusive<u64> = 1..=1_000_000_000_000_000;

/// A workload with its options.
pub trait Workload {
    /// Sets up, does the work and returns the outcome.
    ///
    /// # Errors
    /// The memory that the options ask for is not available.
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError>;
}

/// What a workload did.
pub struct WorkloadOutcome {
    /// Units of work done, exactly as many as were asked for.
    pub work: u64,
    /// Bytes touched repeatedly while the clock ran: the requested working set rounded down to whole lines, or 0 for a
    /// workload that uses registers only.
    pub working_set_bytes: u64,
    /// A hash of everything that was loaded or computed, a function of options and seed alone.
    pub checksum: u64,
    /// Time spent before the work: allocation, first touch, calibration.
    pub setup: Spent,
    /// Time spent on the work itself.
    pub run: Spent,
    /// Further results of this workload, in order: a name that can be a JSON key, and its value.
    pub details: Vec<(&'static str, serde_json::Value)>,
}
