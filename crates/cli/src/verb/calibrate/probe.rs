//! The probes: what a sample of each measures, in nanoseconds.

use super::bench::{Bench, Ring};
use super::figure::{Sample, turn};
use super::threads::{ITERATIONS, Streams, beside, compute, read};
use crate::workload::measure::Spent;
use crate::workload::ring::{Line, walk};
use cosched_core::{CpuId, CpuSet};
use cosched_linux::pin_thread;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::time::{Duration, Instant};

const SAMPLES: usize = 5;
const SAMPLE: Duration = Duration::from_millis(4);

/// Loads of a walk between two readings of the clock.
const LOADS: u64 = 1024;

/// Iterations of the idle loop between two chunks of a stream, the slowest stream first.
pub const PAUSES: [u64; 8] = [3200, 1600, 800, 400, 200, 100, 50, 0];

/// What is measured in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// A cycle, in a loop of dependent additions.
    Clock,
    /// A load in the ring with this index.
    Walk(usize),
    /// A line from streams on so many cores.
    Streams(usize),
    /// A load from memory beside streams with this pause on all other cores; and a line of those.
    Memory(u64),
    /// The same within the last-level cache.
    Cache(u64),
    /// A round of arithmetic alone.
    Alone,
    /// A round of arithmetic beside the same on the sibling.
    Sibling,
    /// A switch between two threads of a CPU.
    Switch,
    /// A move to another core, with half of the second cache to read again.
    Move,
}

impl Probe {
    /// The probes that this machine allows. With `quick`, those of the rate of memory alone.
    pub fn all(bench: &Bench, quick: bool) -> Vec<Probe> {
        let cores = bench.cpus.len();
        let powers = std::iter::successors(Some(1), |power| Some(power * 2));
        let mut all: Vec<Probe> = powers
            .take_while(|&power| power < cores)
            .chain([cores])
            .map(Probe::Streams)
            .collect();
        if quick {
            return all;
        }
        all.extend((0..bench.rings.len()).map(Probe::Walk));
        all.extend([Probe::Clock, Probe::Switch]);
        if cores > 1 {
            all.push(Probe::Move);
            all.extend(PAUSES.map(Probe::Memory));
        }
        if bench.cached_lines().is_some() {
            all.extend(PAUSES.map(Probe::Cache));
        }
        if bench.sibling.is_some() {
            all.extend([Probe::Alone, Probe::Sibling]);
        }
        all
    }

    /// Takes some samples; `None` if they were disturbed.
    pub fn turn(self, bench: &mut Bench) -> Option<Vec<Sample>> {
        let used = self.cpus(bench);
        let others: CpuSet = bench
            .online
            .iter()
            .filter(|cpu| !used.contains(cpu))
            .collect();
        let threads = match self {
            // It also waits for the other thread, or for the kernel to move it.
            Probe::Switch | Probe::Move => 0.4,
            _ => 1.0,
        };
        self.warm_up(bench);
        let root = bench.root.clone();
        turn(&root, &others, threads, SAMPLES, || self.sample(bench))
    }

    /// The CPUs of a sample, that of this thread first.
    fn cpus(self, bench: &Bench) -> Vec<CpuId> {
        let mut cpus = vec![bench.cpus[0]];
        match self {
            Probe::Streams(cores) => cpus = bench.cpus[..cores].to_vec(),
            Probe::Memory(_) => cpus = bench.cpus.clone(),
            Probe::Move => cpus = bench.cpus[..2].to_vec(),
            Probe::Cache(_) => cpus.extend(bench.sharing_cache()),
            Probe::Sibling => cpus.extend(bench.sibling),
            Probe::Clock | Probe::Walk(_) | Probe::Alone | Probe::Switch => {}
        }
        cpus
    }

    /// Loads a ring into the caches, if it can stay there.
    fn warm_up(self, bench: &Bench) {
        let ring = match self {
            Probe::Walk(ix) => Some(&bench.rings[ix]),
            Probe::Cache(_) => bench.cached_ring().map(|ix| &bench.rings[ix]),
            _ => None,
        };
        let most = bench.cache_bytes.last().copied().unwrap_or(u64::MAX);
        if let Some(ring) = ring.filter(|ring| ring.bytes() <= most) {
            black_box(read(&ring.lines));
        }
    }

    fn sample(self, bench: &mut Bench) -> (Sample, Spent) {
        let cpus = self.cpus(bench);
        match self {
            Probe::Clock => alone(clock_ns),
            Probe::Walk(ix) => alone(|| walk_ns(&mut bench.rings[ix])),
            Probe::Streams(cores) => {
                let start = bench.next_start();
                let streams = Streams::new(&bench.streamed, cores, 0, start);
                let on = |ix| streams.step(ix + 1);
                beside(&cpus[1..], on, || [lines_ns(&streams), 0.0])
            }
            Probe::Memory(pause) => {
                let start = bench.next_start();
                let streams = Streams::new(&bench.streamed, cpus.len() - 1, pause, start);
                let ring = bench.rings.last_mut();
                walk_beside(&cpus[1..], &streams, ring)
            }
            Probe::Cache(pause) => {
                let lines = bench.cached_lines().unwrap_or(0);
                let ring = bench.cached_ring();
                let lines = &bench.streamed[..lines];
                let streams = Streams::new(lines, cpus.len() - 1, pause, 0);
                walk_beside(&cpus[1..], &streams, ring.map(|ix| &mut bench.rings[ix]))
            }
            Probe::Alone => alone(round_ns),
            Probe::Sibling => beside(&cpus[1..], |_| compute(), || [round_ns(), 0.0]),
            Probe::Switch => switch_ns(),
            Probe::Move => {
                let bytes = bench.cache_bytes.get(1).copied().unwrap_or(0) / 2;
                let rings = bench.rings.iter();
                let ring = rings.take_while(|ring| ring.bytes() <= bytes).last();
                move_ns(cpus[0], cpus[1], ring.map_or(&[], |ring| &ring.lines))
            }
        }
    }
}

impl Bench {
    /// The ring that one core walks over within the last-level cache: twice the cache before it.
    pub fn cached_ring(&self) -> Option<usize> {
        let &[.., before, _] = &self.cache_bytes[..] else {
            return None;
        };
        let mut rings = self.rings.iter();
        rings.position(|ring| ring.bytes() >= 2 * before)
    }

    /// The lines that all other cores stream over within the last-level cache; `None` if they don't fit.
    fn cached_lines(&self) -> Option<usize> {
        let others = self.sharing_cache().len();
        let ring = &self.rings[self.cached_ring()?];
        let all = ring.bytes() * (others as u64 + 1);
        let fits = others > 0 && all <= *self.cache_bytes.last()?;
        fits.then(|| ring.lines.len() * others)
    }

    /// Where the next streams start, so that they find no line that the last ones left in a cache.
    fn next_start(&mut self) -> usize {
        self.started = self.started.wrapping_add(self.streamed.len() / 7);
        self.started / 64 * 64
    }
}

/// A sample without anything beside.
fn alone(ns: impl FnOnce() -> f64) -> (Sample, Spent) {
    let (ns, spent) = beside(&[], |_| (), ns);
    ([ns, 0.0], spent)
}

/// Nanoseconds for each of the units that `work` does, in a sample's time.
fn ns_of(mut work: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < SAMPLE {
        done += work();
    }
    start.elapsed().as_nanos() as f64 / done as f64
}

fn clock_ns() -> f64 {
    ns_of(|| {
        let (mut sum, one, two) = (black_box(0_u64), black_box(1), black_box(2));
        for _ in 0..LOADS {
            // Two operations of a cycle each, which don't fold into one.
            sum = (sum + one) ^ two;
        }
        black_box(sum);
        2 * LOADS
    })
}

fn walk_ns(ring: &mut Ring) -> f64 {
    ns_of(|| {
        (ring.at, _) = black_box(walk(&ring.lines, ring.at, LOADS, 0));
        LOADS
    })
}

fn round_ns() -> f64 {
    ns_of(|| {
        compute();
        ITERATIONS
    })
}

/// This thread is the first of the streams.
fn lines_ns(streams: &Streams<'_>) -> f64 {
    let (start, before) = (Instant::now(), streams.lines());
    while start.elapsed() < 2 * SAMPLE {
        streams.step(0);
    }
    start.elapsed().as_nanos() as f64 / (streams.lines() - before) as f64
}

fn walk_beside(cpus: &[CpuId], streams: &Streams<'_>, ring: Option<&mut Ring>) -> (Sample, Spent) {
    let work = || {
        let (start, before) = (Instant::now(), streams.lines());
        let ns = ring.map_or(f64::NAN, walk_ns);
        let lines = streams.lines() - before;
        [ns, start.elapsed().as_nanos() as f64 / lines as f64]
    };
    beside(cpus, |ix| streams.step(ix), work)
}

/// Rounds of two threads that wake each other, in a sample.
const ROUNDS: u32 = 500;

type Pipe = (PipeReader, PipeWriter);

/// Half a round of two threads, less what writing and reading cost without a switch. A new thread inherits the CPU of this
/// one.
fn switch_ns() -> (Sample, Spent) {
    let (Ok(mut ping), Ok(mut pong)) = (pipe(), pipe()) else {
        return alone(|| f64::NAN);
    };
    alone(|| {
        let calls = Instant::now();
        for _ in 0..2 * ROUNDS {
            send(&mut ping);
            receive(&mut ping);
        }
        let calls = calls.elapsed();
        let (ping_there, pong_there) = (&mut ping.0, &mut pong.1);
        let (ping_here, pong_here) = (&mut ping.1, &mut pong.0);
        let rounds = std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let _ = ping_there.read_exact(&mut [0]);
                    let _ = pong_there.write_all(&[0]);
                }
            });
            let rounds = Instant::now();
            for _ in 0..ROUNDS {
                let _ = ping_here.write_all(&[0]);
                let _ = pong_here.read_exact(&mut [0]);
            }
            rounds.elapsed()
        });
        let switches = rounds.saturating_sub(calls);
        switches.as_nanos() as f64 / f64::from(2 * ROUNDS)
    })
}

fn send(pipe: &mut Pipe) {
    // Both ends live as long as the threads.
    let _ = pipe.1.write_all(&[0]);
}

fn receive(pipe: &mut Pipe) {
    let _ = pipe.0.read_exact(&mut [0]);
}

/// Moves in a sample.
const MOVES: u32 = 20;

/// A move and the first read of these lines on the other core, less a read without a move.
fn move_ns(here: CpuId, there: CpuId, lines: &[Line]) -> (Sample, Spent) {
    black_box(read(lines));
    let still = Instant::now();
    for _ in 0..MOVES {
        black_box(read(lines));
    }
    let still = still.elapsed();
    alone(|| {
        let moved = Instant::now();
        for ix in 1..=MOVES {
            let _ = pin_thread(if ix % 2 == 0 { here } else { there });
            black_box(read(lines));
        }
        moved.elapsed().saturating_sub(still).as_nanos() as f64 / f64::from(MOVES)
    })
}
