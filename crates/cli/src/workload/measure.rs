//! How long a piece of work took, in wall-clock time and in CPU time.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time spent on a piece of work, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spent {
    /// Wall-clock time, which also counts while the process waits for a CPU or is frozen.
    pub elapsed_s: f64,
    /// On a CPU, in user and kernel mode, by all threads of this process (there is one).
    pub cpu_s: f64,
}

/// Runs `work` between two readings of both clocks. The compiler can't move work across the readings, because it
/// doesn't know what the readings of an opaque result depend on.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (cpu, start) = (cpu_time(), Instant::now());
    let result = black_box(work());
    let (elapsed, cpu) = (start.elapsed(), cpu_time().saturating_sub(cpu));
    (
        result,
        Spent {
            elapsed_s: elapsed.as_secs_f64(),
            cpu_s: cpu.as_secs_f64(),
        },
    )
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The system keeps both parts within these ranges, so the defaults are never used.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_comes_back_with_the_time_of_both_clocks() {
        let (sum, spent) = timed(|| (0..100_000_u64).map(black_box).sum::<u64>());
        assert_eq!(sum, 4_999_950_000);
        assert!(spent.elapsed_s > 0.0 && spent.cpu_s > 0.0, "{spent:?}");
    }
}
