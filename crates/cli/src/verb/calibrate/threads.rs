//! Threads on other CPUs that work while this one measures.

use crate::workload::arithmetic::spin;
use crate::workload::compute::{iterate, start};
use crate::workload::ring::Line;
use cosched_core::CpuId;
use cosched_linux::pin_thread;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// Lines that a stream reads between two pauses: a page, so prefetchers work as in a long stream.
const CHUNK: usize = 64;

/// Does `work` on this thread while each of these CPUs calls its step again and again. Also returns the seconds that those
/// threads lost to other programs.
pub fn beside<T>(steps: &[(CpuId, impl Fn() + Sync)], work: impl FnOnce() -> T) -> (T, f64) {
    let stop = AtomicBool::new(false);
    let started = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (cpu, step) in steps {
            let (stop, started) = (&stop, &started);
            threads.push(scope.spawn(move || {
                let _ = pin_thread(*cpu);
                step();
                started.fetch_add(1, Ordering::Relaxed);
                with_loss(|| {
                    while !stop.load(Ordering::Relaxed) {
                        step();
                    }
                })
            }));
        }
        while started.load(Ordering::Relaxed) < steps.len() {
            std::thread::yield_now();
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let ended = threads.into_iter().flat_map(ScopedJoinHandle::join);
        let lost_s = ended.map(|((), lost_s)| lost_s);
        (result, lost_s.sum())
    })
}

/// Also returns the seconds in which this thread had no CPU.
pub fn with_loss<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (cpu_s, start) = (thread_s(), Instant::now());
    let result = black_box(work());
    let lost_s = start.elapsed().as_secs_f64() - (thread_s() - cpu_s);
    (result, lost_s.max(0.0))
}

fn thread_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A step of arithmetic that keeps a core busy.
pub fn compute() {
    black_box(iterate(start(1), black_box(2000)));
}

/// A stream of reads that knows how many lines it has read. It is on a cache line of its own, so that counting disturbs no
/// other stream.
#[repr(align(128))]
pub struct ReadStream<'a> {
    lines: &'a [Line],
    read: AtomicUsize,
    /// Iterations of an idle loop after each chunk.
    pause: u64,
}

impl ReadStream<'_> {
    /// Streams over equal parts of these lines. They go on where others stopped after `start` lines.
    pub fn side_by_side(
        lines: &[Line],
        number: usize,
        pause: u64,
        start: usize,
    ) -> Vec<ReadStream<'_>> {
        let length = lines.len() / number.max(1) / CHUNK * CHUNK;
        let parts = lines.chunks_exact(length.max(1)).take(number);
        parts
            .map(|lines| ReadStream {
                lines,
                read: AtomicUsize::new(start / CHUNK * CHUNK),
                pause,
            })
            .collect()
    }

    /// Reads a chunk, and pauses.
    pub fn step(&self) {
        let read = self.lines_read();
        let from = read % self.lines.len();
        read_all(&self.lines[from..from + CHUNK]);
        black_box(spin(black_box(1), self.pause));
        self.read.store(read + CHUNK, Ordering::Relaxed);
    }

    pub fn lines_read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

/// Reads a word of each line.
#[inline(never)]
pub fn read_all(lines: &[Line]) {
    black_box(lines.iter().fold(0, |sum, line| sum ^ line.next()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ring::huge_lines;

    #[test]
    fn streams_know_how_many_lines_they_read() {
        let lines = huge_lines(64 * 4000).unwrap();
        let streams = ReadStream::side_by_side(&lines, 2, 0, 650);
        assert_eq!(streams[1].lines.len(), 1984);
        for _ in 0..40 {
            streams[1].step();
        }
        let read: Vec<usize> = streams.iter().map(ReadStream::lines_read).collect();
        assert_eq!(read, [640, 640 + 40 * CHUNK]);
    }

    #[test]
    fn work_is_done_while_others_step() {
        let cpu = cosched_linux::affinity(0).unwrap().first().unwrap();
        let steps = AtomicUsize::new(0);
        let step = || {
            steps.fetch_add(1, Ordering::Relaxed);
        };
        let (seen, _) = beside(&[(cpu, step)], || steps.load(Ordering::Relaxed));
        assert!(seen > 0, "a thread has started before the work");
    }
}
