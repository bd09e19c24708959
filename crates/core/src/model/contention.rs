//! Slowdown of jobs by co-runners in the cores, in the last-level cache and at the memory, and their solo speed.
//!
//! # The model
//! Cycles per instruction of a job are those in the core, and those of waiting for lines from beyond the private caches.
//! Siblings in the core stretch all of them:
//!
//! ```text
//! CPI = (own + clock penalty (hit (a (1 + g) - m) + latency m)) (1 + sensitivity P)
//! m   = min(a, reads share^-steepness) (1 + missed g),  g = sensitivity' P'
//! ```
//!
//! Of the job: `own` cycles in the core; `a` accesses to the last-level cache; `m` lines read from memory; `penalty`
//! the time that a line costs at the latency of an idle memory, with overlaps counted once; `reads` is `m` with the whole
//! last-level cache. All per instruction. `sensitivity` to siblings and the `pressure` on them are learnt from pairs, with
//! no law of the core behind them: those of its time, and those of its accesses (with a prime). Siblings share the private
//! caches, so `g` more accesses reach the last-level cache.
//!
//! Of its surroundings: `P`, `P'` the sums of the pressures of the other threads of its core; `share` the job's part of the
//! lines read into its last-level cache, which is the part that it holds if lines are replaced at random; and `latency`
//! of memory relative to the idle one.
//!
//! Of the machine: `hit` (a hit of the last level relative to a read from an idle memory), `missed` (the share of what
//! siblings add that the last level does not have), `far` (the further latency of a read from another memory domain), and the
//! rise of the latency with the lines that all jobs read per ns. `hit` and `far` are constants.
//!
//! The equations are ours; docs/even.md shows how well they fit.

use super::inverse_power::inverse_power;
use serde::{Deserialize, Serialize};

/// The machine's coefficients of contention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Cost of a hit of the last-level cache, as a share of a read from an idle memory.
    pub hit: f64,
    /// Share of the accesses added by siblings that miss as the others do; 0 if the last-level cache has them all.
    pub missed: f64,
    /// Further latency of a read from another memory domain than the core's own, as a share of a read from an idle memory.
    pub far: f64,
    /// Rise of the memory's latency.
    pub memory: Latency,
    /// How far the model is trusted to tell how a job changes from its last interval, from 0 to 1, by its errors so far.
    pub trust: f64,
    /// How far a prediction is drawn from the last interval back to the model, from 0 to 1, by the errors so far.
    pub pull: f64,
}

/// Assumed of the model: that it tells changes, and that most of its offset for a job stays.
pub(crate) const TRUST: f64 = 1.0;
pub(crate) const PULL: f64 = 0.3;

/// Reads from another socket take some 1.6 times as long.
pub(crate) const FAR: f64 = 0.6;

/// The share of the added accesses that miss, while nothing is known.
pub(crate) const MISSED: f64 = 0.5;

impl Contention {
    /// The factor on a job's reads while siblings raise its accesses by this factor.
    pub(crate) fn reads_growth(&self, grown: f64) -> f64 {
        1.0 + self.missed * (grown - 1.0)
    }
}

/// The latency of a memory domain relative to the idle one: 1 + rise u^2 / (1.05 - u), with u the reads / `most`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Maximum lines per ns of the domain; `None` until a slowdown was seen.
    pub most: Option<f64>,
    /// Steepness of the rise.
    pub rise: f64,
}

/// The load at which the latency has a pole, as a share of `most`.
const POLE: f64 = 1.05;
/// Maximum number of steps to a memory domain's load; the step that ends the search, as a part of the distance to the pole;
/// and the highest first guess.
const STEPS: usize = 32;
const CLOSE: f64 = 1e-5;
const FULL: f64 = 0.98;

impl Latency {
    /// The latency at a rate of lines read per ns.
    pub fn at(&self, reads: f64) -> f64 {
        self.most.map_or(1.0, |most| {
            1.0 + self.rise * Latency::shape((reads / most).clamp(0.0, 1.0))
        })
    }

    /// The share of the maximum load at which the jobs ask for exactly that load, by Newton's method between bounds.
    /// `asked` tells the lines per ns at a latency, which must fall with it, and their slope.
    pub(crate) fn settled(&self, guess: f64, asked: impl Fn(f64) -> (f64, f64)) -> f64 {
        let Some(most) = self.most else { return 0.0 };
        let (mut low, mut high) = (0.0, POLE);
        let mut u = guess.clamp(0.0, FULL);
        for _ in 0..STEPS {
            let (lines, slope) = asked(self.at_share(u));
            let excess = lines - u * most;
            if excess > 0.0 {
                low = u;
            } else {
                high = u;
            }
            let newton = u - excess / (slope * self.rise * Latency::slope(u) - most);
            let next = if newton >= low && newton <= high {
                newton
            } else {
                0.5 * (low + high)
            };
            let step = (next - u).abs();
            u = next;
            if step < CLOSE * (POLE - u) {
                break;
            }
        }
        u
    }

    /// Lines per ns as a share of the maximum load.
    fn share(&self, reads: f64) -> f64 {
        self.most.map_or(0.0, |most| reads / most)
    }

    /// The latency at a share of the maximum load.
    pub(crate) fn at_share(&self, u: f64) -> f64 {
        1.0 + self.rise * Latency::shape(u)
    }

    /// Growth of the latency per further line per ns at a load of `reads`, as a fraction, since the choice of sets asks for
    /// it often and a division is slow.
    pub(crate) fn growth(&self, reads: f64) -> (f64, f64) {
        let Some(most) = self.most else {
            return (0.0, 1.0);
        };
        // u = reads / most, and both parts are multiplied by most^2.
        let reads = reads.clamp(0.0, most);
        let room = POLE * most - reads;
        (self.rise * reads * (room + POLE * most), room * room * most)
    }

    /// The rise at a share of the maximum load, in units of `rise`.
    pub(crate) fn shape(u: f64) -> f64 {
        u * u / (POLE - u)
    }

    /// Its slope.
    fn slope(u: f64) -> f64 {
        let room = POLE - u;
        u * (room + POLE) / (room * room)
    }
}

impl Default for Contention {
    fn default() -> Contention {
        Contention {
            hit: 0.17,
            missed: MISSED,
            far: FAR,
            memory: Latency {
                most: None,
                // Close to measurements of DDR3 (PROFET, Radulovic et al., SIGMETRICS 2019).
                rise: 0.2,
            },
            trust: TRUST,
            pull: PULL,
        }
    }
}

/// Demand of a job in its present phase, per instruction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseDemand {
    /// Cycles in the core.
    pub own: f64,
    /// Time per line from an idle memory, in ns, with overlaps counted once.
    pub penalty: f64,
    /// Accesses to the first-level cache.
    pub l1: f64,
    /// Accesses to the last-level cache.
    pub llc: f64,
    /// Lines read from memory with the whole last-level cache.
    pub reads: f64,
    /// Growth of the reads as its share of the cache shrinks: this power of 1 / share.
    pub steepness: f64,
    /// Cycles per ns.
    pub ghz: f64,
    /// How siblings stretch its time.
    pub time: SiblingEffect,
    /// How siblings add to its accesses to the last-level cache, because they share the private caches.
    pub accesses: SiblingEffect,
}

/// What siblings of a core do to each other: something of one grows by the share sensitivity x the sum of the pressures
/// of the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiblingEffect {
    /// How much siblings of a pressure of 1 do to it; 1 is common.
    pub sensitivity: f64,
    /// The growth that it causes in a sibling of a sensitivity of 1.
    pub pressure: f64,
}

impl Default for SiblingEffect {
    fn default() -> SiblingEffect {
        SiblingEffect {
            sensitivity: SENSITIVITY,
            pressure: PRESSURE,
        }
    }
}

impl SiblingEffect {
    /// The factor beside siblings with this sum of pressures, which may have a rounding error below 0.
    pub(crate) fn growth(&self, pressure: f64) -> f64 {
        1.0 + self.sensitivity * pressure.max(0.0)
    }
}

/// Sensitivity and pressure of a job of which nothing is known: a sibling costs it a third of its speed.
pub(crate) const SENSITIVITY: f64 = 1.0;
pub(crate) const PRESSURE: f64 = 0.5;

/// Least busy share of a thread's time, share of a cache, and cycles in a core: less means as little.
pub(crate) const LEAST_PART: f64 = 0.05;

/// Standard deviation between jobs of the exponent of reads, and of other shares and logarithms; also between machines.
pub(crate) const SPREAD: f64 = 0.3;

impl Default for PhaseDemand {
    fn default() -> PhaseDemand {
        PhaseDemand {
            own: 0.0,
            penalty: 0.0,
            l1: 0.0,
            llc: 0.0,
            reads: 0.0,
            steepness: 0.0,
            ghz: 0.0,
            time: SiblingEffect::default(),
            accesses: SiblingEffect::default(),
        }
    }
}

impl PhaseDemand {
    /// Lines read from memory per instruction with this share of the last-level cache.
    pub fn reads_at(&self, share: f64) -> f64 {
        if self.reads <= 0.0 {
            return 0.0;
        }
        let grown = inverse_power(share.clamp(LEAST_PART, 1.0), self.steepness);
        (self.reads * grown).min(self.llc.max(self.reads))
    }

    /// Cycles per line from an idle memory.
    pub fn line(&self) -> f64 {
        self.penalty * self.ghz
    }

    /// Cycles per instruction of waiting for lines.
    pub fn stall(&self, shared: &Contention, reads: f64, latency: f64) -> f64 {
        self.line() * (shared.hit * (self.llc - reads).max(0.0) + latency * reads)
    }

    /// Doubt about the cycles per instruction alone, from a look with this share of the cache: the smaller the share, the
    /// less is known of the reads with all of it, as the exponent is known only roughly.
    pub fn unseen(&self, shared: &Contention, share: f64) -> f64 {
        let share = share.clamp(LEAST_PART, 1.0);
        let cost = self.line() * (1.0 - shared.hit) * self.reads_at(share);
        cost * SPREAD * libm::log(1.0 / share)
    }

    /// Cycles per instruction alone on the machine.
    pub fn solo_cpi(&self, shared: &Contention) -> f64 {
        let waits = Waits {
            domain: 0,
            lines: self.reads * self.ghz,
            fixed: self.own + self.stall(shared, self.reads, 0.0),
            cycles: self.line() * self.reads,
        };
        let memory = &shared.memory;
        let load = memory.settled(memory.share(waits.lines / waits.cpi(1.0)), |latency| {
            asked(&[waits], latency)
        });
        waits.cpi(memory.at_share(load))
    }
}

/// A job and its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedJob {
    /// Its demand.
    pub asks: PhaseDemand,
    /// Number of its core.
    pub core: usize,
    /// Number of its last-level cache.
    pub llc: usize,
    /// Number of the memory domain where its lines come from.
    pub domain: usize,
    /// Whether that is not its core's own.
    pub away: bool,
}

/// Predicted speed of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictedSpeed {
    /// Cycles per instruction.
    pub cpi: f64,
    /// Lines read from memory per ns.
    pub reads: f64,
    /// Cycles per instruction of waiting for memory, if it were idle.
    pub waits: f64,
}

/// Predicted speeds of co-runners.
#[derive(Clone, Debug, Default)]
pub struct SpeedPrediction {
    /// One per job, in the order of the seats.
    pub jobs: Vec<PredictedSpeed>,
    /// Latency of each memory domain, relative to the idle one.
    pub latency: Vec<f64>,
    /// Lines per ns read into each last-level cache.
    pub cached: Vec<f64>,
    /// The load of each memory domain, as a share of the maximum.
    load: Vec<f64>,
    /// One per job, within a round, and those of one memory domain.
    waits: Vec<Waits>,
    here: Vec<Waits>,
    /// The sums of the pressures on each core, on time and on accesses.
    cores: Vec<[f64; 2]>,
}

/// Waits of a job for memory, per instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    domain: usize,
    /// Lines read x cycles per ns.
    lines: f64,
    /// Cycles without waiting for memory.
    fixed: f64,
    /// Cycles of waiting for an idle memory.
    cycles: f64,
}

impl Waits {
    /// Cycles per instruction at a latency.
    fn cpi(&self, latency: f64) -> f64 {
        self.fixed + self.cycles * latency
    }
}

/// Lines per ns that jobs ask for at a latency, and their slope.
fn asked(jobs: &[Waits], latency: f64) -> (f64, f64) {
    let (mut lines, mut slope) = (0.0, 0.0);
    for job in jobs {
        let ipc = 1.0 / job.cpi(latency);
        let reads = job.lines * ipc;
        lines += reads;
        slope -= reads * job.cycles * ipc;
    }
    (lines, slope)
}

/// Number of rounds in which jobs adapt to each other.
const ROUNDS: usize = 4;

impl SpeedPrediction {
    /// Predicts the speeds of jobs in these seats, all running all the time. The latency of a memory domain is the one
    /// at which its jobs ask for exactly the load that has this latency.
    pub fn make(&mut self, shared: &Contention, seats: &[PlacedJob]) {
        self.jobs.clear();
        self.jobs.extend(seats.iter().map(|seat| {
            let asks = &seat.asks;
            let cpi = asks.own + asks.stall(shared, asks.reads, 1.0);
            PredictedSpeed {
                cpi,
                reads: asks.reads * asks.ghz / cpi,
                waits: asks.line() * asks.reads,
            }
        }));
        let count =
            |of: fn(&PlacedJob) -> usize| seats.iter().map(|seat| of(seat) + 1).max().unwrap_or(0);
        self.latency.clear();
        self.latency.resize(count(|seat| seat.domain), 1.0);
        self.load.clear();
        self.load.resize(self.latency.len(), 0.0);
        for (seat, job) in seats.iter().zip(&self.jobs) {
            self.load[seat.domain] += shared.memory.share(job.reads);
        }
        self.cached.clear();
        self.cached.resize(count(|seat| seat.llc), 0.0);
        self.waits.clear();
        self.waits.resize(seats.len(), Waits::default());
        self.cores.clear();
        self.cores.resize(count(|seat| seat.core), [0.0; 2]);
        for seat in seats {
            let [time, accesses] = &mut self.cores[seat.core];
            *time += seat.asks.time.pressure;
            *accesses += seat.asks.accesses.pressure;
        }
        for _ in 0..ROUNDS {
            self.adapt(shared, seats);
        }
    }

    /// Runs one round, in which each job adapts to the others' previous round.
    fn adapt(&mut self, shared: &Contention, seats: &[PlacedJob]) {
        self.cached.iter_mut().for_each(|sum| *sum = 0.0);
        for (seat, job) in seats.iter().zip(&self.jobs) {
            self.cached[seat.llc] += job.reads;
        }
        for at in 0..seats.len() {
            self.waits[at] = self.waits_of(shared, seats, at);
        }
        for domain in 0..self.latency.len() {
            self.settle(shared, domain);
        }
        for (job, waits) in self.jobs.iter_mut().zip(&self.waits) {
            let cpi = waits.cpi(self.latency[waits.domain]);
            *job = PredictedSpeed {
                cpi,
                reads: waits.lines / cpi,
                waits: waits.cycles,
            };
        }
    }

    /// Waits of a job for memory, beside those that share its cache and its core.
    fn waits_of(&self, shared: &Contention, seats: &[PlacedJob], at: usize) -> Waits {
        let PlacedJob { asks, .. } = &seats[at];
        let cached = self.cached[seats[at].llc];
        let m = asks.reads_at(if cached > 0.0 {
            self.jobs[at].reads / cached
        } else {
            1.0
        });
        let [time, accesses] = self.cores[seats[at].core];
        let stretched = asks.time.growth(time - asks.time.pressure);
        let grown = asks.accesses.growth(accesses - asks.accesses.pressure);
        let m = m * shared.reads_growth(grown);
        let hits = asks.line() * shared.hit * (asks.llc * grown - m).max(0.0);
        let far = if seats[at].away { shared.far } else { 0.0 };
        let on_the_way = asks.line() * far * m;
        Waits {
            domain: seats[at].domain,
            lines: m * asks.ghz,
            fixed: (asks.own + hits + on_the_way) * stretched,
            cycles: asks.line() * m * stretched,
        }
    }

    /// Finds the load of a memory domain at which its jobs ask for exactly that load.
    fn settle(&mut self, shared: &Contention, domain: usize) {
        let here = self.waits.iter().filter(|waits| waits.domain == domain);
        self.here.clear();
        self.here.extend(here);
        let load = shared
            .memory
            .settled(self.load[domain], |latency| asked(&self.here, latency));
        self.load[domain] = load;
        self.latency[domain] = shared.memory.at_share(load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settled_load_is_the_one_that_halving_finds() {
        let mut rng = crate::rng::Rng::new(3);
        let mut draw = |most: f64| most * (1 + rng.below(1_000)) as f64 / 1_000.0;
        for _ in 0..2_000 {
            let memory = Latency {
                most: Some(draw(0.3)),
                rise: draw(1.0),
            };
            let mut job = || Waits {
                domain: 0,
                lines: draw(0.1),
                fixed: draw(3.0),
                cycles: draw(4.0),
            };
            let jobs = [job(), job(), job()];
            let (mut low, mut high) = (0.0, POLE);
            for _ in 0..60 {
                let u = 0.5 * (low + high);
                let (lines, _) = asked(&jobs, memory.at_share(u));
                if lines > memory.most.unwrap_or_default() * u {
                    low = u;
                } else {
                    high = u;
                }
            }
            for guess in [0.0, 0.5, 2.0] {
                let u = memory.settled(guess, |latency| asked(&jobs, latency));
                let off = (u - low).abs() / (POLE - low);
                assert!(off < 1e-4, "{u} {low} {memory:?} {jobs:?}");
            }
        }
    }

    #[test]
    fn alone_a_job_does_what_is_predicted_of_it_alone() {
        let memory = Latency {
            most: Some(0.12),
            rise: 0.25,
        };
        let shared = Contention {
            memory,
            ..Contention::default()
        };
        // Up to jobs that would fill the memory several times over.
        for reads in [0.0, 1e-4, 1e-3, 0.005, 0.02, 0.06, 0.25] {
            for penalty in [0.0, 2.0, 20.0, 200.0] {
                let asks = PhaseDemand {
                    own: 0.4,
                    penalty,
                    l1: 0.3,
                    llc: 1.5 * reads,
                    reads,
                    steepness: 0.4,
                    ghz: 2.4,
                    ..PhaseDemand::default()
                };
                let mut prediction = SpeedPrediction::default();
                prediction.make(
                    &shared,
                    &[PlacedJob {
                        asks,
                        core: 0,
                        llc: 0,
                        domain: 0,
                        away: false,
                    }],
                );
                let (alone, cpi) = (prediction.jobs[0].cpi, asks.solo_cpi(&shared));
                assert!(
                    (alone / cpi - 1.0).abs() < 1e-9,
                    "{reads} {penalty}: {alone} {cpi}"
                );
                // It gets no more than the memory delivers.
                assert!(
                    penalty == 0.0 || reads * asks.ghz / cpi <= 0.12 * POLE,
                    "{reads} {penalty}"
                );
            }
        }
    }
}
