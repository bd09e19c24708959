//! What a task was learnt to ask for, kept from run to run.
//!
//! Each phase that was measured stands for a measurement in the next run: one that counts little, so that the first
//! measurement of that run outweighs it, and that is dropped when what the task does can't be explained by it.

use super::PHASES;
use crate::model::contention::Asks;
use serde::{Deserialize, Serialize};

/// What was learnt of a task in all its phases, for a later run of the same program on the same machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// Its phases; at most as many as the learner keeps.
    pub phases: Vec<EarlierPhase>,
}

impl Earlier {
    /// Whether it is such as a learner gives, with at least one phase. Unsound phases are dropped by the learner itself.
    pub fn is_sound(&self) -> bool {
        (1..=PHASES).contains(&self.phases.len()) && self.phases.iter().all(EarlierPhase::is_sound)
    }
}

/// What was learnt of a task in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierPhase {
    /// The type of core that it ran on.
    pub core_type: usize,
    /// What it asked for.
    pub asks: Asks,
    /// Its cycles per instruction alone, above 0.
    pub solo_cpi: f64,
}

impl EarlierPhase {
    /// Whether all figures are such as a learner gives: a file may hold anything.
    pub(super) fn is_sound(&self) -> bool {
        let Asks {
            own,
            penalty,
            l1,
            llc,
            reads,
            steepness,
            ghz,
        } = self.asks;
        let all = [own, penalty, l1, llc, reads, steepness];
        all.iter()
            .all(|figure| figure.is_finite() && *figure >= 0.0)
            && [ghz, self.solo_cpi, own]
                .iter()
                .all(|figure| figure.is_normal() && *figure > 0.0)
    }
}
