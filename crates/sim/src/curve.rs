//! Loaded latency: how long a read takes when memory is busy.

/// Latency against bandwidth, by the share of reads; both axes are relative, to the peak bandwidth and to the idle
/// latency, so that one measured curve serves machines with other channels.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyCurve {
    /// One line for each share of reads, in ascending order of it.
    pub lines: Vec<LatencyLine>,
}

/// Latency against bandwidth at one share of reads.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyLine {
    /// Share of reads among all lines moved, in (0, 1].
    pub reads: f64,
    /// (bandwidth / peak, latency / idle latency), both ascending; the first latency is 1.
    pub points: Vec<(f64, f64)>,
}
