//! The probes: what a sample of each measures, in nanoseconds.

use super::bench::{ProbeBench, bytes};
use super::figure::{MOST_TAKEN, Sample, calm};
use super::meter::watts;
use super::threads::{ReadStream, beside, compute, read_all, with_loss};
use crate::workload::ring::{Line, walk};
use cosched_core::CpuId;
use cosched_linux::pin_thread;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const SAMPLES: usize = 5;
const SAMPLE: Duration = Duration::from_millis(4);

/// Loads of a walk, or additions, between two readings of the clock.
const UNITS: u64 = 1024;

/// Iterations of the idle loop between two chunks of a stream. The slowest stream reads less than a line per microsecond,
/// which slows nothing.
const PAUSES: [u64; 12] = [
    102_400, 51_200, 25_600, 12_800, 6400, 3200, 1600, 800, 400, 200, 100, 0,
];

/// Maximum change of the reference loop's time within a turn, as a factor. Turbo clocks change by less.
const MOST_DRIFT: f64 = 1.2;

/// What is measured in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// A cycle, in a loop of dependent additions.
    Clock,
    /// A switch between two threads of a CPU.
    Switch,
    /// A move to another core, with half of the second cache to read again.
    Move,
    /// A load in the ring with this index.
    Walk(usize),
    /// A line from streams on so many cores, this one included.
    Streams(usize),
    /// A load beside streams on all other cores, in memory or within the last-level cache; and a line of those.
    Loaded { cached: bool, pause: u64 },
    /// A step of arithmetic, alone or beside the same on the sibling.
    Arithmetic { sibling: bool },
    /// Watts while so many cores compute and read memory by turns. EFS has a mean over programs.
    Power(usize),
}

impl Probe {
    /// The probes that this machine allows, without power. With `quick`, those of the rate of memory alone.
    pub fn all(bench: &ProbeBench<'_>, quick: bool) -> Vec<Probe> {
        let cores = bench.site.cpus.len();
        let powers = std::iter::successors(Some(1), |power| Some(power * 2));
        let powers = powers.take_while(|&power| power < cores);
        let mut all: Vec<Probe> = powers.chain([cores]).map(Probe::Streams).collect();
        if quick {
            return all;
        }
        all.extend((0..bench.rings.len()).map(Probe::Walk));
        all.extend([Probe::Clock, Probe::Switch]);
        if cores > 1 {
            all.push(Probe::Move);
            all.extend(Probe::loaded(false));
        }
        if bench.cached_ring().is_some() {
            all.extend(Probe::loaded(true));
        }
        if bench.sibling.is_some() {
            all.extend([false, true].map(|sibling| Probe::Arithmetic { sibling }));
        }
        all
    }

    /// Walks beside streams, the slowest first.
    pub fn loaded(cached: bool) -> [Probe; PAUSES.len()] {
        PAUSES.map(|pause| Probe::Loaded { cached, pause })
    }

    /// Power with 0, 1, 2 and all of these cores active.
    pub fn powers(cores: usize) -> Vec<Probe> {
        let active = [0, 1, 2, cores].into_iter();
        let active = active.filter(|&active| active <= cores);
        active.map(Probe::Power).collect()
    }

    /// Takes some samples; `None` if they were disturbed, or if the meter has stopped. `turn` is another number each time, so
    /// that streams and walks find no line that the last ones left in a cache.
    pub fn turn(self, bench: &ProbeBench<'_>, turn: usize) -> Option<Vec<Sample>> {
        let (cpus, ring, streamed) = self.uses(bench);
        let llc = bench.site.cache_bytes.last().copied().unwrap_or(u64::MAX);
        for lines in [streamed, ring] {
            if bytes(lines) <= llc {
                read_all(lines);
            }
        }
        let start = turn * (bench.streamed.len() / 7);
        let pause = match self {
            Probe::Loaded { pause, .. } => pause,
            _ => 0,
        };
        let streams = ReadStream::side_by_side(streamed, cpus.len(), pause, start);
        let (first, computes) = match self {
            Probe::Power(_) => (0, true),
            Probe::Move => (cpus.len(), false),
            _ => (1, streams.is_empty()),
        };
        let step = |ix: usize| {
            if computes {
                compute();
            }
            streams.get(ix).map(ReadStream::step);
        };
        let steps = (first..cpus.len()).map(|ix| (cpus[ix], move || step(ix)));
        let steps: Vec<_> = steps.collect();
        let own = || {
            let only = match self {
                Probe::Switch => switch_ns(),
                Probe::Move => move_ns(&cpus, ring),
                Probe::Power(_) => watts(&bench.site.root, bench.power_command).ok()?,
                _ => return self.samples(ring, start, &streams),
            };
            Some(vec![[only, 0.0]])
        };
        let mut others = bench.site.machine.all_cpus();
        others.remove_all(&cpus.iter().copied().collect());
        calm(&bench.site.root, &others, || beside(&steps, own))?
    }

    /// CPUs, that of this thread first; the ring that this thread reads; and what streams read.
    fn uses<'a>(self, bench: &'a ProbeBench<'_>) -> (Vec<CpuId>, &'a [Line], &'a [Line]) {
        let (cpus, all) = (&bench.site.cpus, &bench.streamed[..]);
        match self {
            Probe::Clock | Probe::Switch => (cpus[..1].to_vec(), &[], &[]),
            Probe::Move => (cpus[..2].to_vec(), bench.half_of_second_cache(), &[]),
            Probe::Walk(ix) => (cpus[..1].to_vec(), &bench.rings[ix], &[]),
            Probe::Streams(cores) | Probe::Power(cores) => (cpus[..cores].to_vec(), &[], all),
            Probe::Loaded { cached: true, .. } => {
                let ring = bench.cached_ring().unwrap_or_default();
                let streamed = &all[..ring.len() * bench.sharing];
                (cpus[..bench.sharing].to_vec(), ring, streamed)
            }
            Probe::Loaded { .. } => (cpus.clone(), &bench.rings[bench.rings.len() - 1], all),
            Probe::Arithmetic { sibling } => {
                let sibling = bench.sibling.filter(|_| sibling);
                ([cpus[0]].into_iter().chain(sibling).collect(), &[], &[])
            }
        }
    }

    /// Nanoseconds of a unit of this thread's work, and of a line of the streams; `None` if this thread waited for its CPU, or
    /// if the clock changed.
    fn samples(
        self,
        ring: &[Line],
        mut at: usize,
        streams: &[ReadStream<'_>],
    ) -> Option<Vec<Sample>> {
        let lines = || streams.iter().map(ReadStream::lines_read).sum::<usize>();
        at %= ring.len().max(1);
        let mut work = || match self {
            Probe::Clock => additions(),
            Probe::Streams(_) => streams[0].step(),
            Probe::Arithmetic { .. } => compute(),
            _ => (at, _) = black_box(walk(ring, at, UNITS, 0)),
        };
        let sample = |_| {
            let (start, before, mut units) = (Instant::now(), lines(), 0);
            while start.elapsed() < SAMPLE {
                work();
                units += UNITS;
            }
            let ns = start.elapsed().as_nanos() as f64;
            [ns / units as f64, ns / (lines() - before) as f64]
        };
        let (start, before_ns) = (Instant::now(), reference_ns());
        let (samples, lost_s) = with_loss(|| (0..SAMPLES).map(sample).collect());
        let drift = reference_ns() / before_ns;
        let had_cpu = lost_s <= MOST_TAKEN * start.elapsed().as_secs_f64();
        (had_cpu && (1.0 / MOST_DRIFT..MOST_DRIFT).contains(&drift)).then_some(samples)
    }
}

/// The time of the reference loop: the best of some, so that it tells the clock alone.
fn reference_ns() -> f64 {
    let times = (0..5).map(|_| mean_ns(20, additions));
    times.fold(f64::INFINITY, f64::min)
}

fn additions() {
    let (mut sum, one, two) = (black_box(0_u64), black_box(1), black_box(2));
    for _ in 0..UNITS / 2 {
        // Two operations of a cycle each, which don't fold into one.
        sum = (sum + one) ^ two;
    }
    black_box(sum);
}

/// Rounds of two threads that wake each other, in a sample; and moves.
const ROUNDS: u32 = 500;
const MOVES: u32 = 20;

/// A round of two threads that meet at a barrier: one blocks and the other wakes it. A new thread inherits the CPU of this
/// one.
fn switch_ns() -> f64 {
    let barrier = Barrier::new(2);
    let meet = || {
        barrier.wait();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| mean_ns(ROUNDS, meet));
        mean_ns(ROUNDS, meet)
    })
}

/// A move and the first read of these lines on the other core, less a read without a move.
fn move_ns(cpus: &[CpuId], lines: &[Line]) -> f64 {
    read_all(lines);
    let still_ns = mean_ns(MOVES, || read_all(lines));
    let mut moves = 0;
    let moved_ns = mean_ns(MOVES, || {
        moves += 1;
        let _ = pin_thread(cpus[moves % 2]);
        read_all(lines);
    });
    (moved_ns - still_ns).max(0.0)
}

fn mean_ns(times: u32, mut action: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        action();
    }
    start.elapsed().as_nanos() as f64 / f64::from(times)
}
