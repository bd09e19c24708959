//! Metrics of energy.

use super::outcome::Outcomes;
use crate::units::Reading;

/// Energy of the processor package in joules, >= 0.
pub fn energy(run: &Outcomes) -> Reading<f64> {
    run.energy_j
}

/// Energy-delay product in joule seconds: energy x turnaround (Gonzalez and Horowitz, 1996; Lucky uses the makespan as
/// the delay, as here).
pub fn energy_delay_product(run: &Outcomes) -> Reading<f64> {
    run.energy_j.map(|joules| joules * run.turnaround.as_s())
}
