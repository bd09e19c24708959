//! A program profile: what a program asks of a core, of caches and of memory.

/// What a program does, as measured. KI = 1,000 instructions; a line has 64 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// Its name in mix files.
    pub name: String,
    /// What the program is, in one line.
    pub title: String,
    /// Instructions of the whole program with its usual input; `None` if that is not known or it has no end.
    pub instructions: Option<f64>,
    /// What it does in the core.
    pub core: ProgramCore,
    /// What it asks of caches.
    pub cache: ProgramCache,
    /// What it asks of memory.
    pub memory: ProgramMemory,
    /// Its phases, which repeat; empty for a program of one endless phase.
    pub phases: Vec<Phase>,
}

/// What a program does in the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramCore {
    /// Cycles per instruction without misses of the last-level cache.
    pub cpi: f64,
    /// Loads and stores per KI.
    pub l1_accesses_per_ki: f64,
    /// The hits of the last-level cache that are in `cpi`; `None` if it has none in it.
    pub hits: Option<MeasuredHits>,
}

/// Under which conditions cycles per instruction were measured that have hits of the last-level cache in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredHits {
    /// Size of the second-level cache in KB: what it held did not reach the last level.
    pub l2_kb: f64,
    /// Latency of a hit in cycles.
    pub llc_cycles: f64,
}

/// What a program asks of caches.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCache {
    /// Misses of a first-level cache of 32 KB per KI: the accesses that would reach the last level if there were no
    /// second.
    pub l1_misses_per_ki: f64,
    /// Accesses to the last-level cache per KI behind a second level of 1 MB.
    pub llc_accesses_per_ki: f64,
    /// (MB of the last-level cache that the program holds, misses per KI), in ascending order of size. With nothing in
    /// the cache every access misses; beyond the last point nothing changes.
    pub llc_misses_per_ki: Vec<(f64, f64)>,
}

/// What a program asks of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramMemory {
    /// Lines read per KI with `at_mb` of the last-level cache, prefetches included.
    pub reads_per_ki: f64,
    /// Lines written per KI with `at_mb` of the last-level cache.
    pub writes_per_ki: f64,
    /// The MB of last-level cache with which the two figures were measured.
    pub at_mb: f64,
    /// How the latency of memory becomes stall time.
    pub stall: Stall,
}

/// How the latency of memory becomes stall time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stall {
    /// A line that was fitted to the cycles per instruction at several latencies.
    Fitted {
        /// Cycles per instruction that the line gives at latency 0. No real machine reaches it, and it can be negative.
        cpi_fixed: f64,
        /// Additional cycles per instruction for each 100 cycles of latency.
        cpi_per_100_cycles: f64,
        /// The least latency of the fit, in cycles; the line does not hold below it.
        from_cycles: f64,
    },
    /// Misses overlap: on average this many are under way at once.
    Overlap {
        /// Memory-level parallelism, at least 1.
        mlp: f64,
    },
}

/// A phase of a program. Its factors apply to the program's own figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Its length in instructions.
    pub instructions: f64,
    /// Factor on the cycles per instruction without misses.
    pub cpi: f64,
    /// Factor on accesses to and misses of the last-level cache, and so on the use of memory.
    pub memory: f64,
    /// Sleep after the phase, in ms; 0 for none.
    pub then_sleep_ms: f64,
}
