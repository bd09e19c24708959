//! Carries out a schedule: at every event it gives empty seats to fillers, and returns them when their own task wants
//! them.

use crate::residency::is_awake;
use crate::world::SimWorld;
use cosched_core::model::bus_admission_table::{BusAdmissionTable, BusLoad, DemandClass, Gain};
use cosched_core::{
    BusAdmission, Change, Cpu, CpuId, CpuSet, Machine, Nanos, Placement, Purpose, Schedule, TaskId,
};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Constant for all plans. Computing it takes longer than many plans last.
static TABLE: OnceLock<BusAdmissionTable> = OnceLock::new();

/// An adopted schedule, and its present state.
pub(crate) struct InForce {
    pub plan: Schedule,
    machine: Arc<Machine>,
    /// CPUs of expired seats.
    open: Vec<CpuId>,
    /// The filler on each CPU that has one.
    filling: BTreeMap<CpuId, TaskId>,
    bus: Option<(&'static BusAdmissionTable, BusAdmission)>,
}

impl InForce {
    pub(crate) fn new(plan: Schedule, machine: &Arc<Machine>) -> InForce {
        let admission = plan.admission.clone();
        let bus = admission.map(|admission| (TABLE.get_or_init(BusAdmissionTable::new), admission));
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

    /// The end of the seat that expires next.
    pub(crate) fn next_end(&self, now: u64) -> u64 {
        let mut next = u64::MAX;
        for until in self.plan.seats.iter().filter_map(|seat| seat.until) {
            if until.0 > now {
                next = next.min(until.0);
            }
        }
        next
    }

    /// The changes that put every seat's own task or a filler on its CPUs now; empty if there are none.
    pub(crate) fn changes(
        &mut self,
        world: &SimWorld,
        ended: impl Fn(TaskId) -> bool,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        self.close_seats(Nanos(world.now), &ended, &mut changes);
        let awake = |task: TaskId| !ended(task) && is_awake(world, task.0 as usize);
        let (wanted, free) = self.seats_in_use(&awake);
        self.filling.retain(|&cpu, &mut task| {
            let goes = wanted.contains(cpu) || !awake(task);
            if goes && !ended(task) {
                changes.push(Change::Stop { task });
            }
            !goes
        });
        for cpu in free {
            // A schedule that contradicts itself can make a CPU wanted and free at once.
            if self.filling.contains_key(&cpu) || wanted.contains(cpu) {
                continue;
            }
            if let Some(task) = self.filler_for(cpu, &awake) {
                self.filling.insert(cpu, task);
                changes.push(fill(cpu, task));
            }
        }
        changes
    }

    /// Removes expired seats. Their tasks wait like those that were not chosen.
    fn close_seats(
        &mut self,
        now: Nanos,
        ended: &impl Fn(TaskId) -> bool,
        changes: &mut Vec<Change>,
    ) {
        let open = &mut self.open;
        self.plan.seats.retain(|seat| {
            let over = seat.until.is_some_and(|until| until <= now);
            if over && !ended(seat.task) {
                changes.push(Change::Stop { task: seat.task });
            }
            if over && Schedule::can_be_filled(seat) {
                open.extend(seat.placement.cpus().iter());
            }
            !over
        });
    }

    /// The CPUs wanted by the tasks of their seats, and those free for fillers.
    fn seats_in_use(&self, awake: &impl Fn(TaskId) -> bool) -> (CpuSet, Vec<CpuId>) {
        let mut wanted = CpuSet::new();
        let mut free = self.open.clone();
        let seats = self.plan.seats.iter();
        for seat in seats.filter(|seat| Schedule::can_be_filled(seat)) {
            if awake(seat.task) {
                wanted.extend(seat.placement.cpus().iter());
            } else {
                free.extend(seat.placement.cpus().iter());
            }
        }
        (wanted, free)
    }

    /// The first idle filler that may use this CPU and fits on the memory bus.
    fn filler_for(&self, cpu: CpuId, awake: &impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let here = self.machine.cpu(cpu)?;
        let fillers = self.plan.fillers.iter().filter(|filler| {
            let allowed = filler.allowed.as_ref();
            allowed.is_none_or(|allowed| allowed.contains(cpu))
        });
        fillers.map(|filler| filler.task).find(|&task| {
            let is_filling = self.filling.values().any(|&other| other == task);
            awake(task) && !self.seats(task) && !is_filling && self.fits(task, here, awake)
        })
    }

    /// Whether a task fits on the memory bus beside the running ones (EFS, Eq. 16).
    fn fits(&self, task: TaskId, here: &Cpu, awake: &impl Fn(TaskId) -> bool) -> bool {
        let Some((table, admission)) = &self.bus else {
            return true;
        };
        let mut load = BusLoad::new();
        let mut active = vec![false; self.machine.cores.len()];
        for (cpu, other) in self.occupants(awake) {
            let there = self.machine.cpu(cpu);
            if let Some(there) = there.filter(|there| there.memory_domain == here.memory_domain) {
                // Tasks beyond the maximum of the table are not counted.
                load.add(table, class_of(other, admission));
                active[there.core] = true;
            }
        }
        let cores = active.iter().filter(|&&active| active).count();
        let gain = match active[here.core] {
            true => Gain::NONE,
            false => gain_of_core(cores, admission),
        };
        let ceiling = table.ceiling(&load, gain);
        ceiling.is_some_and(|ceiling| class_of(task, admission) <= ceiling)
    }

    /// The CPUs of awake tasks with seats, and those of fillers.
    fn occupants(&self, awake: &impl Fn(TaskId) -> bool) -> Vec<(CpuId, TaskId)> {
        let mut occupants = Vec::new();
        for seat in self.plan.seats.iter().filter(|seat| awake(seat.task)) {
            occupants.extend(seat.placement.cpus().iter().map(|cpu| (cpu, seat.task)));
        }
        occupants.extend(self.filling.iter().map(|(&cpu, &task)| (cpu, task)));
        occupants
    }
}

fn class_of(task: TaskId, admission: &BusAdmission) -> DemandClass {
    let demands = &admission.demands;
    let found = demands.binary_search_by_key(&task, |demand| demand.task);
    let number = found.map_or(0, |ix| demands[ix].class);
    DemandClass::from_number(number).unwrap_or(DemandClass::HIGHEST)
}

/// The gain of one more core beside `active` ones. While no core is active every task fits, whatever the gain.
fn gain_of_core(active: usize, admission: &BusAdmission) -> Gain {
    let gains = &admission.gains;
    let number = gains.get(active.saturating_sub(1)).or(gains.last());
    number.map_or(Gain::NONE, |&number| Gain::from_number(number))
}

fn fill(cpu: CpuId, task: TaskId) -> Change {
    let placement = Placement::Exclusive {
        cpus: [cpu].into_iter().collect(),
        whole_core: false,
    };
    Change::Place {
        task,
        placement,
        lease_end: None,
        purpose: Purpose::Run,
    }
}
