//! A task's predicted demand on one thing that tasks share.

use super::settings::EfsSettings;
use crate::decision::DemandBasis;
use crate::model::bus::solo_utilisation;
use crate::model::bus_admission_table::{BusAdmissionTable, DemandClass};
use crate::model::window::Evidence;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// No demand is known or assumed yet.
const UNKNOWN: u32 = u32::MAX;
/// The scale of stored demands, in units of 2^-31: whole numbers make a saved state exact.
const DEMAND_ONE: f64 = (1_u64 << 31) as f64;
/// Least free share of the bus that a measurement can show. A measured total above 1 is an error of the counters or of
/// the service rate. Taken as 1, it would make every task that uses the bus seem to do nothing else. Matches the
/// highest demand of the admission table.
const LEAST_FREE: f64 = 1.0 / 1024.0;

/// The predicted solo demand of a task, per CPU (EFS, Eq. 20).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PredictedDemand {
    demand: u32,
    /// Weight of the prediction as evidence, in the same units.
    weight: u32,
    /// The class of that demand.
    class: u16,
    /// Origin of the demand.
    basis: DemandBasis,
}

/// What a task used of a resource in an interval.
#[derive(Clone, Copy)]
pub(super) struct Used {
    /// By each of its CPUs, as a share.
    pub(super) share: f64,
    /// By all, as a share.
    pub(super) total: f64,
    /// Length of the interval.
    pub(super) time: Nanos,
}

impl PredictedDemand {
    pub(super) const NOTHING: PredictedDemand = PredictedDemand {
        demand: UNKNOWN,
        weight: 0,
        class: 0,
        basis: DemandBasis::Assumed,
    };

    /// From 0 to 1.
    fn demand(&self) -> f64 {
        f64::from(self.demand) / DEMAND_ONE
    }

    pub(super) fn class(&self) -> DemandClass {
        DemandClass::from_number(self.class).unwrap_or(DemandClass::HIGHEST)
    }

    pub(super) fn basis(&self) -> DemandBasis {
        self.basis
    }

    /// Whether no demand was measured or assumed yet.
    pub(super) fn is_unknown(&self) -> bool {
        self.demand == UNKNOWN
    }

    /// Assumes a demand until one is measured.
    pub(super) fn assume(&mut self, table: &BusAdmissionTable, demand: f64) {
        let weight = 0.0;
        self.predict(table, Evidence { demand, weight });
    }

    /// Takes over a demand from elsewhere.
    pub(super) fn take(&mut self, table: &BusAdmissionTable, demand: f64, basis: DemandBasis) {
        self.basis = basis;
        let weight = 1.0;
        self.predict(table, Evidence { demand, weight });
    }

    /// Turns a measurement into a solo demand (EFS, Eq. 9), and predicts the next interval from it.
    pub(super) fn learn(&mut self, settings: &EfsSettings, table: &BusAdmissionTable, used: Used) {
        let free = (1.0 - used.total).max(LEAST_FREE);
        let Ok(demand) = solo_utilisation(used.share.min(1.0), free) else {
            return;
        };
        let measured = Evidence::measured(demand, 1.0 - free, free);
        // A first guess is no evidence: the first measurement replaces it.
        let before = match self.basis {
            DemandBasis::Assumed => measured,
            DemandBasis::Measured | DemandBasis::Given => self.evidence(),
        };
        self.basis = DemandBasis::Measured;
        let next = settings.window.next_weighted(before, measured, used.time.0);
        self.predict(table, next.unwrap_or(measured));
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            demand: self.demand(),
            weight: f64::from(self.weight) / DEMAND_ONE,
        }
    }

    fn predict(&mut self, table: &BusAdmissionTable, evidence: Evidence) {
        self.demand = (evidence.demand * DEMAND_ONE + 0.5) as u32;
        self.weight = (evidence.weight * DEMAND_ONE + 0.5) as u32;
        self.class = table
            .class_of(self.demand())
            .unwrap_or(DemandClass::HIGHEST)
            .number();
    }
}
