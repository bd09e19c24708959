//! What the siblings of a core raise in each other: the sensitivity of one times the sum of the pressures of the others.
//!
//! No law of the core is behind it. Sensitivity and pressure are learnt from the pairs that ran, by a Kalman filter with
//! independent errors.

use super::ASSUMED;
use crate::model::contention::Siblings;

/// Standard deviations between programs.
const SPREAD: (f64, f64) = (0.5, 0.3);
/// Standard deviation by which both drift from sample to sample.
const DRIFT: f64 = 0.01;
/// Greatest sensitivity and pressure.
const MOST: f64 = 5.0;

/// Sensitivity and pressure of a job in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rise {
    pub(super) of: Siblings,
    /// The variances of both.
    doubt: [f64; 2],
}

impl Default for Rise {
    fn default() -> Rise {
        Rise {
            of: Siblings::default(),
            doubt: [SPREAD.0 * SPREAD.0, SPREAD.1 * SPREAD.1],
        }
    }
}

/// The rises of siblings, each with the part of the time that it was there.
pub(super) type Beside = Vec<(Rise, f64)>;

/// What a sample changes in the sensitivity of its job, and in the pressure of each sibling in proportion to its time
/// beside the job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lesson {
    surprise: f64,
    /// Variance of the surprise.
    variance: f64,
    /// The sum of the pressures, and the sensitivity.
    pressure: f64,
    sensitivity: f64,
}

impl Lesson {
    /// The lesson of a job that rose by `risen` beside these siblings, each with the part of the time that it was there.
    /// `noise` is the standard deviation of the sample.
    pub(super) fn of(own: &Rise, siblings: &[(Rise, f64)], risen: f64, noise: f64) -> Lesson {
        let pressure = pressure_of(siblings);
        let doubt: f64 = siblings
            .iter()
            .map(|(sibling, part)| sibling.doubt[1] * part * part)
            .sum();
        Lesson {
            surprise: risen - own.of.sensitivity * pressure,
            variance: own.doubt[0] * pressure * pressure
                + doubt * own.of.sensitivity * own.of.sensitivity
                + noise * noise,
            pressure,
            sensitivity: own.of.sensitivity,
        }
    }
}

/// The sum of the pressures of these siblings.
pub(super) fn pressure_of(siblings: &[(Rise, f64)]) -> f64 {
    let each = siblings.iter().map(|(one, part)| one.of.pressure * part);
    each.sum()
}

impl Rise {
    /// The same in a new phase: less certain.
    pub(super) fn in_new_phase(self) -> Rise {
        let all = Rise::default().doubt;
        Rise {
            doubt: [0, 1].map(|at| 0.5 * (self.doubt[at] + all[at])),
            ..self
        }
    }

    pub(super) fn learn_sensitivity(&mut self, lesson: &Lesson) {
        let gain = self.doubt[0] * lesson.pressure / lesson.variance;
        self.of.sensitivity = (self.of.sensitivity + gain * lesson.surprise).clamp(0.0, MOST);
        self.doubt[0] *= 1.0 - gain * lesson.pressure;
        self.doubt[0] += DRIFT * DRIFT;
    }

    pub(super) fn learn_pressure(&mut self, lesson: &Lesson, part: f64) {
        let slope = lesson.sensitivity * part;
        let gain = self.doubt[1] * slope / lesson.variance;
        self.of.pressure = (self.of.pressure + gain * lesson.surprise).clamp(0.0, MOST);
        self.doubt[1] *= 1.0 - gain * slope;
        self.doubt[1] += DRIFT * DRIFT;
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
        let assumed = Siblings::default();
        Mean {
            jobs: ASSUMED,
            sensitivity: ASSUMED * assumed.sensitivity,
            pressure: ASSUMED * assumed.pressure,
        }
    }
}

impl Mean {
    pub(super) fn add(&mut self, rise: &Rise) {
        self.jobs += 1.0;
        self.sensitivity += rise.of.sensitivity;
        self.pressure += rise.of.pressure;
    }

    /// What a job is like of which nothing is known.
    pub(super) fn rise(&self) -> Rise {
        let of = Siblings {
            sensitivity: self.sensitivity / self.jobs,
            pressure: self.pressure / self.jobs,
        };
        Rise {
            of,
            ..Rise::default()
        }
    }
}
