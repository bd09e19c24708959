//! A job's demand on a core type that it has not run on yet, predicted from its demand on another.
//!
//! The same instructions take a different number of cycles on another core type. A read from memory takes cycles in
//! proportion to the clock, more or less if fewer or more reads overlap. Both factors are learnt from the jobs that ran
//! on both types. Accesses and reads per instruction are assumed to be equal.

use super::phase::LearntPhase;
use super::{MEMORY, NOISE, ROUGH};
use crate::model::contention::{PhaseDemand, SPREAD};
use crate::topology::{CoreType, Machine};

/// A type of core.
#[derive(Clone, Debug, Default)]
struct Kind {
    clock: Clock,
    /// The clock of jobs that are alone: it may be faster.
    alone: Clock,
    /// The kernel's capacity, as a share of the fastest type's.
    capacity: Option<f64>,
    /// Logarithms of `own` and `penalty` on this type, relative to the fastest type.
    own: Mean,
    penalty: Mean,
}

/// Cycles per ns, and the number of samples behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    ghz: Option<f64>,
    samples: f64,
}

impl Clock {
    fn saw(&mut self, ghz: f64) {
        self.samples += 1.0;
        let before = self.ghz.filter(|_| self.samples > 1.0).unwrap_or(ghz);
        self.ghz = Some(before + (ghz - before) / self.samples.min(MEMORY));
    }
}

/// A mean over jobs, weighted by the certainty of each.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, figure: f64, weight: f64) {
        self.sum += weight * figure;
        self.weight += weight;
    }

    /// The mean with an assumed figure, of weight 1.
    fn with(&self, assumed: f64) -> f64 {
        (self.sum + assumed) / (self.weight + 1.0)
    }
}

/// The differences between the core types of a machine.
#[derive(Clone, Debug)]
pub(super) struct CoreTypes {
    types: Vec<CoreType>,
    kinds: Vec<Kind>,
}

impl CoreTypes {
    pub(super) fn new(types: &[CoreType]) -> CoreTypes {
        let capacity = |kind: &CoreType| kind.capacity.filter(|&capacity| capacity > 0);
        let fastest = types.first().and_then(capacity);
        let mut kinds = Vec::new();
        for kind in types {
            let khz = kind.max_khz.filter(|&khz| khz > 0);
            let both = capacity(kind).zip(fastest);
            kinds.push(Kind {
                clock: Clock {
                    ghz: khz.map(|khz| khz as f64 / 1e6),
                    samples: 0.0,
                },
                capacity: both.map(|(one, most)| f64::from(one) / f64::from(most)),
                ..Kind::default()
            });
        }
        CoreTypes {
            types: types.to_vec(),
            kinds,
        }
    }

    /// Whether a machine has these types: it may lose one as CPUs go offline.
    pub(super) fn are_those_of(&self, machine: &Machine) -> bool {
        self.types == machine.core_types
    }

    pub(super) fn has(&self, kind: usize) -> bool {
        kind < self.kinds.len()
    }

    /// The types other than the fastest.
    pub(super) fn slower(&self) -> std::ops::Range<usize> {
        1..self.kinds.len()
    }

    /// Records the clock of a core of this type in a sample. `alone`: whether it was measured alone.
    pub(super) fn saw(&mut self, kind: usize, ghz: f64, alone: bool) {
        let kind = &mut self.kinds[kind];
        kind.clock.saw(ghz);
        if alone {
            kind.alone.saw(ghz);
        }
    }

    /// Cycles per ns of a job that is alone on the fastest type; `None` before a measurement.
    pub(super) fn alone_ghz(&self) -> Option<f64> {
        self.kinds.first()?.alone.ghz
    }

    /// Cycles per ns on a type, relative to the fastest; 1 if unknown.
    fn clock(&self, kind: usize) -> f64 {
        let [one, fastest] = [kind, 0].map(|kind| self.kinds[kind].clock.ghz);
        one.zip(fastest).map_or(1.0, |(one, fastest)| one / fastest)
    }

    /// Logarithms of the factors on `own` and on `penalty`.
    fn factors(&self, kind: usize) -> (f64, f64) {
        let one = &self.kinds[kind];
        let clock = self.clock(kind);
        let assumed_own = one
            .capacity
            .map_or(0.0, |capacity| libm::log(clock / capacity));
        (one.own.with(assumed_own), one.penalty.with(0.0))
    }

    /// Time of a read from an idle memory on a type, relative to the fastest.
    pub(super) fn penalty(&self, kind: usize) -> f64 {
        libm::exp(self.factors(kind).1)
    }

    /// Predicts a job's demand on one type from its demand on another.
    pub(super) fn convert(&self, asks: &PhaseDemand, from: usize, to: usize) -> PhaseDemand {
        if from == to {
            return *asks;
        }
        let ((own, penalty), (own_to, penalty_to)) = (self.factors(from), self.factors(to));
        PhaseDemand {
            own: asks.own * libm::exp(own_to - own),
            penalty: asks.penalty * libm::exp(penalty_to - penalty),
            ghz: asks.ghz * self.clock(to) / self.clock(from),
            ..*asks
        }
    }

    /// Learns the factors from phases that ran on two types, the fastest second. The error of all cycles may lie in
    /// either part of them.
    pub(super) fn update<'a>(
        &mut self,
        pairs: impl Iterator<Item = (&'a LearntPhase, &'a LearntPhase)>,
    ) {
        for kind in &mut self.kinds {
            (kind.own, kind.penalty) = (Mean::default(), Mean::default());
        }
        for (one, fastest) in pairs {
            let kind = &mut self.kinds[one.core_type];
            let weight = |part: fn(&LearntPhase) -> f64| {
                let [a, b] = [one, fastest].map(|phase| phase.error * phase.solo_cpi / part(phase));
                SPREAD * SPREAD / (ROUGH * ROUGH + a * a + b * b)
            };
            let ratio = libm::log(one.asks.own / fastest.asks.own);
            kind.own.add(ratio, weight(|phase| phase.asks.own));
            if one.asks.penalty.min(fastest.asks.penalty) > 0.0 {
                let ratio = one.asks.penalty / fastest.asks.penalty;
                let waits = |phase: &LearntPhase| f64::max(phase.solo_cpi - phase.asks.own, NOISE);
                kind.penalty.add(libm::log(ratio), weight(waits));
            }
        }
    }
}
