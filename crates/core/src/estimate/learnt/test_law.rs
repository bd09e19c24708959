//! A small law of co-runners for tests. It shares no equation with the learner's model.
//!
//! - A core has dispatch slots. Two threads that want more slots than it has divide them, but only while neither waits.
//! - Accesses beyond a cache fall exponentially with its size. Siblings halve each other's private caches.
//! - A program holds the last-level cache in proportion to its accesses, at most its footprint.
//! - Memory is a closed queue with a service time per line. A program has at most `overlap` lines in flight. An
//!   arriving line waits for those before it (approximate mean value analysis: Schweitzer 1979).
//! - The clock falls with the number of active cores.

/// Of each kind of core, the fast one first: dispatch slots a cycle, clock in GHz with one active core, and the part of
/// the lines in flight that it sustains. The private caches are alike, and the unit of size.
const SLOTS: [f64; 2] = [4.0, 2.5];
const CLOCK: [f64; 2] = [2.4, 1.2];
const IN_FLIGHT: [f64; 2] = [1.0, 0.6];
/// Part of the clock that each further active core costs.
const CLOCK_FALL: f64 = 0.02;
/// Size of the last-level cache, in private caches of the fast core.
const CACHE: f64 = 8.0;
/// Time of a hit of the last-level cache, of a read from an idle memory without its service, and of the service, in ns.
const HIT: f64 = 15.0;
const IDLE: f64 = 70.0;
const SERVICE: f64 = 6.0;
/// Footprint of lines whose misses fall by 1/e per unit of cache, in units.
const FOOTPRINT: f64 = 3.0;
/// Rounds of the damped fixed-point iteration.
const ROUNDS: usize = 40;

/// A program. Its accesses are per instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestProgram {
    /// Dispatch slots that it fills in a cycle if it does not wait; an instruction takes one.
    pub(super) width: f64,
    /// Accesses to the first-level cache.
    pub(super) l1: f64,
    /// Accesses to lines that fit into the private caches, more or less, and the cache in which 1/e of them miss.
    pub(super) near: (f64, f64),
    /// The same for lines that fit into the last-level cache.
    pub(super) wide: (f64, f64),
    /// Accesses to lines that are used once.
    pub(super) once: f64,
    /// Most lines in flight, at least 1.
    pub(super) overlap: f64,
}

/// A program on a core of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedProgram {
    pub(super) program: TestProgram,
    pub(super) core: usize,
    pub(super) kind: usize,
}

/// Speed of a program beside others: ns per instruction, clock, and counts per instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    pub(super) ns: f64,
    pub(super) ghz: f64,
    pub(super) llc: f64,
    pub(super) reads: f64,
    /// Part of the time in which it does not wait, and lines of it at the memory.
    busy: f64,
    queue: f64,
}

/// Speeds of programs that run together.
pub(super) fn run(places: &[PlacedProgram]) -> Vec<Speed> {
    let mut cores: Vec<usize> = places.iter().map(|place| place.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let clock = 1.0 - CLOCK_FALL * (cores.len() as f64 - 1.0);
    let start = Speed {
        ns: 1.0,
        ..Speed::default()
    };
    let mut speeds = vec![start; places.len()];
    for _ in 0..ROUNDS {
        let held = cache_held(places, &speeds);
        let queue: f64 = speeds.iter().map(|speed| speed.queue).sum();
        let next = |at: usize| {
            let place = &places[at];
            let (program, kind) = (place.program, place.kind);
            let (mut rate, mut private) = (program.width.min(SLOTS[kind]), 1.0);
            for (n, (other, speed)) in places.iter().zip(&speeds).enumerate() {
                if n == at || other.core != place.core {
                    continue;
                }
                let wanted = program.width.min(SLOTS[kind]) + other.program.width.min(SLOTS[kind]);
                rate *= 1.0 - speed.busy * (1.0 - (SLOTS[kind] / wanted).min(1.0));
                private *= 0.5;
            }
            let (near, wide) = (program.near, program.wide);
            let llc = near.0 * libm::exp(-private / near.1) + wide.0 + program.once;
            let reads = wide.0 * libm::exp(-held[at] / wide.1) + program.once;
            let overlap = (program.overlap * IN_FLIGHT[kind]).max(1.0);
            let ghz = CLOCK[kind] * clock;
            let core = 1.0 / (rate * ghz);
            // An arriving line does not wait for itself.
            let at_memory = SERVICE * (1.0 + queue - speeds[at].queue / overlap);
            let ns = core + ((llc - reads) * HIT + reads * (IDLE + at_memory)) / overlap;
            let found = Speed {
                ns,
                ghz,
                llc,
                reads,
                busy: core / ns,
                queue: reads / ns * at_memory,
            };
            found.halfway_from(&speeds[at])
        };
        speeds = (0..places.len()).map(next).collect();
    }
    speeds
}

impl Speed {
    fn halfway_from(self, old: &Speed) -> Speed {
        Speed {
            ns: 0.5 * (self.ns + old.ns),
            busy: 0.5 * (self.busy + old.busy),
            queue: 0.5 * (self.queue + old.queue),
            ..self
        }
    }
}

/// The cache that each program holds: in proportion to its accesses. What exceeds its footprint goes to the others.
fn cache_held(places: &[PlacedProgram], speeds: &[Speed]) -> Vec<f64> {
    let most = |place: &PlacedProgram| match place.program {
        TestProgram { once, .. } if once > 0.0 => CACHE,
        TestProgram { wide, .. } => FOOTPRINT * wide.1,
    };
    let rate = |at: usize| (speeds[at].llc / speeds[at].ns).max(1e-9);
    let mut held = vec![0.0; places.len()];
    for _ in 0..4 {
        let left = CACHE - held.iter().sum::<f64>();
        let open = |at: &usize| held[*at] < most(&places[*at]);
        let open: Vec<usize> = (0..places.len()).filter(open).collect();
        let all: f64 = open.iter().map(|&at| rate(at)).sum();
        for at in open {
            held[at] = (held[at] + left * rate(at) / all).min(most(&places[at]));
        }
    }
    held
}
