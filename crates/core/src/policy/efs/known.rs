//! The state of each task that `efs` keeps between decisions: its place in a queue, its CPU time, and its predicted
//! demand on the memory bus.

use super::settings::Settings;
use crate::decision::DemandBasis;
use crate::model::admission_table::{AdmissionTable, DemandClass};
use crate::model::bus::solo_utilisation;
use crate::model::window::Evidence;
use crate::policy::quantum::QuantumEnd;
use crate::policy::weights::{GREATEST, Weights};
use crate::snapshot::{Snapshot, TaskView, Trigger};
use crate::task::TaskId;
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A home not chosen yet.
pub(super) const NOWHERE: u32 = u32::MAX;
/// A demand neither measured nor assumed yet.
const UNKNOWN: u32 = u32::MAX;
/// Scale of stored demands, in units of 2^-31: whole numbers make a saved state exact.
const DEMAND_ONE: f64 = (1_u64 << 31) as f64;
/// Least free share of the bus that a measurement can show. A measured total above 1 is an error of the counters or of
/// the service rate. Taken as 1, it would make every task that uses the bus seem to do nothing else. Matches the
/// highest demand of the admission table.
const LEAST_FREE: f64 = 1.0 / 1024.0;

/// A task's record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) id: TaskId,
    /// The CPU whose queue it is in, by position in the machine.
    pub(super) home: u32,
    /// CPU time, divided by its weight over the greatest (ns).
    pub(super) vruntime: i64,
    /// Predicted solo demand on the bus, per CPU (EFS, Eq. 20).
    demand: u32,
    /// Weight of that prediction as evidence, in the same units.
    weight: u32,
    /// The class of that demand.
    class: u16,
    /// The class published last; a number beyond all classes if none was.
    pub(super) published: u16,
    executed: u32,
    ran: Nanos,
    asleep: bool,
    /// Whether its last measurement included the traffic of its memory domain.
    has_traffic: bool,
    /// Whether it woke at this decision.
    pub(super) woke: bool,
    /// Origin of the demand.
    basis: DemandBasis,
}

impl Known {
    fn new(id: TaskId) -> Known {
        Known {
            id,
            home: NOWHERE,
            vruntime: 0,
            demand: UNKNOWN,
            weight: 0,
            class: 0,
            published: u16::MAX,
            executed: 0,
            ran: Nanos::ZERO,
            asleep: false,
            has_traffic: false,
            woke: false,
            basis: DemandBasis::Assumed,
        }
    }

    /// Predicted solo demand on the bus, per CPU, from 0 to 1.
    fn demand(&self) -> f64 {
        f64::from(self.demand) / DEMAND_ONE
    }

    /// The class of its demand.
    pub(super) fn class(&self) -> DemandClass {
        DemandClass::from_number(self.class).unwrap_or(DemandClass::HIGHEST)
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            demand: self.demand(),
            weight: f64::from(self.weight) / DEMAND_ONE,
        }
    }

    /// Stores a new prediction.
    pub(super) fn predict(&mut self, table: &AdmissionTable, evidence: Evidence) {
        self.demand = (evidence.demand * DEMAND_ONE + 0.5) as u32;
        self.weight = (evidence.weight * DEMAND_ONE + 0.5) as u32;
        self.class = table
            .class_of(self.demand())
            .unwrap_or(DemandClass::HIGHEST)
            .number();
    }

    /// Whether no demand was measured or assumed yet.
    pub(super) fn is_unknown(&self) -> bool {
        self.demand == UNKNOWN
    }

    /// Origin of the demand.
    pub(super) fn basis(&self) -> DemandBasis {
        self.basis
    }

    /// Whether the demand is a first guess, to be measured as soon as the task has run.
    pub(super) fn is_unmeasured(&self) -> bool {
        self.basis == DemandBasis::Assumed && self.executed == 0
    }

    /// Takes over a demand measured by the backend.
    pub(super) fn take_measured(&mut self, table: &AdmissionTable, class: DemandClass) {
        self.basis = DemandBasis::Measured;
        self.predict(
            table,
            Evidence {
                demand: table.demand(class),
                weight: 1.0,
            },
        );
    }

    /// Takes over the demand that the user gives. Given demands are not measured.
    fn take_given(&mut self, table: &AdmissionTable, task: &TaskView) {
        self.executed = task.estimates.executed.max(1);
        if let Some(milli) = task.bus_use_milli {
            self.basis = DemandBasis::Given;
            self.predict(
                table,
                Evidence {
                    demand: (f64::from(milli) / 1e3).min(1.0),
                    weight: 1.0,
                },
            );
        }
    }
}

/// The state that the next decision depends on, beside the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) quantum: QuantumEnd,
    /// Time of the last decision.
    seen: Nanos,
    /// In ascending order of id; after [`State::take_in`] one for each task of the snapshot.
    pub(super) tasks: Vec<Known>,
}

impl State {
    /// Updates the records: new and ended tasks, CPU time, and measurements.
    pub(super) fn take_in(&mut self, settings: &Settings, table: &AdmissionTable, snap: &Snapshot) {
        let elapsed = snap.now - std::mem::replace(&mut self.seen, snap.now);
        let weights = Weights::of(snap);
        let mut woke: Vec<TaskId> = Vec::new();
        woke.extend(snap.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Woke(id) => Some(*id),
            _ => None,
        }));
        woke.sort_unstable();
        let mut old = std::mem::take(&mut self.tasks).into_iter().peekable();
        let mut measured = false;
        self.tasks.reserve_exact(snap.tasks.len());
        for task in &snap.tasks {
            while old.peek().is_some_and(|known| known.id < task.id) {
                old.next();
            }
            let mut known = match old.next_if(|known| known.id == task.id) {
                Some(mut known) => {
                    known.woke =
                        !task.asleep && (known.asleep || woke.binary_search(&task.id).is_ok());
                    // Time asleep is not charged, nor the interval of falling asleep or waking: its instant is unknown.
                    if task.running.is_some() && !known.asleep && !task.asleep && !known.woke {
                        let time = virtual_time(elapsed, weights.whole(task));
                        known.vruntime = known.vruntime.saturating_add(time);
                    }
                    known
                }
                None => Known::new(task.id),
            };
            known.asleep = task.asleep;
            if settings.given {
                known.take_given(table, task);
            }
            measured |= known.executed != task.estimates.executed;
            self.tasks.push(known);
        }
        // A backend that admits by itself decides which tasks run together, and measures them.
        if measured && snap.admits.is_none() {
            self.measure(settings, table, snap);
        }
    }

    /// Turns the measurements since the last decision into solo demands (EFS, Eqs. 9 and 20).
    fn measure(&mut self, settings: &Settings, table: &AdmissionTable, snap: &Snapshot) {
        // Co-runners share the bus. A gang's figure covers all its CPUs.
        let mut totals = vec![0.0; snap.machine.memory_domains.len()];
        for task in snap.tasks.iter().filter(|task| !task.asleep) {
            if let (Some(domain), Some(used)) = (domain_of(snap, task), bus_use(settings, task)) {
                totals[domain] += used;
            }
        }
        for (known, task) in self.tasks.iter_mut().zip(&snap.tasks) {
            if known.executed == task.estimates.executed {
                continue;
            }
            let first = known.is_unmeasured();
            let interval =
                task.estimates.ran - std::mem::replace(&mut known.ran, task.estimates.ran);
            known.executed = task.estimates.executed;
            // An interval too short to measure leaves the estimates as they are.
            if !first && interval.0.saturating_mul(10) < settings.quantum.0 {
                continue;
            }
            // The domain's traffic was readable before: a reading without it would look like a calm bus.
            let moved = task
                .estimates
                .domain_lines
                .value()
                .map(|lines| lines.0 as f64 / settings.mu_per_ms);
            if moved.is_none() && known.has_traffic {
                continue;
            }
            known.has_traffic = moved.is_some();
            let Some(used) = bus_use(settings, task) else {
                continue;
            };
            // The domain's traffic, whatever caused it (Eq. 18); else the sum over the tasks.
            let own = used / buses_of(snap, task);
            let total = moved
                .or_else(|| domain_of(snap, task).map(|domain| totals[domain]))
                .unwrap_or(own)
                .max(own);
            let share = (used / f64::from(task.cpus.max(1))).min(1.0);
            let free = (1.0 - total).max(LEAST_FREE);
            let Ok(demand) = solo_utilisation(share, free) else {
                continue;
            };
            let measured = Evidence::measured(demand, 1.0 - free, free);
            // A first guess is no evidence: the first measurement replaces it.
            let before = if first { measured } else { known.evidence() };
            known.basis = DemandBasis::Measured;
            known.predict(
                table,
                settings
                    .window
                    .next_weighted(before, measured, interval.0)
                    .unwrap_or(measured),
            );
        }
    }
}

/// A time divided by a whole weight, in ns.
fn virtual_time(time: Nanos, weight: u32) -> i64 {
    let divided = u128::from(time.0) * u128::from(GREATEST) / u128::from(weight);
    i64::try_from(divided).unwrap_or(i64::MAX)
}

/// The memory domain where a task runs.
fn domain_of(snap: &Snapshot, task: &TaskView) -> Option<usize> {
    let cpu = task.running.as_ref()?.placement.cpus().first()?;
    Some(snap.machine.cpu(cpu)?.memory_domain)
}

/// Number of buses that a task uses: a gang can use several.
fn buses_of(snap: &Snapshot, task: &TaskView) -> f64 {
    let mut buses = BTreeSet::new();
    for running in task.running.iter().filter(|_| task.cpus > 1) {
        let cpus = snap.machine.cpus_in(running.placement.cpus());
        buses.extend(cpus.map(|cpu| cpu.memory_domain));
    }
    buses.len().max(1) as f64
}

/// The share of a bus that a task used.
fn bus_use(settings: &Settings, task: &TaskView) -> Option<f64> {
    let reads = task.estimates.mm_reads.value()?;
    let writes = task.estimates.mm_writes.value().unwrap_or(Rate(0));
    Some((reads.0 as f64 + writes.0 as f64) / settings.mu_per_ms)
}
