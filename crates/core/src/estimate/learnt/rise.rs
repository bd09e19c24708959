//! What the siblings of a core raise in each other: the sensitivity of one times the sum of the pressures of the others.
//!
//! No law of the core is behind it. Sensitivity and pressure are learnt from the pairs that ran, by a Kalman filter with
//! independent errors.

use super::ASSUMED;
use crate::model::contention::SiblingEffect;

/// Standard deviations between programs.
const SPREAD: (f64, f64) = (0.5, 0.3);
/// Standard deviation by which both drift from sample to sample.
const DRIFT: f64 = 0.01;
/// Greatest sensitivity and pressure.
const MOST: f64 = 5.0;

/// The variances of a job's sensitivity and pressure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SiblingVariance {
    sensitivity: f64,
    pressure: f64,
}

impl Default for SiblingVariance {
    fn default() -> SiblingVariance {
        SiblingVariance {
            sensitivity: SPREAD.0 * SPREAD.0,
            pressure: SPREAD.1 * SPREAD.1,
        }
    }
}

/// A sibling: the part of the time that it was there, its pressure, and the variance of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiblingPressure {
    part: f64,
    pressure: f64,
    doubt: f64,
}

impl SiblingPressure {
    pub(super) fn of(part: f64, known: SiblingEffect, doubt: SiblingVariance) -> SiblingPressure {
        SiblingPressure {
            part,
            pressure: known.pressure,
            doubt: doubt.pressure,
        }
    }
}

/// The sum of the pressures of these siblings.
pub(super) fn pressure_of(siblings: &[SiblingPressure]) -> f64 {
    siblings.iter().map(|one| one.pressure * one.part).sum()
}

/// The variance of that sum.
pub(super) fn doubt_of(siblings: &[SiblingPressure]) -> f64 {
    let each = siblings.iter().map(|one| one.doubt * one.part * one.part);
    each.sum()
}

/// What a sample changes in the sensitivity of its job, and in the pressure of each sibling in proportion to its time
/// beside the job.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiblingUpdate {
    surprise: f64,
    /// Variance of the surprise.
    variance: f64,
    /// The sum of the pressures, and the sensitivity.
    pressure: f64,
    sensitivity: f64,
}

impl SiblingUpdate {
    /// The lesson of a job that rose by `risen` beside these siblings. `noise` is the standard deviation of the sample.
    pub(super) fn of(
        (own, doubt): (SiblingEffect, SiblingVariance),
        siblings: &[SiblingPressure],
        risen: f64,
        noise: f64,
    ) -> SiblingUpdate {
        let pressure = pressure_of(siblings);
        let of_growth = doubt.of_growth(own.sensitivity, pressure, doubt_of(siblings));
        SiblingUpdate {
            surprise: risen - own.sensitivity * pressure,
            variance: of_growth + noise * noise,
            pressure,
            sensitivity: own.sensitivity,
        }
    }
}

impl SiblingVariance {
    /// The doubt of the same figures in a new phase: greater.
    pub(super) fn in_new_phase(self) -> SiblingVariance {
        let all = SiblingVariance::default();
        SiblingVariance {
            sensitivity: 0.5 * (self.sensitivity + all.sensitivity),
            pressure: 0.5 * (self.pressure + all.pressure),
        }
    }

    /// The variance of a growth by this sensitivity and pressure, the latter with a variance of its own.
    pub(super) fn of_growth(self, sensitivity: f64, pressure: f64, doubt: f64) -> f64 {
        self.sensitivity * pressure * pressure + sensitivity * sensitivity * doubt
    }

    pub(super) fn learn_sensitivity(&mut self, of: &mut SiblingEffect, lesson: &SiblingUpdate) {
        let gain = self.sensitivity * lesson.pressure / lesson.variance;
        of.sensitivity = (of.sensitivity + gain * lesson.surprise).clamp(0.0, MOST);
        self.sensitivity *= 1.0 - gain * lesson.pressure;
        self.sensitivity += DRIFT * DRIFT;
    }

    pub(super) fn learn_pressure(
        &mut self,
        of: &mut SiblingEffect,
        lesson: &SiblingUpdate,
        part: f64,
    ) {
        let slope = lesson.sensitivity * part;
        let gain = self.pressure * slope / lesson.variance;
        of.pressure = (of.pressure + gain * lesson.surprise).clamp(0.0, MOST);
        self.pressure *= 1.0 - gain * slope;
        self.pressure += DRIFT * DRIFT;
    }
}

/// The mean over jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    jobs: f64,
    sensitivity: f64,
    pressure: f64,
}

impl Default for Mean {
    /// What is assumed counts like some jobs.
    fn default() -> Mean {
        let assumed = SiblingEffect::default();
        Mean {
            jobs: ASSUMED,
            sensitivity: ASSUMED * assumed.sensitivity,
            pressure: ASSUMED * assumed.pressure,
        }
    }
}

impl Mean {
    pub(super) fn add(&mut self, of: SiblingEffect) {
        self.jobs += 1.0;
        self.sensitivity += of.sensitivity;
        self.pressure += of.pressure;
    }

    /// What a job is like of which nothing is known.
    pub(super) fn siblings(&self) -> SiblingEffect {
        SiblingEffect {
            sensitivity: self.sensitivity / self.jobs,
            pressure: self.pressure / self.jobs,
        }
    }
}
