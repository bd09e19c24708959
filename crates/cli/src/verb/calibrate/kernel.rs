//! The measuring kernels: walks and streams over lines of memory. Each knows how many lines it touches, so no hardware
//! counter is needed.

use crate::workload::arithmetic::spin;
use crate::workload::ring::{Line, walk};
use cosched_core::CpuId;
use cosched_linux::pin_thread;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines that a stream reads between two pauses: a page, so prefetchers work as in a long stream.
const CHUNK: usize = 64;

/// Loads between two readings of the clock.
const BATCH: u64 = 2048;

/// A walk over a ring, which continues where it stopped.
pub struct Walk<'a> {
    ring: &'a [Line],
    at: usize,
}

impl<'a> Walk<'a> {
    pub fn over(ring: &'a [Line]) -> Walk<'a> {
        Walk { ring, at: 0 }
    }

    /// Walks for a time; returns nanoseconds per load.
    pub fn for_time(&mut self, time: Duration) -> f64 {
        let start = Instant::now();
        let mut loads = 0;
        while start.elapsed() < time {
            (self.at, _) = black_box(walk(self.ring, self.at, BATCH, 0));
            loads += BATCH;
        }
        start.elapsed().as_secs_f64() * 1e9 / loads as f64
    }
}

/// A stream of reads on each of some CPUs, each over lines of its own.
pub struct Streams<'a> {
    pub lines: &'a [Line],
    pub cpus: &'a [CpuId],
    /// Iterations of an idle loop after each chunk of lines.
    pub pause: u64,
}

impl Streams<'_> {
    /// Does `work` on this thread while the streams run. Returns its result, and the lines that all streams read per
    /// microsecond meanwhile.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, f64) {
        let stop = AtomicBool::new(false);
        let counts: Vec<AtomicU64> = self.cpus.iter().map(|_| AtomicU64::new(0)).collect();
        let share = (self.lines.len() / self.cpus.len().max(1)).max(1);
        std::thread::scope(|scope| {
            let parts = self.lines.chunks_exact(share);
            for ((&cpu, part), count) in self.cpus.iter().zip(parts).zip(&counts) {
                let stop = &stop;
                scope.spawn(move || {
                    let _ = pin_thread(cpu);
                    stream(part, self.pause, count, stop);
                });
            }
            while counts
                .iter()
                .any(|count| count.load(Ordering::Relaxed) == 0)
            {
                std::thread::yield_now();
            }
            let (before, start) = (sum(&counts), Instant::now());
            let result = work();
            let lines = sum(&counts) - before;
            let rate = lines as f64 / (start.elapsed().as_secs_f64() * 1e6);
            stop.store(true, Ordering::Relaxed);
            (result, rate)
        })
    }
}

fn sum(counts: &[AtomicU64]) -> u64 {
    counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .sum()
}

/// Reads the lines in order, again and again, until it is stopped.
fn stream(lines: &[Line], pause: u64, count: &AtomicU64, stop: &AtomicBool) {
    let mut done = 0;
    for chunk in lines.chunks(CHUNK).cycle() {
        black_box(read(chunk));
        black_box(spin(black_box(1), pause));
        done += chunk.len() as u64;
        count.store(done, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

/// Reads a word of each line.
#[inline(never)]
fn read(lines: &[Line]) -> usize {
    lines.iter().fold(0, |sum, line| sum ^ line.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ring::huge_lines;

    #[test]
    fn streams_count_the_lines_that_they_read() {
        let lines = huge_lines(64 * 1000).unwrap();
        let (count, stop) = (AtomicU64::new(0), AtomicBool::new(true));
        stream(&lines, 0, &count, &stop);
        assert_eq!(count.load(Ordering::Relaxed), CHUNK as u64);
        assert_eq!(read(&lines[..4]), 1 ^ 2 ^ 3);
        let cpu = cosched_linux::affinity(0).unwrap().first().unwrap();
        let streams = Streams {
            lines: &lines,
            cpus: &[cpu],
            pause: 3,
        };
        let (result, rate) = streams.beside(|| {
            std::thread::sleep(Duration::from_millis(50));
            7
        });
        assert_eq!(result, 7);
        assert!(rate >= 0.0);
    }
}
