//! Slowdown of jobs by co-runners in the cores, in the last-level cache and at the memory, and their solo speed.
//!
//! # The model
//! Cycles per instruction of a job are those in the core, those of waiting for the first-level cache, and those of
//! waiting for lines from beyond the private caches:
//!
//! ```text
//! CPI = own (1 + alpha A) + beta l L + penalty (hit (a - m) + latency m)
//! m   = min(a, reads share^-steepness)
//! ```
//!
//! Of the job: `own` cycles in the core; `l`, `a` accesses to the first- and to the last-level cache; `m` lines read
//! from memory; `penalty` cycles that a line costs at the latency of an idle memory, with overlaps counted once;
//! `reads` is `m` with the whole last-level cache. All per instruction.
//!
//! Of its surroundings: `A` other threads of its core that do not wait for lines; `L` their accesses to the first-level
//! cache per cycle; `share` the job's part of the lines read into its last-level cache, which is the part that it holds
//! if lines are replaced at random; and `latency` of memory relative to the idle one.
//!
//! Of the machine: `alpha`, `beta`, `hit` (a hit of the last level relative to a read from an idle memory), and the
//! rise of the latency with the lines that all jobs read per ns.
//!
//! The equations are ours; docs/even.md shows how well they fit.

use super::inverse_power::inverse_power;
use serde::{Deserialize, Serialize};

/// The machine's coefficients of contention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Growth of the cycles in the core for each other busy thread.
    pub alpha: f64,
    /// Cycles that an access to the first-level cache waits, per access and cycle of the others.
    pub beta: f64,
    /// Cost of a hit of the last-level cache, as a share of a read from an idle memory.
    pub hit: f64,
    /// Rise of the memory's latency.
    pub memory: Latency,
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
/// Maximum load of a memory domain, as a share of `most`.
const MOST_LOAD: f64 = POLE - 1e-3;
/// Number of halvings of the interval of a memory domain's load, and the width left then.
const HALVINGS: usize = 12;
const CELL: f64 = MOST_LOAD / 4096.0;

impl Latency {
    /// The latency at a rate of lines read per ns.
    pub fn at(&self, reads: f64) -> f64 {
        self.most.map_or(1.0, |most| {
            1.0 + self.rise * Latency::shape((reads / most).clamp(0.0, 1.0))
        })
    }

    /// The latency at which the jobs ask for exactly the load that has this latency, by halving. `asked` must fall with
    /// the latency. `near` is a guess of the load: it shortens the search, and does not change its result.
    pub(crate) fn settled(&self, near: f64, asked: impl Fn(f64) -> f64) -> f64 {
        let Some(most) = self.most else { return 1.0 };
        let asks_more = |u: f64| asked(self.at_share(u)) > u * most;
        // Beyond these loads the answer is known. They are sought near the guess.
        let (mut below, mut above) = (0.0, MOST_LOAD);
        for probe in [near / most - CELL, near / most + CELL] {
            if below < probe && probe < above {
                if asks_more(probe) {
                    below = probe;
                } else {
                    above = probe;
                }
            }
        }
        let (mut low, mut high) = (0.0, MOST_LOAD);
        for _ in 0..HALVINGS {
            let u = 0.5 * (low + high);
            if u <= below || (u < above && asks_more(u)) {
                low = u;
            } else {
                high = u;
            }
        }
        self.at_share(0.5 * (low + high))
    }

    /// The latency at a share of the maximum load.
    fn at_share(&self, u: f64) -> f64 {
        1.0 + self.rise * Latency::shape(u)
    }

    /// Growth of the latency per further line per ns at a load of `reads`, if the jobs read `yields` lines per ns less
    /// per unit of latency.
    pub(crate) fn growth(&self, reads: f64, yields: f64) -> f64 {
        let Some(most) = self.most else { return 0.0 };
        let u = (reads / most).clamp(0.0, 1.0);
        // slope / (1 + slope x yields), with the slope as a fraction: this is called millions of times.
        let above = self.rise * (2.0 * u * (POLE - u) + u * u);
        above / ((POLE - u) * (POLE - u) * most + above * yields)
    }

    /// The rise at a share of the maximum load, in units of `rise`.
    pub(crate) fn shape(u: f64) -> f64 {
        u * u / (POLE - u)
    }
}

impl Default for Contention {
    fn default() -> Contention {
        Contention {
            alpha: 0.5,
            beta: 0.5,
            hit: 0.17,
            memory: Latency {
                most: None,
                rise: 0.2,
            },
        }
    }
}

/// Demand of a job in its present phase, per instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    /// Cycles in the core.
    pub own: f64,
    /// Cycles per line from an idle memory.
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
}

/// Least cycles per instruction; less means unknown.
const LEAST_CPI: f64 = 1e-3;

/// Least share of a cache for the power law: below it, a job holds next to nothing.
const LEAST_SHARE: f64 = 0.002;

impl Asks {
    /// Lines read from memory per instruction with this share of the last-level cache.
    pub fn reads_at(&self, share: f64) -> f64 {
        if self.reads <= 0.0 {
            return 0.0;
        }
        let grown = inverse_power(share.clamp(LEAST_SHARE, 1.0), self.steepness);
        (self.reads * grown).min(self.llc.max(self.reads))
    }

    /// Cycles per instruction of waiting for lines.
    pub fn stall(&self, shared: &Contention, reads: f64, latency: f64) -> f64 {
        self.penalty * (shared.hit * (self.llc - reads).max(0.0) + latency * reads)
    }

    /// Cycles per instruction lost to misses of the last-level cache, with this share of it.
    pub fn miss_cost(&self, shared: &Contention, share: f64) -> f64 {
        self.penalty * (1.0 - shared.hit) * self.reads_at(share)
    }

    /// Cycles per instruction alone on the machine.
    pub fn solo_cpi(&self, shared: &Contention) -> f64 {
        let cpi = |latency: f64| self.own + self.stall(shared, self.reads, latency);
        let asked = |latency: f64| self.reads * self.ghz / cpi(latency).max(LEAST_CPI);
        cpi(shared.memory.settled(asked(1.0), asked))
    }
}

/// A job and its place.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// Its demand.
    pub asks: Asks,
    /// Number of its core.
    pub core: usize,
    /// Number of its last-level cache.
    pub llc: usize,
    /// Number of its memory domain.
    pub domain: usize,
}

/// Predicted speed of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// Cycles per instruction.
    pub cpi: f64,
    /// Lines read from memory per ns.
    pub reads: f64,
}

/// Predicted speeds of co-runners.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// One per job, in the order of the seats.
    pub jobs: Vec<Predicted>,
    /// Latency of each memory domain, relative to the idle one.
    pub latency: Vec<f64>,
    /// Lines per ns read into each last-level cache.
    pub cached: Vec<f64>,
    /// One per job, within a round.
    waits: Vec<Waits>,
    /// For each job, the first one of its core, and the next one after it.
    first: Vec<Option<usize>>,
    next: Vec<Option<usize>>,
    by_core: Vec<usize>,
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

/// Number of rounds in which jobs adapt to each other.
const ROUNDS: usize = 4;
/// Least busy share of a thread's time.
const LEAST_ACTIVITY: f64 = 0.05;

/// Busy share of a job's time, given its share of waiting for lines.
pub fn activity(waits: f64) -> f64 {
    (1.0 - waits).clamp(LEAST_ACTIVITY, 1.0)
}

impl Prediction {
    /// Predicts the speeds of jobs in these seats, all running all the time. The latency of a memory domain is the one
    /// at which its jobs ask for exactly the load that has this latency.
    pub fn make(&mut self, shared: &Contention, seats: &[Seat]) {
        self.jobs.clear();
        self.jobs.extend(seats.iter().map(|seat| {
            let cpi = seat.asks.own * (1.0 + 0.5 * shared.alpha)
                + seat.asks.stall(shared, seat.asks.reads, 1.0);
            Predicted {
                cpi,
                reads: seat.asks.reads * seat.asks.ghz / cpi,
            }
        }));
        let count =
            |of: fn(&Seat) -> usize| seats.iter().map(|seat| of(seat) + 1).max().unwrap_or(0);
        self.latency.clear();
        self.latency.resize(count(|seat| seat.domain), 1.0);
        self.cached.clear();
        self.cached.resize(count(|seat| seat.llc), 0.0);
        self.waits.clear();
        self.waits.resize(seats.len(), Waits::default());
        self.link(seats);
        for _ in 0..ROUNDS {
            self.adapt(shared, seats);
        }
    }

    /// Runs one round, in which each job adapts to the others' previous round.
    fn adapt(&mut self, shared: &Contention, seats: &[Seat]) {
        self.cached.iter_mut().for_each(|sum| *sum = 0.0);
        for (seat, job) in seats.iter().zip(&self.jobs) {
            self.cached[seat.llc] += job.reads;
        }
        for at in 0..seats.len() {
            self.waits[at] = self.waits_of(shared, seats, at);
        }
        for domain in 0..self.latency.len() {
            self.latency[domain] = self.settle(shared, domain);
        }
        for (job, waits) in self.jobs.iter_mut().zip(&self.waits) {
            let cpi = waits.cpi(self.latency[waits.domain]);
            *job = Predicted {
                cpi,
                reads: waits.lines / cpi,
            };
        }
    }

    /// Waits of a job for memory, beside those that share its cache and its core.
    fn waits_of(&self, shared: &Contention, seats: &[Seat], at: usize) -> Waits {
        let Seat { asks, .. } = &seats[at];
        let cached = self.cached[seats[at].llc];
        let m = asks.reads_at(if cached > 0.0 {
            self.jobs[at].reads / cached
        } else {
            1.0
        });
        let (mut busy, mut ports) = (0.0, 0.0);
        let mut other = self.first[at];
        while let Some(here) = other {
            let there = &seats[here];
            if here != at {
                let job = &self.jobs[here];
                let reads = job.reads * job.cpi / there.asks.ghz;
                let stall = there.asks.stall(shared, reads, self.latency[there.domain]);
                busy += activity(stall / job.cpi);
                ports += there.asks.l1 / job.cpi;
            }
            other = self.next[here];
        }
        let in_core = asks.own * (1.0 + shared.alpha * busy) + shared.beta * asks.l1 * ports;
        let hits = asks.penalty * shared.hit * (asks.llc - m).max(0.0);
        Waits {
            domain: seats[at].domain,
            lines: m * asks.ghz,
            fixed: in_core + hits,
            cycles: asks.penalty * m,
        }
    }

    /// Links the jobs of each core.
    fn link(&mut self, seats: &[Seat]) {
        self.by_core.clear();
        self.by_core.extend(0..seats.len());
        self.by_core
            .sort_unstable_by_key(|&at| (seats[at].core, at));
        self.first.clear();
        self.first.resize(seats.len(), None);
        self.next.clear();
        self.next.resize(seats.len(), None);
        for pair in self.by_core.windows(2) {
            if seats[pair[0]].core == seats[pair[1]].core {
                self.next[pair[0]] = Some(pair[1]);
            }
        }
        let mut first = None;
        for (nth, &at) in self.by_core.iter().enumerate() {
            if nth == 0 || seats[self.by_core[nth - 1]].core != seats[at].core {
                first = Some(at);
            }
            self.first[at] = first;
        }
    }

    /// The latency at which the jobs of a memory domain ask for the load that has it.
    fn settle(&self, shared: &Contention, domain: usize) -> f64 {
        let (mut near, mut here) = (0.0, Vec::new());
        for (waits, job) in self.waits.iter().zip(&self.jobs) {
            if waits.domain == domain {
                near += job.reads;
                here.push(*waits);
            }
        }
        shared.memory.settled(near, |latency| {
            here.iter()
                .map(|waits| waits.lines / waits.cpi(latency))
                .sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The same by halving alone.
    fn halved(memory: Latency, asked: impl Fn(f64) -> f64) -> f64 {
        let most = memory.most.unwrap();
        let at = |u: f64| 1.0 + memory.rise * Latency::shape(u);
        let (mut low, mut high) = (0.0, MOST_LOAD);
        for _ in 0..HALVINGS {
            let u = 0.5 * (low + high);
            if asked(at(u)) > u * most {
                low = u
            } else {
                high = u
            }
        }
        at(0.5 * (low + high))
    }

    #[test]
    fn what_is_near_shortens_the_way_and_not_the_answer() {
        let mut rng = Rng::new(1);
        let mut draw = |most: f64| most * rng.below(1 << 32) as f64 / 4_294_967_296.0;
        let (mut looks, runs) = (0, 3_000);
        for run in 0..runs {
            let memory = Latency {
                most: Some(0.01 + draw(1.0)),
                rise: draw(0.5),
            };
            let jobs: Vec<[f64; 3]> = (0..run % 30)
                .map(|_| {
                    let m = draw(1.0) * draw(0.1) * draw(1.0);
                    [2.5 * m, 0.3 + draw(2.0), draw(100.0) * m]
                })
                .collect();
            let asked = |latency: f64| {
                jobs.iter()
                    .map(|[lines, fixed, waits]| lines / (fixed + waits * latency))
                    .sum::<f64>()
            };
            let expected = halved(memory, asked);
            let load = |latency: f64| asked(latency);
            // From afar, from the first demand, and from the final one.
            for near in [0.0, 1e9, draw(1.0), load(1.0), load(expected)] {
                let count = std::cell::Cell::new(0);
                let found = memory.settled(near, |latency| {
                    count.set(count.get() + 1);
                    asked(latency)
                });
                assert_eq!(found, expected, "run {run} near {near}");
                looks += if near == load(expected) {
                    count.get()
                } else {
                    0
                };
            }
        }
        // Halving alone takes 12.
        assert!(looks < 5 * runs, "{looks}");
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
                let asks = Asks {
                    own: 0.4,
                    penalty,
                    l1: 0.3,
                    llc: 1.5 * reads,
                    reads,
                    steepness: 0.4,
                    ghz: 2.4,
                };
                let mut prediction = Prediction::default();
                prediction.make(
                    &shared,
                    &[Seat {
                        asks,
                        core: 0,
                        llc: 0,
                        domain: 0,
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
