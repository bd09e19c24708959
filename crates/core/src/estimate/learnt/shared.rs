//! The part of the model that all jobs have in common: what threads of a core cost each other, how the latency of memory
//! rises, and what is assumed of a job before it is known.

use super::core_types::CoreTypes;
use super::phase::{NOISE, Phase};
use super::sums::solve_two;
use crate::model::contention::{Contention, Latency};
use std::collections::VecDeque;

/// What is assumed before anything is learnt, with standard deviations: what two busy threads of a core cost each other.
const ALPHA: (f64, f64) = (0.5, 0.25);
const BETA: (f64, f64) = (0.5, 0.5);
const MOST_ALPHA: f64 = 2.0;
const MOST_BETA: f64 = 10.0;
/// Cycles that a read from an idle memory costs, of which several overlap; and how steeply reads grow as the cache gets
/// less (Hartstein et al., "Cache miss behavior: is it sqrt(2)?", CF 2006: 0.3 to 0.7). They count like so many jobs.
const PENALTY: f64 = 80.0;
const STEEPNESS: f64 = 0.3;
const ASSUMED_JOBS: f64 = 4.0;
/// A job that spends less of its cycles on reads tells nothing of their cost.
const TELLING: f64 = 0.02;
/// Intervals whose latency is remembered.
const INTERVALS: usize = 64;
/// How the latency rises, with the standard deviation of its logarithm: about as measured for DDR3 (PROFET, Radulovic et
/// al., SIGMETRICS 2019).
const RISE: (f64, f64) = (0.2, 0.4);
/// Greatest loads that are tried, in units of the greatest seen, and rises.
const HEADROOM: [f64; 10] = [5.0, 3.0, 2.2, 1.8, 1.5, 1.3, 1.18, 1.1, 1.06, 1.02];
const RISES: [f64; 5] = [0.1, 0.14, 0.2, 0.28, 0.4];
/// Relative standard deviation of the latency of an interval. What is off by more is off for other reasons.
const LATENCY_NOISE: f64 = 0.15;
/// The scale of the latencies counts like so many intervals of scale 1.
const ASSUMED_INTERVALS: f64 = 5.0;
/// A memory that is nearer to its limit must explain the intervals better by this.
const LEAST_BETTER: f64 = 0.5;

/// An interval whose latency is remembered.
#[derive(Clone, Debug)]
struct Interval {
    /// Lines read per ns.
    reads: f64,
    /// In units of the idle one.
    latency: f64,
    /// In quanta, at most 1: what it counts.
    weight: f64,
}

#[derive(Clone, Debug)]
pub(super) struct SharedFit {
    /// Sum of the normal equations of all phases.
    normal: [f64; 5],
    /// On the fastest type of core.
    penalty: f64,
    steepness: f64,
    intervals: VecDeque<Interval>,
    /// Jobs of which nothing was measured are taken to wait less or more than they do. All latencies are then off by the
    /// same factor, which tells nothing of the memory.
    scale: f64,
}

impl Default for SharedFit {
    fn default() -> SharedFit {
        SharedFit {
            normal: [0.0; 5],
            penalty: PENALTY,
            steepness: STEEPNESS,
            intervals: VecDeque::new(),
            scale: 1.0,
        }
    }
}

impl SharedFit {
    pub(super) fn penalty(&self) -> f64 {
        self.penalty
    }

    pub(super) fn steepness(&self) -> f64 {
        self.steepness
    }

    /// Notes the latency that was found for an interval; returns the latency without the factor that all have in common.
    pub(super) fn note_interval(&mut self, reads: f64, latency: f64, quanta: f64) -> f64 {
        self.intervals.push_back(Interval {
            reads,
            latency,
            weight: quanta.min(1.0),
        });
        if self.intervals.len() > INTERVALS {
            self.intervals.pop_front();
        }
        (latency / self.scale).max(1.0)
    }

    /// A phase says something else now.
    pub(super) fn exchange(&mut self, before: &[f64; 5], after: &[f64; 5]) {
        for (sum, (before, after)) in self.normal.iter_mut().zip(before.iter().zip(after)) {
            *sum += after - before;
        }
    }

    pub(super) fn update<'a>(
        &mut self,
        shared: &mut Contention,
        types: &CoreTypes,
        phases: impl Iterator<Item = &'a Phase>,
    ) {
        let [aa, ab, bb, a, b] = self.normal;
        let [of_alpha, of_beta] =
            [ALPHA.1, BETA.1].map(|spread| (NOISE / spread) * (NOISE / spread));
        let equations = [[aa + of_alpha, ab], [ab, bb + of_beta]];
        if let Some(([alpha, beta], _)) =
            solve_two(equations, [a + of_alpha * ALPHA.0, b + of_beta * BETA.0])
        {
            shared.alpha = alpha.clamp(0.0, MOST_ALPHA);
            shared.beta = beta.clamp(0.0, MOST_BETA);
        }
        let (mut jobs, mut penalty, mut steepness) = (
            ASSUMED_JOBS,
            ASSUMED_JOBS * PENALTY,
            ASSUMED_JOBS * STEEPNESS,
        );
        for phase in phases.filter(|phase| phase.is_measured()) {
            if phase.asks.reads * phase.asks.penalty > TELLING * phase.solo_cpi {
                jobs += 1.0;
                penalty += phase.asks.penalty / types.penalty(phase.core_type);
                steepness += phase.asks.steepness;
            }
        }
        self.penalty = penalty / jobs;
        self.steepness = steepness / jobs;
        self.fit_memory(shared);
    }

    /// The curve of the latency that explains the last intervals best.
    fn fit_memory(&mut self, shared: &mut Contention) {
        let seen = self
            .intervals
            .iter()
            .map(|interval| interval.reads)
            .fold(0.0, f64::max);
        if seen <= 0.0 {
            return;
        }
        let mut least = f64::INFINITY;
        for headroom in HEADROOM {
            let most = seen * headroom;
            let shapes = self.shapes(most);
            for (rise, scale) in RISES.into_iter().zip(self.scales(&shapes)) {
                let miss = self.miss_of(rise, scale, &shapes, least);
                if miss + LEAST_BETTER < least {
                    least = miss;
                    shared.memory = Latency {
                        most: Some(most),
                        rise,
                    };
                    self.scale = scale;
                }
            }
        }
    }

    /// By which part of its rise the latency of each interval has risen, if `most` lines per ns are the limit.
    fn shapes(&self, most: f64) -> Vec<f64> {
        self.intervals
            .iter()
            .map(|interval| Latency::shape((interval.reads / most).clamp(0.0, 1.0)))
            .collect()
    }

    /// For each rise, the factor by which all latencies are off if it is right.
    fn scales(&self, shapes: &[f64]) -> [f64; RISES.len()] {
        let mut sums = [ASSUMED_INTERVALS; RISES.len()];
        let mut weights = ASSUMED_INTERVALS;
        for (interval, shape) in self.intervals.iter().zip(shapes) {
            for (sum, rise) in sums.iter_mut().zip(RISES) {
                let factor = interval.latency / (1.0 + rise * shape);
                *sum += interval.weight * factor.clamp(0.5, 2.0);
            }
            weights += interval.weight;
        }
        sums.map(|sum| sum / weights)
    }

    /// How badly this curve explains the latencies, and how unlikely its rise is. The sum ends where it is no longer less
    /// than `least`.
    fn miss_of(&self, rise: f64, scale: f64, shapes: &[f64], least: f64) -> f64 {
        let unlikely = libm::log(rise / RISE.0) / RISE.1;
        let mut miss = unlikely * unlikely;
        for (interval, shape) in self.intervals.iter().zip(shapes) {
            if miss + LEAST_BETTER >= least {
                break;
            }
            let expected = scale * (1.0 + rise * shape);
            let latency = interval.latency;
            let off = (latency - expected) / (latency.max(expected) * LATENCY_NOISE);
            miss += interval.weight * (off * off).min(1.0);
        }
        miss
    }
}
