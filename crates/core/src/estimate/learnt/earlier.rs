//! The learnt model of a task, kept from run to run.
//!
//! Each measured phase stands for a measurement in the next run. Its weight is small, so the first real measurement
//! outweighs it. It is dropped if it cannot explain the task's behaviour.

use super::PHASES;
use crate::model::contention::PhaseDemand;
use serde::{Deserialize, Serialize};

/// The learnt phases of a task, for a later run of the same program on the same machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EarlierPhases {
    /// Its phases; at most as many as the learner keeps.
    pub phases: Vec<EarlierPhase>,
}

impl EarlierPhases {
    /// Whether it could come from a learner and has a phase. The learner itself drops unsound phases.
    pub fn is_sound(&self) -> bool {
        (1..=PHASES).contains(&self.phases.len()) && self.phases.iter().all(EarlierPhase::is_sound)
    }
}

/// The learnt model of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierPhase {
    /// Its core type.
    pub core_type: usize,
    /// Its demand, with the clock of the measurements.
    pub asks: PhaseDemand,
    /// Its solo cycles per instruction as measured, above 0.
    pub solo_cpi: f64,
}

impl EarlierPhase {
    /// Whether all figures could come from a learner: a file may contain anything.
    pub(super) fn is_sound(&self) -> bool {
        let PhaseDemand {
            own,
            penalty,
            l1,
            llc,
            reads,
            steepness,
            ghz,
            time,
            accesses,
        } = self.asks;
        let all = [
            own,
            penalty,
            l1,
            llc,
            reads,
            steepness,
            time.sensitivity,
            time.pressure,
            accesses.sensitivity,
            accesses.pressure,
        ];
        all.iter()
            .all(|figure| figure.is_finite() && *figure >= 0.0)
            && [ghz, self.solo_cpi, own]
                .iter()
                .all(|figure| figure.is_normal() && *figure > 0.0)
    }
}
