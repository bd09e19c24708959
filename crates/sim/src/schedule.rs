//! Carries out a schedule: at every event it gives empty seats to fillers, and gives them back when their own task
//! wants them.

use crate::residency::is_awake;
use crate::world::World;
use cosched_core::model::admission_table::{AdmissionTable, BusLoad, DemandClass, Gain};
use cosched_core::{
    Admission, Change, CpuId, CpuSet, Machine, Nanos, Placement, Purpose, Schedule, TaskId,
};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Constant for all plans; computing it takes longer than many a plan is in force.
static TABLE: OnceLock<AdmissionTable> = OnceLock::new();

/// A schedule that was adopted, and its present state.
pub(crate) struct InForce {
    pub(crate) plan: Schedule,
    machine: Arc<Machine>,
    /// CPUs of seats whose time is up.
    open: Vec<CpuId>,
    /// The filler on each CPU that has one.
    filling: BTreeMap<CpuId, TaskId>,
    bus: Option<(&'static AdmissionTable, Admission)>,
}

impl InForce {
    pub(crate) fn new(plan: Schedule, machine: &Arc<Machine>) -> InForce {
        let bus = plan
            .admission
            .clone()
            .map(|admission| (TABLE.get_or_init(AdmissionTable::new), admission));
        InForce {
            plan,
            machine: machine.clone(),
            open: Vec::new(),
            filling: BTreeMap::new(),
            bus,
        }
    }

    /// Whether a task has a seat.
    pub(crate) fn seats(&self, task: TaskId) -> bool {
        self.plan.seats.iter().any(|seat| seat.task == task)
    }

    /// When the next seat's time is up.
    pub(crate) fn next_end(&self, now: u64) -> u64 {
        let ends = self
            .plan
            .seats
            .iter()
            .filter_map(|seat| seat.until)
            .map(|until| until.0);
        ends.filter(|&until| until > now).min().unwrap_or(u64::MAX)
    }

    /// The changes that put every seat's own task or a filler on its CPUs now; empty when nothing has to change.
    pub(crate) fn changes(&mut self, world: &World, ended: impl Fn(TaskId) -> bool) -> Vec<Change> {
        let now = Nanos(world.now);
        let awake = |task: TaskId| !ended(task) && is_awake(world, task.0 as usize);
        let mut changes = Vec::new();
        let mut empty: Vec<CpuId> = Vec::new();
        // A task whose time is up waits, like the tasks that were not chosen.
        self.plan.seats.retain(|seat| {
            let over = seat.until.is_some_and(|until| until <= now);
            if over && !ended(seat.task) {
                changes.push(Change::Stop { task: seat.task });
            }
            if over && Schedule::can_be_filled(seat) {
                empty.extend(seat.placement.cpus().iter());
            }
            !over
        });
        self.open.extend(empty);
        let mut wanted = CpuSet::new();
        let mut free: Vec<CpuId> = self.open.clone();
        for seat in self
            .plan
            .seats
            .iter()
            .filter(|seat| Schedule::can_be_filled(seat))
        {
            if awake(seat.task) {
                wanted.extend(seat.placement.cpus().iter());
            } else {
                free.extend(seat.placement.cpus().iter());
            }
        }
        self.filling.retain(|&cpu, &mut task| {
            let goes = wanted.contains(cpu) || !awake(task);
            if goes && !ended(task) {
                changes.push(Change::Stop { task });
            }
            !goes
        });
        for cpu in free {
            // A schedule that contradicts itself can make a CPU wanted and free at once.
            if self.filling.contains_key(&cpu)
                || wanted.contains(cpu)
                || self.machine.index_of(cpu).is_none()
            {
                continue;
            }
            let may = |allowed: &Option<CpuSet>| {
                allowed.as_ref().is_none_or(|allowed| allowed.contains(cpu))
            };
            let mut fillers = self
                .plan
                .fillers
                .iter()
                .filter(|filler| may(&filler.allowed))
                .map(|filler| filler.task);
            let idle = |task: &TaskId| {
                awake(*task)
                    && !self.seats(*task)
                    && !self.filling.values().any(|filling| filling == task)
            };
            if let Some(task) = fillers.find(|task| idle(task) && self.fits(*task, cpu, &awake)) {
                self.filling.insert(cpu, task);
                let placement = Placement::Exclusive {
                    cpus: [cpu].into_iter().collect(),
                    whole_core: false,
                };
                changes.push(Change::Place {
                    task,
                    placement,
                    lease_end: None,
                    purpose: Purpose::Run,
                });
            }
        }
        changes
    }

    /// Whether the memory bus has room for a task beside those that run (EFS, Eq. 16).
    fn fits(&self, task: TaskId, cpu: CpuId, awake: &impl Fn(TaskId) -> bool) -> bool {
        let Some((table, admission)) = &self.bus else {
            return true;
        };
        let class = |task: TaskId| {
            let found = admission
                .demands
                .binary_search_by_key(&task, |demand| demand.task);
            let number = found.map_or(0, |ix| admission.demands[ix].class);
            DemandClass::from_number(number).unwrap_or(DemandClass::HIGHEST)
        };
        let position = |cpu: CpuId| self.machine.index_of(cpu).map(|ix| &self.machine.cpus[ix]);
        let Some(here) = position(cpu) else {
            return false;
        };
        let mut load = BusLoad::new();
        let mut active = vec![false; self.machine.cores.len()];
        let seated = self.plan.seats.iter().filter(|seat| awake(seat.task));
        let seated =
            seated.flat_map(|seat| seat.placement.cpus().iter().map(|cpu| (cpu, seat.task)));
        for (cpu, other) in seated.chain(self.filling.iter().map(|(&cpu, &task)| (cpu, task))) {
            if let Some(there) =
                position(cpu).filter(|there| there.memory_domain == here.memory_domain)
            {
                // The table has a largest number of tasks; those beyond it are not counted.
                let _ = load.add(table, class(other));
                active[there.core] = true;
            }
        }
        let cores = active.iter().filter(|&&active| active).count();
        let gain = if active[here.core] {
            Gain::NONE
        } else {
            // While no core is active every task fits, whatever the gain.
            let number = admission
                .gains
                .get(cores.saturating_sub(1))
                .or(admission.gains.last());
            number.map_or(Gain::NONE, |&number| Gain::from_number(number))
        };
        table
            .ceiling(&load, gain)
            .is_some_and(|ceiling| class(task) <= ceiling)
    }
}
