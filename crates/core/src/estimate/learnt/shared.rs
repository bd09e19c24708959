//! The shared part of the model: the latency curve of memory, and the priors for a new job.

use super::core_types::CoreTypes;
use super::phase::LearntPhase;
use super::rise::Mean;
use super::{ASSUMED, KEPT};
use crate::model::contention::{Contention, Latency, MISSED, SiblingEffect};
use std::collections::VecDeque;

/// Priors for a new job: cycles per read from an idle memory (several overlap),
/// and the exponent by which reads grow as the cache share shrinks (Hartstein et al., "Cache miss behavior: is it
/// sqrt(2)?", CF 2006: 0.3 to 0.7).
const PENALTY: f64 = 80.0;
const STEEPNESS: f64 = 0.3;
/// Candidates for the maximum load, relative to the largest one seen.
const HEADROOM: [f64; 10] = [5.0, 3.0, 2.2, 1.8, 1.5, 1.3, 1.18, 1.1, 1.06, 1.02];
/// Relative standard deviation of an interval's latency. Larger deviations have other causes.
const LATENCY_NOISE: f64 = 0.15;
/// Least improvement of the fit that a memory closer to its limit must bring.
const LEAST_BETTER: f64 = 0.5;

/// A smaller growth of accesses says nothing of where they went.
const LEAST_GROWTH: f64 = 0.05;

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
    /// On the fastest type of core.
    penalty: f64,
    steepness: f64,
    /// How siblings raise the time and the accesses of measured jobs, on average.
    time: SiblingEffect,
    accesses: SiblingEffect,
    /// Sums of the squares of the growth of accesses beside siblings, and of its products with the growth of reads.
    missed: [f64; 2],
    intervals: VecDeque<Interval>,
}

impl Default for SharedFit {
    fn default() -> SharedFit {
        SharedFit {
            penalty: PENALTY,
            steepness: STEEPNESS,
            time: SiblingEffect::default(),
            accesses: SiblingEffect::default(),
            missed: [ASSUMED, ASSUMED * MISSED],
            intervals: VecDeque::new(),
        }
    }
}

impl SharedFit {
    pub(super) fn penalty(&self) -> f64 {
        self.penalty
    }

    /// What siblings raise of a job of which nothing was measured: its time, and its accesses.
    pub(super) fn rises(&self) -> [SiblingEffect; 2] {
        [self.time, self.accesses]
    }

    pub(super) fn steepness(&self) -> f64 {
        self.steepness
    }

    /// Records the latency of an interval.
    pub(super) fn note_interval(&mut self, reads: f64, latency: f64, quanta: f64) {
        self.intervals.push_back(Interval {
            reads,
            latency,
            weight: quanta.min(1.0),
        });
        if self.intervals.len() > KEPT {
            self.intervals.pop_front();
        }
    }

    /// Learns from a sample beside siblings by which factors accesses and reads grew, each less 1. `cost`: the share of the
    /// cycles that waited for the reads.
    pub(super) fn note_growth(&mut self, [accesses, reads, cost]: [f64; 3]) {
        if accesses < LEAST_GROWTH {
            return;
        }
        let reads = reads.clamp(0.0, accesses);
        self.missed[0] += cost * accesses * accesses;
        self.missed[1] += cost * accesses * reads;
        let fades = (KEPT as f64 / self.missed[0]).min(1.0);
        self.missed = self.missed.map(|sum| sum * fades);
    }

    pub(super) fn update<'a>(
        &mut self,
        shared: &mut Contention,
        types: &CoreTypes,
        phases: impl Iterator<Item = &'a LearntPhase>,
    ) {
        let (mut jobs, mut penalty, mut steepness) =
            (ASSUMED, ASSUMED * PENALTY, ASSUMED * STEEPNESS);
        let (mut time, mut accesses) = (Mean::default(), Mean::default());
        for phase in phases.filter(|phase| phase.is_measured()) {
            jobs += 1.0;
            time.add(phase.asks.time);
            accesses.add(phase.asks.accesses);
            penalty += phase.asks.penalty / types.penalty(phase.core_type);
            steepness += phase.asks.steepness;
        }
        (self.time, self.accesses) = (time.siblings(), accesses.siblings());
        self.penalty = penalty / jobs;
        self.steepness = steepness / jobs;
        shared.missed = self.missed[1] / self.missed[0];
        self.fit_memory(shared);
    }

    /// Fits the latency curve to the last intervals.
    fn fit_memory(&self, shared: &mut Contention) {
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
            let memory = Latency {
                most: Some(seen * headroom),
                ..shared.memory
            };
            let miss = self.miss(memory);
            if miss + LEAST_BETTER < least {
                least = miss;
                shared.memory = memory;
            }
        }
    }

    /// The common error factor of all latencies under this curve: jobs that are little known seem to wait more or less
    /// than they do, which says nothing about the memory.
    fn scale_for(&self, memory: Latency) -> f64 {
        let (mut sum, mut weights) = (ASSUMED, ASSUMED);
        for interval in &self.intervals {
            let factor = interval.latency / memory.at(interval.reads);
            sum += interval.weight * factor.clamp(0.5, 2.0);
            weights += interval.weight;
        }
        sum / weights
    }

    /// Misfit of this curve.
    fn miss(&self, memory: Latency) -> f64 {
        let scale = self.scale_for(memory);
        let mut miss = 0.0;
        for interval in &self.intervals {
            let expected = scale * memory.at(interval.reads);
            let off =
                (interval.latency - expected) / (interval.latency.max(expected) * LATENCY_NOISE);
            miss += interval.weight * (off * off).min(1.0);
        }
        miss
    }
}
