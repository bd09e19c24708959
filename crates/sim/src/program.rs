//! A program profile: what a program asks of a core, of caches and of memory.

use crate::source::Source;

/// What a program does, as it was measured. KI = 1,000 instructions; a line has 64 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// Its name in mix files.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Its time in the core.
    pub core: ProgramCore,
    /// Its use of caches.
    pub cache: ProgramCache,
    /// Its use of memory.
    pub memory: ProgramMemory,
    /// Its phases, again and again; a program without any has one that never ends.
    pub phases: Vec<Phase>,
    /// Where each group of figures comes from, in the order of the file.
    pub sources: Vec<(String, Source)>,
}

/// Time in the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramCore {
    /// Cycles per instruction without misses of the last-level cache.
    pub cpi: f64,
    /// Loads and stores per KI.
    pub l1_accesses_per_ki: f64,
}

/// Use of caches.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCache {
    /// Misses of a first-level cache of 32 KB per KI: what would reach the last level without a second.
    pub l1_misses_per_ki: f64,
    /// Accesses to the last-level cache per KI behind a second level of 1 MB.
    pub llc_accesses_per_ki: f64,
    /// Misses of the last-level cache per KI by the MB of it that the program holds, in ascending order of size.
    /// With nothing in the cache every access misses; beyond the last point nothing changes.
    pub llc_misses_per_ki: Vec<(f64, f64)>,
}

/// Use of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramMemory {
    /// Lines read per KI with `at_mb` of the last-level cache, prefetches included.
    pub reads_per_ki: f64,
    /// Lines written per KI with `at_mb` of the last-level cache.
    pub writes_per_ki: f64,
    /// The MB of last-level cache that the two figures were measured with.
    pub at_mb: f64,
    /// How the latency of memory becomes time.
    pub stall: Stall,
}

/// How the latency of memory becomes time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stall {
    /// A straight line was fitted to the cycles per instruction at several latencies.
    Fitted {
        /// Cycles per instruction at latency 0 by the line (not a real machine's: it can be negative).
        cpi_fixed: f64,
        /// Cycles per instruction for each 100 cycles of latency.
        cpi_per_100_cycles: f64,
        /// The least latency of the fit, in cycles; below, the line is not used.
        from_cycles: f64,
    },
    /// So many misses are under way at once, on average.
    Overlap {
        /// Memory-level parallelism, at least 1.
        mlp: f64,
    },
}

/// A part of a program's life. Its factors apply to the program's own figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Its length in instructions.
    pub instructions: f64,
    /// Factor on the cycles per instruction without misses.
    pub cpi: f64,
    /// Factor on accesses to and misses of the last-level cache, and so on the use of memory.
    pub memory: f64,
    /// After it the program sleeps for so long, in ms.
    pub then_sleep_ms: f64,
}
