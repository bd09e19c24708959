//! A program profile: its demand on a core, on caches and on memory.

use cosched_core::PerDevice;

/// A program's measured profile. KI = 1,000 instructions; a line has 64 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// Its name in mix files.
    pub name: String,
    /// A one-line description.
    pub title: String,
    /// Instructions of the whole program with its usual input; `None` if unknown or endless.
    pub instructions: Option<f64>,
    /// Its use of the core.
    pub core: ProgramCore,
    /// Its use of caches.
    pub cache: ProgramCache,
    /// Its use of memory.
    pub memory: ProgramMemory,
    /// Its phases, which repeat; empty for a program of one endless phase.
    pub phases: Vec<ProgramPhase>,
}

/// A program's use of the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramCore {
    /// Cycles per instruction without misses of the last-level cache.
    pub cpi: f64,
    /// Loads and stores per KI.
    pub l1_accesses_per_ki: f64,
    /// The hits of the last-level cache included in `cpi`; `None` if there are none.
    pub hits: Option<MeasuredHits>,
}

/// Conditions of measured cycles per instruction that include hits of the last-level cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredHits {
    /// Size of the second-level cache in KB: accesses to lines in it did not reach the last level.
    pub l2_kb: f64,
    /// Latency of a hit in cycles.
    pub llc_cycles: f64,
}

/// A program's use of caches.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCache {
    /// Misses of a first-level cache of 32 KB per KI: the accesses that would reach the last level without a second
    /// level.
    pub l1_misses_per_ki: f64,
    /// Size of the second-level cache in KB in the measurement of the other two.
    pub l2_kb: f64,
    /// Accesses to the last-level cache per KI behind that second level.
    pub llc_accesses_per_ki: f64,
    /// (MB of the last-level cache that the program holds, misses per KI), in ascending order of size. With 0 MB every
    /// access misses; beyond the last point nothing changes.
    pub llc_misses_per_ki: Vec<(f64, f64)>,
}

/// A program's use of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramMemory {
    /// Lines read per KI with `at_mb` of the last-level cache, prefetches included.
    pub reads_per_ki: f64,
    /// Lines written per KI with `at_mb` of the last-level cache.
    pub writes_per_ki: f64,
    /// The MB of last-level cache in the measurement of these two figures.
    pub at_mb: f64,
    /// Stall time by the latency of memory.
    pub stall: Stall,
}

/// Stall time by the latency of memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Stall {
    /// A line fitted to the cycles per instruction at several latencies.
    Fitted {
        /// The line's cycles per instruction at latency 0. No real machine reaches it, and it can be negative.
        cpi_fixed: f64,
        /// Additional cycles per instruction for each 100 cycles of latency.
        cpi_per_100_cycles: f64,
        /// The least latency of the fit, in cycles. The line does not hold below it.
        from_cycles: f64,
    },
    /// Misses overlap: this many are outstanding on average.
    Overlap {
        /// Memory-level parallelism, at least 1.
        mlp: f64,
    },
    /// How many misses overlap depends on how many there are: rare ones are hidden less.
    OverlapBySize {
        /// (MB of the last-level cache that the program holds, memory-level parallelism of its hits and misses), in ascending
        /// order of size. In between, the waiting for one that a hit or miss causes changes along a line.
        mlp: Vec<(f64, f64)>,
    },
}

/// A phase of a program. Its factors apply to the program's own figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramPhase {
    /// Its length in instructions.
    pub instructions: f64,
    /// Factor on the cycles per instruction without misses.
    pub cpi: f64,
    /// Factor on accesses to and misses of the last-level cache, and so on the use of memory.
    pub memory: f64,
    /// Sleep after the phase, in ms; 0 for none.
    pub then_sleep_ms: f64,
    /// MB of 10^6 bytes that it then moves from or to each device, off its CPU; at most one is above 0.
    pub then_mb: PerDevice<f64>,
}
