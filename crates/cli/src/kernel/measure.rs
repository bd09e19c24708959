//! How long a piece of work took, on the wall clock and in CPU time.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// Time spent on a piece of work, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spent {
    /// On the wall clock, which also counts while the process waits for a CPU or is frozen.
    pub(crate) elapsed_s: f64,
    /// On a CPU, in user and kernel mode, by all threads of this process (there is one).
    pub(crate) cpu_s: f64,
}

/// Runs `work` between two readings of both clocks. The compiler can't move work across the readings, because it
/// doesn't know what the readings of an opaque result depend on.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (cpu, elapsed) = (cpu_seconds(), Instant::now());
    let result = black_box(work());
    let spent = Spent { elapsed_s: elapsed.elapsed().as_secs_f64(), cpu_s: cpu_seconds() - cpu };
    (result, spent)
}

/// CPU time of this process so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
