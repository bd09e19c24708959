//! The state of each task that `efs` keeps between decisions: its place in a queue, its CPU time, and its predicted
//! demands.

use super::predicted::{PredictedDemand, Used};
use super::settings::EfsSettings;
use crate::decision::DemandBasis;
use crate::device::Device;
use crate::model::bus_admission_table::{BusAdmissionTable, DemandClass};
use crate::policy::quantum::QuantumEnd;
use crate::policy::weights::{GREATEST, Weights};
use crate::snapshot::{Snapshot, TaskView, Trigger};
use crate::task::TaskId;
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A home not chosen yet.
pub(super) const NOWHERE: u32 = u32::MAX;
/// A task's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EfsTask {
    pub(super) id: TaskId,
    /// The CPU whose queue it is in, by position in the machine.
    pub(super) home: u32,
    /// CPU time, divided by its weight over the greatest (ns).
    pub(super) vruntime: i64,
    /// On the memory bus.
    pub(super) bus: PredictedDemand,
    /// On each device of the settings, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) devices: Vec<PredictedDemand>,
    /// The class published last; a number beyond all classes if none was.
    pub(super) published: u16,
    executed: u32,
    ran: Nanos,
    asleep: bool,
    /// Whether its last measurement included the traffic of its memory domain.
    has_traffic: bool,
    /// Whether it woke at this decision.
    pub(super) woke: bool,
}

impl EfsTask {
    fn new(id: TaskId, devices: usize) -> EfsTask {
        EfsTask {
            id,
            home: NOWHERE,
            vruntime: 0,
            bus: PredictedDemand::NOTHING,
            devices: vec![PredictedDemand::NOTHING; devices],
            published: u16::MAX,
            executed: 0,
            ran: Nanos::ZERO,
            asleep: false,
            has_traffic: false,
            woke: false,
        }
    }

    /// Whether a demand is a first guess, to be measured as soon as the task has run.
    pub(super) fn is_unmeasured(&self) -> bool {
        let mut all = std::iter::once(&self.bus).chain(&self.devices);
        self.executed == 0 && all.any(|one| one.basis() == DemandBasis::Assumed)
    }

    /// Whether each of its demands is at least that of another task.
    pub(super) fn asks_no_less_than(&self, other: &EfsTask) -> bool {
        let mut devices = self.devices.iter().zip(&other.devices);
        self.bus.class() >= other.bus.class()
            && devices.all(|(own, others)| own.class() >= others.class())
    }

    /// Takes over a demand on the bus measured by the backend.
    pub(super) fn take_measured(&mut self, table: &BusAdmissionTable, class: DemandClass) {
        self.bus
            .take(table, table.demand(class), DemandBasis::Measured);
    }

    /// Takes over the demand on the bus that the user gives. Given demands are not measured.
    fn take_given(&mut self, table: &BusAdmissionTable, task: &TaskView) {
        if self.devices.is_empty() {
            self.executed = task.estimates.executed.max(1);
        }
        if let Some(milli) = task.bus_use_milli {
            let demand = (f64::from(milli) / 1e3).min(1.0);
            self.bus.take(table, demand, DemandBasis::Given);
        }
    }
}

/// The state that the next decision depends on, beside the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct EfsState {
    pub(super) quantum: QuantumEnd,
    /// Time of the last decision.
    seen: Nanos,
    /// The greatest weight of a task.
    greatest: f64,
    /// In ascending order of id; after [`EfsState::take_in`] one for each task of the snapshot.
    pub(super) tasks: Vec<EfsTask>,
}

impl EfsState {
    /// Updates the records: new and ended tasks, CPU time, and measurements.
    pub(super) fn take_in(
        &mut self,
        settings: &EfsSettings,
        table: &BusAdmissionTable,
        snap: &Snapshot,
    ) {
        let elapsed = snap.now - std::mem::replace(&mut self.seen, snap.now);
        let weights = Weights::of(snap);
        let mut woke: Vec<TaskId> = Vec::new();
        woke.extend(snap.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Woke(id) => Some(*id),
            _ => None,
        }));
        woke.sort_unstable();
        // The vruntimes that are stored are relative to the greatest weight of their time.
        let rescale = weights.greatest / std::mem::replace(&mut self.greatest, weights.greatest);
        let mut old = std::mem::take(&mut self.tasks).into_iter().peekable();
        let mut measured = false;
        self.tasks.reserve_exact(snap.tasks.len());
        for task in &snap.tasks {
            while old.peek().is_some_and(|known| known.id < task.id) {
                old.next();
            }
            let mut known = match old.next_if(|known| known.id == task.id) {
                Some(mut known) => {
                    if rescale != 1.0 {
                        known.vruntime = (known.vruntime as f64 * rescale) as i64;
                    }
                    known.woke =
                        !task.asleep && (known.asleep || woke.binary_search(&task.id).is_ok());
                    // Time asleep is not charged, nor the interval of falling asleep or waking: its instant is unknown.
                    if task.running.is_some() && !known.asleep && !task.asleep && !known.woke {
                        let time = virtual_time(elapsed, weights.whole(task));
                        known.vruntime = known.vruntime.saturating_add(time);
                    }
                    known
                }
                None => EfsTask::new(task.id, settings.devices.len()),
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
    fn measure(&mut self, settings: &EfsSettings, table: &BusAdmissionTable, snap: &Snapshot) {
        let on_buses = totals_of_buses(settings, snap);
        let on_devices = totals_of_devices(settings, snap);
        for (known, task) in self.tasks.iter_mut().zip(&snap.tasks) {
            if known.executed == task.estimates.executed {
                continue;
            }
            let first = known.is_unmeasured();
            let time = task.estimates.ran - std::mem::replace(&mut known.ran, task.estimates.ran);
            known.executed = task.estimates.executed;
            // An interval too short to measure leaves the estimates as they are.
            if !first && time.0.saturating_mul(10) < settings.quantum.0 {
                continue;
            }
            if !settings.given
                && let Some(used) = used_of_bus(settings, snap, known, task, &on_buses, time)
            {
                known.bus.learn(settings, table, used);
            }
            for (at, one) in known.devices.iter_mut().enumerate() {
                if let Some(used) = device_use(task, settings.devices[at]) {
                    let share = used / f64::from(task.cpus.max(1));
                    let total = on_devices[at].max(used);
                    one.learn(settings, table, Used { share, total, time });
                }
            }
        }
    }
}

/// What all running tasks used of each memory domain's bus, as shares. A gang's figure covers all its CPUs.
fn totals_of_buses(settings: &EfsSettings, snap: &Snapshot) -> Vec<f64> {
    let mut totals = vec![0.0; snap.machine.memory_domains.len()];
    for task in snap.tasks.iter().filter(|task| !task.asleep) {
        if let (Some(domain), Some(used)) = (domain_of(snap, task), bus_use(settings, task)) {
            totals[domain] += used;
        }
    }
    totals
}

/// What all running tasks used of each device, as shares. A task that waits for a device uses it while it sleeps.
fn totals_of_devices(settings: &EfsSettings, snap: &Snapshot) -> Vec<f64> {
    let mut totals = vec![0.0; settings.devices.len()];
    for task in snap.tasks.iter().filter(|task| task.running.is_some()) {
        for (&device, total) in settings.devices.iter().zip(&mut totals) {
            *total += device_use(task, device).unwrap_or(0.0);
        }
    }
    totals
}

/// What a task used of the bus, and all together; `None` where that was not measured.
fn used_of_bus(
    settings: &EfsSettings,
    snap: &Snapshot,
    known: &mut EfsTask,
    task: &TaskView,
    totals: &[f64],
    time: Nanos,
) -> Option<Used> {
    // The domain's traffic was readable before: a reading without it would look like a calm bus.
    let moved = task
        .estimates
        .domain_lines
        .value()
        .map(|lines| lines.0 as f64 / settings.mu_per_ms);
    if moved.is_none() && known.has_traffic {
        return None;
    }
    known.has_traffic = moved.is_some();
    let used = bus_use(settings, task)?;
    // The domain's traffic, whatever caused it (Eq. 18); else the sum over the tasks.
    let own = used / buses_of(snap, task);
    let total = moved
        .or_else(|| domain_of(snap, task).map(|domain| totals[domain]))
        .unwrap_or(own)
        .max(own);
    let share = used / f64::from(task.cpus.max(1));
    Some(Used { share, total, time })
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
fn bus_use(settings: &EfsSettings, task: &TaskView) -> Option<f64> {
    let reads = task.estimates.mm_reads.value()?;
    let writes = task.estimates.mm_writes.value().unwrap_or(Rate(0));
    Some((reads.0 as f64 + writes.0 as f64) / settings.mu_per_ms)
}

/// The share of its time in which a device worked for a task.
fn device_use(task: &TaskView, device: Device) -> Option<f64> {
    let rate = task.estimates.device_time[device].value()?;
    Some(rate.0 as f64 / 1e6)
}
