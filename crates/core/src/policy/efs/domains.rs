//! Admission: may one more task run beside those that run (EFS, Eqs. 15 and 16)?
//!
//! Each memory domain has one bus; a device is one for the whole machine. Active cores cost power; P_0 counts once for the machine (ours). A gang counts as
//! one task per CPU.

use super::predicted::PredictedDemand;
use super::settings::EfsSettings;
use crate::decision::WaitReason;
use crate::device::Device;
use crate::model::bus_admission_table::{BusAdmissionTable, BusLoad, DemandClass, Gain};
use crate::model::objective::Objective;
use crate::model::power::energy_per_work;
use crate::topology::{CpuSet, Machine};

/// Least throughput that a task must add where it costs no power, in units of a task that runs alone (ours).
const LEAST_WORK: f64 = 0.01;

/// The tasks settled so far on one memory domain, or on a device.
struct Domain {
    load: BusLoad,
    /// Number of active cores.
    active: usize,
    /// Highest class that fits, by joining tasks and woken cores, after `limits_of` changes.
    limits: Vec<(Joining, Option<DemandClass>)>,
    limits_of: u64,
    throughput: Option<f64>,
}

/// A number of equal tasks to admit, and the number of idle cores that they would wake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Joining {
    pub(super) tasks: u32,
    pub(super) cores: u32,
}

/// The buses of all memory domains, or a device.
pub(super) struct Domains<'a> {
    settings: &'a EfsSettings,
    table: &'a BusAdmissionTable,
    machine: &'a Machine,
    device: Option<Device>,
    domains: Vec<Domain>,
    /// Tasks on each core.
    on_core: Vec<u32>,
    /// Greatest number of CPUs of a core.
    threads: usize,
    /// Number of additions and removals so far, per CPU.
    changes: u64,
}

impl<'a> Domains<'a> {
    /// Starts from an idle machine.
    pub(super) fn new(
        settings: &'a EfsSettings,
        table: &'a BusAdmissionTable,
        machine: &'a Machine,
        device: Option<Device>,
    ) -> Domains<'a> {
        let number = device.map_or(machine.memory_domains.len(), |_| 1);
        let domains = (0..number).map(|_| Domain {
            load: BusLoad::new(),
            active: 0,
            limits: Vec::new(),
            limits_of: 0,
            throughput: None,
        });
        let domains = domains.collect();
        let threads = machine.cores.iter().map(CpuSet::len).max().unwrap_or(1);
        Domains {
            settings,
            table,
            machine,
            device,
            domains,
            on_core: vec![0; machine.cores.len()],
            threads,
            changes: 0,
        }
    }

    /// The memory domain of the CPU at this position; 0 for a device.
    pub(super) fn of(&self, cpu: usize) -> usize {
        match self.device {
            Some(_) => 0,
            None => self.machine.cpus[cpu].memory_domain,
        }
    }

    /// Whether the core of the CPU at this position is idle.
    pub(super) fn core_is_idle(&self, cpu: usize) -> bool {
        self.on_core[self.machine.cpus[cpu].core] == 0
    }

    /// The tasks and woken cores that a task on these CPUs, given by position, would add.
    pub(super) fn joining(&self, cpus: &[usize]) -> Joining {
        let cores = match cpus {
            [cpu] => u32::from(self.core_is_idle(*cpu)),
            _ => {
                let mut cores: Vec<usize> = cpus
                    .iter()
                    .filter_map(|&cpu: &usize| {
                        self.core_is_idle(cpu)
                            .then_some(self.machine.cpus[cpu].core)
                    })
                    .collect();
                cores.sort_unstable();
                cores.dedup();
                cores.len() as u32
            }
        };
        Joining {
            tasks: cpus.len() as u32,
            cores,
        }
    }

    /// Adds a task on these CPUs, whether it fits or not.
    pub(super) fn add(&mut self, class: DemandClass, cpus: &[usize]) {
        for &cpu in cpus {
            let (domain, core) = (self.of(cpu), self.machine.cpus[cpu].core);
            let domain = &mut self.domains[domain];
            // Tasks beyond the maximum of the table are not counted.
            domain.load.add(self.table, class);
            domain.active += usize::from(self.on_core[core] == 0);
            self.on_core[core] += 1;
            domain.throughput = None;
            self.changes += 1;
        }
    }

    /// Removes a task from these CPUs. `class` must be the class it was added with.
    pub(super) fn remove(&mut self, class: DemandClass, cpus: &[usize]) {
        for &cpu in cpus {
            let (domain, core) = (self.of(cpu), self.machine.cpus[cpu].core);
            let domain = &mut self.domains[domain];
            // Tasks beyond the maximum of the table were not counted.
            domain.load.remove(self.table, class);
            self.on_core[core] -= 1;
            domain.active -= usize::from(self.on_core[core] == 0);
            domain.throughput = None;
            self.changes += 1;
        }
    }

    /// Number of tasks on the core of the CPU at this position. A gang counts once for each of its CPUs.
    pub(super) fn on_core(&self, cpu: usize) -> u32 {
        self.on_core[self.machine.cpus[cpu].core]
    }

    /// Whether a task of this class may join while `waiting` tasks wait, itself included.
    ///
    /// A task that wakes a core may also join if it would fit together with equal tasks on the core's other CPUs, as
    /// far as tasks wait (ours). The others cost no power, so a core can be worth waking for all of them but not for
    /// the first alone. Without this, where active cores run a task on each of their CPUs, which makes work cheap, no
    /// further core would ever be woken.
    pub(super) fn admits(
        &mut self,
        domain: usize,
        joining: Joining,
        class: DemandClass,
        waiting: usize,
    ) -> bool {
        let fits = |limit: Option<DemandClass>| limit.is_some_and(|limit| class <= limit);
        if fits(self.limit(domain, joining)) {
            return true;
        }
        let together = waiting.min(self.threads) as u32;
        let wakes_one = joining == Joining { tasks: 1, cores: 1 };
        wakes_one
            && together > 1
            && fits(self.limit(
                domain,
                Joining {
                    tasks: together,
                    ..joining
                },
            ))
    }

    /// Why a task with this demand may not join.
    pub(super) fn refusal(
        &mut self,
        domain: usize,
        joining: Joining,
        predicted: &PredictedDemand,
    ) -> WaitReason {
        let class = predicted.class();
        let demand_milli = (self.table.demand(class) * 1e3 + 0.5) as u32;
        let threshold_milli = self
            .limit(domain, joining)
            .map_or(0, |limit| (self.table.demand(limit) * 1e3) as u32);
        let (now, total) = (self.power(), self.total_throughput());
        let own = self.throughput(domain);
        let with = total - own
            + self.domains[domain]
                .load
                .throughput_with(self.table, class, joining.tasks);
        WaitReason::BusFull {
            device: self.device,
            demand_milli,
            basis: predicted.basis(),
            threshold_milli,
            energy_with_mj: millijoules_per_work(now + self.waking(domain, joining), with),
            energy_without_mj: millijoules_per_work(now, total),
        }
    }

    fn throughput(&mut self, domain: usize) -> f64 {
        let domain = &mut self.domains[domain];
        *domain
            .throughput
            .get_or_insert_with(|| domain.load.throughput(self.table))
    }

    fn total_throughput(&mut self) -> f64 {
        (0..self.domains.len())
            .map(|domain| self.throughput(domain))
            .sum()
    }

    /// Power of the machine in W: P_0 once, plus the active cores of each memory domain.
    fn power(&self) -> f64 {
        let idle = self.settings.power.watts(0);
        let active = self.domains.iter().map(|domain| domain.active);
        idle + active
            .map(|cores| self.settings.power.watts(cores) - idle)
            .sum::<f64>()
    }

    /// Power that the joining tasks would add, in W.
    fn waking(&self, domain: usize, joining: Joining) -> f64 {
        let active = self.domains[domain].active;
        self.settings.power.watts(active + joining.cores as usize)
            - self.settings.power.watts(active)
    }

    /// The highest class that may join; `None` if none may.
    fn limit(&mut self, domain: usize, joining: Joining) -> Option<DemandClass> {
        let changes = self.changes;
        let known = &mut self.domains[domain];
        if known.limits_of != changes {
            known.limits.clear();
            known.limits_of = changes;
        }
        if let Some(&(_, limit)) = known.limits.iter().find(|(known, _)| *known == joining) {
            return limit;
        }
        let limit = self.find_limit(domain, joining);
        self.domains[domain].limits.push((joining, limit));
        limit
    }

    fn find_limit(&mut self, domain: usize, joining: Joining) -> Option<DemandClass> {
        if self.domains.iter().all(|domain| domain.load.tasks() == 0) {
            return Some(DemandClass::HIGHEST);
        }
        let now = self.power();
        // Power with an active core is above 0, so the gain exists.
        let gain = self
            .settings
            .objective
            .gain(now, now + self.waking(domain, joining))
            .ok()?;
        // On an active core, a task that fills the bus would only take bandwidth from another: nothing gained.
        let gain = match self.settings.objective {
            Objective::Throughput => gain,
            Objective::Energy | Objective::EnergyDelay => {
                gain.max(1.0 + LEAST_WORK / self.total_throughput())
            }
        };
        let is_alone = self
            .domains
            .iter()
            .enumerate()
            .all(|(other, of)| other == domain || of.load.tasks() == 0);
        if is_alone && joining.tasks == 1 {
            return Gain::of(gain)
                .ok()
                .and_then(|gain| self.table.ceiling(&self.domains[domain].load, gain));
        }
        // The other domains stay as they are, so this one must bring the whole gain.
        let (own, total) = (self.throughput(domain), self.total_throughput());
        let needed = total * gain - (total - own);
        let load = &self.domains[domain].load;
        if joining.tasks == 1 && own > 0.0 {
            return Gain::of((needed / own).max(0.0))
                .ok()
                .and_then(|gain| self.table.ceiling(load, gain));
        }
        let fits =
            |class: DemandClass| load.throughput_with(self.table, class, joining.tasks) >= needed;
        // Throughput falls with demand: find the last class that fits.
        let (mut below, mut above) = (-1, i32::from(DemandClass::HIGHEST.number()) + 1);
        while above - below > 1 {
            let middle = (below + above) / 2;
            let class = DemandClass::from_number(middle as u16).unwrap_or(DemandClass::HIGHEST);
            if fits(class) {
                below = middle;
            } else {
                above = middle;
            }
        }
        u16::try_from(below).ok().and_then(DemandClass::from_number)
    }
}

fn millijoules_per_work(watts: f64, throughput: f64) -> u64 {
    energy_per_work(watts, throughput).map_or(u64::MAX, |joules| (joules * 1e3 + 0.5) as u64)
}
