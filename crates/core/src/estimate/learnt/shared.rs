//! The shared part of the model: the costs between threads of a core, the latency curve of memory, and the priors for a
//! new job.

use super::core_types::CoreTypes;
use super::phase::{NOISE, Phase};
use super::sums::solve_two;
use crate::model::contention::{Contention, Latency};
use std::collections::VecDeque;

/// Priors, with standard deviations, for the costs between two busy threads of a core.
const ALPHA: (f64, f64) = (0.5, 0.25);
const BETA: (f64, f64) = (0.5, 0.5);
const MOST_ALPHA: f64 = 2.0;
const MOST_BETA: f64 = 10.0;
/// Priors for a new job, with the weight of `ASSUMED_JOBS` jobs: cycles per read from an idle memory (several overlap),
/// and the exponent by which reads grow as the cache share shrinks (Hartstein et al., "Cache miss behavior: is it
/// sqrt(2)?", CF 2006: 0.3 to 0.7).
const PENALTY: f64 = 80.0;
const STEEPNESS: f64 = 0.3;
const ASSUMED_JOBS: f64 = 4.0;
/// Least share of its cycles on reads for a job to inform the cost of reads.
const TELLING: f64 = 0.02;
/// Number of intervals kept for the latency fit.
const INTERVALS: usize = 64;
/// Prior for the rise of the latency, with the standard deviation of its logarithm: close to measurements of DDR3
/// (PROFET, Radulovic et al., SIGMETRICS 2019).
const RISE: (f64, f64) = (0.2, 0.4);
/// Candidates for the maximum load, relative to the largest one seen, and for the rise.
const HEADROOM: [f64; 10] = [5.0, 3.0, 2.2, 1.8, 1.5, 1.3, 1.18, 1.1, 1.06, 1.02];
const RISES: [f64; 5] = [0.1, 0.14, 0.2, 0.28, 0.4];
/// Relative standard deviation of an interval's latency. Larger deviations have other causes.
const LATENCY_NOISE: f64 = 0.15;
/// Weight of the prior for the latency scale, 1, in intervals.
const ASSUMED_INTERVALS: f64 = 5.0;
/// Least improvement of the fit that a memory closer to its limit must bring.
const LEAST_BETTER: f64 = 0.5;

/// An interval kept for the latency fit.
#[derive(Clone, Debug)]
struct Interval {
    /// Lines read per ns.
    reads: f64,
    /// Relative to an idle memory.
    latency: f64,
    /// Weight: length in quanta, at most 1.
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
    /// Common error factor of all latencies: unmeasured jobs are assumed to wait more or less than they really do,
    /// which says nothing about the memory.
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

    /// Records the latency of an interval, and returns it without the common factor.
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

    /// Replaces a phase's contribution to the normal equations.
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

    /// Fits the latency curve to the last intervals.
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

    /// For each interval, the fraction of the rise at its load, if `most` lines per ns are the limit.
    fn shapes(&self, most: f64) -> Vec<f64> {
        self.intervals
            .iter()
            .map(|interval| Latency::shape((interval.reads / most).clamp(0.0, 1.0)))
            .collect()
    }

    /// For each rise, the common factor of all latencies under it.
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

    /// Misfit of this curve, plus the improbability of its rise. The sum stops once it reaches `least`.
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
