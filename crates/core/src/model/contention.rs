//! What jobs cost each other in the cores, in the last-level cache and at the memory, and what each would do alone.
//!
//! # The model
//! Cycles per instruction of a job are those in the core, those in which it waits for the first-level cache, and those in
//! which it waits for lines from beyond the private caches:
//!
//! ```text
//! CPI = own (1 + alpha A) + beta l L + penalty (hit (a - m) + latency m)
//! m   = min(a, reads share^-steepness)
//! ```
//!
//! Of the job: `own` cycles in the core; `l`, `a` accesses to the first- and to the last-level cache; `m` lines read from
//! memory; `penalty` cycles that a line costs at the latency of an idle memory, what overlaps counted once; `reads` is `m`
//! with the whole last-level cache. All per instruction.
//!
//! Of its surroundings: `A` other threads of its core that do not wait for lines, `L` their accesses to the first-level
//! cache per cycle, `share` the job's part of what is read into its last-level cache, which is the part that it holds where
//! lines are replaced at random, and `latency` that of memory in units of the idle one.
//!
//! Of the machine: `alpha`, `beta`, `hit` (a hit of the last level in units of a read from an idle memory), and how the
//! latency rises with the lines that all jobs read per ns.
//!
//! The equations are ours; docs/even.md says how well they fit.

use super::inverse_power::inverse_power;
use serde::{Deserialize, Serialize};

/// What a machine charges jobs that share it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Growth of the cycles in the core for each other thread that is busy there.
    pub alpha: f64,
    /// Cycles that an access to the first-level cache waits for each access per cycle of the others.
    pub beta: f64,
    /// What a hit of the last-level cache costs, as a share of a read from an idle memory.
    pub hit: f64,
    /// How the latency of memory rises.
    pub memory: Latency,
}

/// The latency of a memory domain in units of the idle one: 1 + rise u^2 / (1.05 - u), with u the reads / `most`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Lines per ns that the domain can deliver; `None` as long as nothing was seen to be slowed by others.
    pub most: Option<f64>,
    /// How steeply the latency rises.
    pub rise: f64,
}

/// The share of the greatest load beyond which the latency has a pole.
const POLE: f64 = 1.05;
/// The greatest load that a memory domain is taken to have, as a share of `most`.
const MOST_LOAD: f64 = POLE - 1e-3;
/// Halvings of the interval in which the load of a memory domain lies, and the part that is left then.
const HALVINGS: usize = 12;
const CELL: f64 = MOST_LOAD / 4096.0;

impl Latency {
    /// At so many lines read per ns.
    pub fn at(&self, reads: f64) -> f64 {
        self.most.map_or(1.0, |most| {
            1.0 + self.rise * Latency::shape((reads / most).clamp(0.0, 1.0))
        })
    }

    /// The latency at which exactly the load is asked for that has this latency, by halving. The greater the latency, the
    /// less is `asked` for. `near` is a guess of the load: it makes the search shorter, and does not change its result.
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

    /// The latency at a share of the greatest load.
    fn at_share(&self, u: f64) -> f64 {
        1.0 + self.rise * Latency::shape(u)
    }

    /// How much the latency grows for each further line per ns that is asked for at a load of `reads`, if those who ask
    /// yield so many lines per ns for each unit of latency.
    pub(crate) fn growth(&self, reads: f64, yields: f64) -> f64 {
        let Some(most) = self.most else { return 0.0 };
        let u = (reads / most).clamp(0.0, 1.0);
        // slope / (1 + slope x yields), with the slope as a fraction: this is asked millions of times.
        let above = self.rise * (2.0 * u * (POLE - u) + u * u);
        above / ((POLE - u) * (POLE - u) * most + above * yields)
    }

    /// The rise at a share of the greatest load, in units of `rise`.
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

/// What a job asks for in its present phase, per instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    /// Cycles in the core.
    pub own: f64,
    /// Cycles that a line costs which comes from an idle memory.
    pub penalty: f64,
    /// Accesses to the first-level cache.
    pub l1: f64,
    /// Accesses to the last-level cache.
    pub llc: f64,
    /// Lines read from memory if it has the whole last-level cache.
    pub reads: f64,
    /// How they grow as its share of the cache shrinks: by this power of 1 / share.
    pub steepness: f64,
    /// Cycles per ns.
    pub ghz: f64,
}

/// Fewer cycles per instruction mean that nothing is known.
const LEAST_CPI: f64 = 1e-3;

/// The least share of a cache that the power law is used with: below, a job holds next to nothing.
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

    /// Cycles in which an instruction waits for lines.
    pub fn stall(&self, shared: &Contention, reads: f64, latency: f64) -> f64 {
        self.penalty * (shared.hit * (self.llc - reads).max(0.0) + latency * reads)
    }

    /// Cycles per instruction that go by because reads miss the last-level cache, with this share of it.
    pub fn miss_cost(&self, shared: &Contention, share: f64) -> f64 {
        self.penalty * (1.0 - shared.hit) * self.reads_at(share)
    }

    /// Cycles per instruction when the job is alone on the machine.
    pub fn solo_cpi(&self, shared: &Contention) -> f64 {
        let cpi = |latency: f64| self.own + self.stall(shared, self.reads, latency);
        let asked = |latency: f64| self.reads * self.ghz / cpi(latency).max(LEAST_CPI);
        cpi(shared.memory.settled(asked(1.0), asked))
    }
}

/// A job in a place.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// What it asks for.
    pub asks: Asks,
    /// Number of its core.
    pub core: usize,
    /// Number of its last-level cache.
    pub llc: usize,
    /// Number of its memory domain.
    pub domain: usize,
}

/// What a job is predicted to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// Cycles per instruction.
    pub cpi: f64,
    /// Lines read from memory per ns.
    pub reads: f64,
}

/// What jobs are predicted to do side by side.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// Of each job, in the order of the seats.
    pub jobs: Vec<Predicted>,
    /// Of each memory domain: its latency in units of the idle one.
    pub latency: Vec<f64>,
    /// Of each last-level cache: lines per ns that are read into it.
    pub cached: Vec<f64>,
    /// Of each job, within a round.
    waits: Vec<Waits>,
    /// Of each job: the first one of its core, and the next one after it.
    first: Vec<Option<usize>>,
    next: Vec<Option<usize>>,
    by_core: Vec<usize>,
}

/// How a job waits for memory, per instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    domain: usize,
    /// Lines read x cycles per ns.
    lines: f64,
    /// Cycles but those in which it waits for memory.
    fixed: f64,
    /// Cycles in which it waits for an idle memory.
    cycles: f64,
}

impl Waits {
    /// Cycles per instruction at a latency.
    fn cpi(&self, latency: f64) -> f64 {
        self.fixed + self.cycles * latency
    }
}

/// Rounds in which jobs adapt to each other.
const ROUNDS: usize = 4;
/// The least part of its time in which a thread is taken to be busy.
const LEAST_ACTIVITY: f64 = 0.05;

/// The part of its time for which a job is busy that waits for lines for this part of it.
pub fn activity(waits: f64) -> f64 {
    (1.0 - waits).clamp(LEAST_ACTIVITY, 1.0)
}

impl Prediction {
    /// Predicts what jobs in these seats do, all running all the time. The latency of a memory domain is the one at which
    /// its jobs ask for exactly the load that has this latency.
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

    /// One round in which each job adapts to what the others did in the round before.
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

    /// How a job waits for memory, beside those that share its cache and its core.
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

    /// Finds who shares a core.
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

    /// Halving alone.
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
            // From afar, from what is asked for at first, and from where it ends.
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
        // Up to those that would fill the memory several times over.
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
                // It gets no more than there is.
                assert!(
                    penalty == 0.0 || reads * asks.ghz / cpi <= 0.12 * POLE,
                    "{reads} {penalty}"
                );
            }
        }
    }
}
