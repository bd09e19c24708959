//! Threads on other CPUs that work while this one measures.

use crate::workload::arithmetic::spin;
use crate::workload::compute::{iterate, start};
use crate::workload::measure::Spent;
use crate::workload::ring::Line;
use cosched_core::CpuId;
use cosched_linux::pin_thread;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time in which working threads reach their speed.
const WARM_UP: Duration = Duration::from_millis(1);

/// Lines that a stream reads between two pauses: a page, so prefetchers work as in a long stream.
const CHUNK: usize = 64;

/// Chunks between two looks at whether to stop.
const CHUNKS: usize = 8;

/// Does `work` on this thread while each of these CPUs calls `step` again and again, with its index among them. The CPU time
/// is this thread's, less what the others lost to other programs.
pub fn beside<T>(
    cpus: &[CpuId],
    step: impl Fn(usize) + Sync,
    work: impl FnOnce() -> T,
) -> (T, Spent) {
    let stop = AtomicBool::new(false);
    let started = AtomicUsize::new(0);
    let lost_ns = AtomicU64::new(0);
    let (result, mut spent) = std::thread::scope(|scope| {
        for (ix, &cpu) in cpus.iter().enumerate() {
            let (stop, started, lost_ns, step) = (&stop, &started, &lost_ns, &step);
            scope.spawn(move || {
                let _ = pin_thread(cpu);
                step(ix);
                started.fetch_add(1, Ordering::Relaxed);
                let ((), spent) = timed_thread(|| {
                    while !stop.load(Ordering::Relaxed) {
                        step(ix);
                    }
                });
                let lost = (spent.elapsed_s - spent.cpu_s).max(0.0) * 1e9;
                lost_ns.fetch_add(lost as u64, Ordering::Relaxed);
            });
        }
        while started.load(Ordering::Relaxed) < cpus.len() {
            std::thread::yield_now();
        }
        let warm = Instant::now();
        while !cpus.is_empty() && warm.elapsed() < WARM_UP {}
        let result = timed_thread(work);
        stop.store(true, Ordering::Relaxed);
        result
    });
    spent.cpu_s -= lost_ns.into_inner() as f64 / 1e9;
    (result, spent)
}

/// As `timed`, with the CPU time of this thread alone. That of the whole process lags for running threads.
fn timed_thread<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (cpu_s, start) = (thread_s(), Instant::now());
    let result = black_box(work());
    let elapsed_s = start.elapsed().as_secs_f64();
    let cpu_s = thread_s() - cpu_s;
    (result, Spent { elapsed_s, cpu_s })
}

fn thread_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A step of arithmetic that keeps a core busy.
pub fn compute() {
    black_box(iterate(start(1), black_box(ITERATIONS)));
}

/// Rounds of arithmetic in a step.
pub const ITERATIONS: u64 = 2000;

/// Streams of reads, each over its own part of some lines. Each knows how many lines it has read.
pub struct Streams<'a> {
    parts: Vec<&'a [Line]>,
    read: Vec<Count>,
    /// Iterations of an idle loop after each chunk.
    pause: u64,
}

/// On a cache line of its own, so that counting disturbs no other stream.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

impl<'a> Streams<'a> {
    /// Streams over equal parts of these lines. They go on where others stopped after `start` lines.
    pub fn new(lines: &'a [Line], number: usize, pause: u64, start: usize) -> Streams<'a> {
        let length = lines.len() / number.max(1) / CHUNK * CHUNK;
        let read = (0..number).map(|_| Count(AtomicUsize::new(start)));
        Streams {
            parts: lines.chunks_exact(length.max(1)).take(number).collect(),
            read: read.collect(),
            pause,
        }
    }

    /// Reads some chunks, and pauses after each.
    pub fn step(&self, ix: usize) {
        let (part, count) = (self.parts[ix], &self.read[ix].0);
        let mut at = count.load(Ordering::Relaxed);
        for _ in 0..CHUNKS {
            let from = at % part.len();
            black_box(read(&part[from..from + CHUNK]));
            black_box(spin(black_box(1), self.pause));
            at += CHUNK;
        }
        count.store(at, Ordering::Relaxed);
    }

    /// Lines that all streams have read so far.
    pub fn lines(&self) -> usize {
        let each = self.read.iter();
        each.map(|count| count.0.load(Ordering::Relaxed)).sum()
    }
}

/// Reads a word of each line.
#[inline(never)]
pub fn read(lines: &[Line]) -> usize {
    lines.iter().fold(0, |sum, line| sum ^ line.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ring::huge_lines;

    #[test]
    fn streams_know_how_many_lines_they_read() {
        let lines = huge_lines(64 * 4000).unwrap();
        let streams = Streams::new(&lines, 2, 0, 640);
        assert_eq!(streams.parts[1].len(), 1984);
        for _ in 0..4 {
            streams.step(1);
        }
        assert_eq!(streams.lines(), 2 * 640 + 4 * CHUNKS * CHUNK);
        assert_eq!(read(&lines[..4]), 1 ^ 2 ^ 3);
    }

    #[test]
    fn work_is_done_while_others_step() {
        let cpu = cosched_linux::affinity(0).unwrap().first().unwrap();
        let steps = AtomicUsize::new(0);
        let step = |ix| {
            steps.fetch_add(ix + 1, Ordering::Relaxed);
        };
        let (seen, _) = beside(&[cpu], step, || steps.load(Ordering::Relaxed));
        assert!(seen > 0, "a thread has started before the work");
        assert_eq!(beside(&[], step, || 7).0, 7);
    }
}
