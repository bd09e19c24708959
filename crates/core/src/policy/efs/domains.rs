//! Admission: may one more task run beside those that do (EFS, Eqs. 15 and 16)?
//!
//! Each memory domain is judged by itself: it has one bus and the power of its active cores (ours). A gang counts
//! as so many tasks as it has CPUs.

use super::settings::Settings;
use crate::decision::WaitReason;
use crate::model::admission_table::{AdmissionTable, BusLoad, DemandClass, Gain};
use crate::model::power::energy_per_work;
use crate::topology::{CpuSet, Machine};

/// What runs on one memory domain, as far as it is settled.
struct Domain {
    load: BusLoad,
    /// Cores on which something runs.
    active: usize,
    /// Highest classes that fit now, by the number of tasks and of cores that they wake.
    limits: Vec<(Joining, Option<DemandClass>)>,
    throughput: Option<f64>,
}

/// What would join those that run: so many alike tasks, which wake so many cores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Joining {
    pub(super) tasks: u32,
    pub(super) cores: u32,
}

/// All memory domains.
pub(super) struct Domains<'a> {
    settings: &'a Settings,
    table: &'a AdmissionTable,
    machine: &'a Machine,
    domains: Vec<Domain>,
    /// Tasks on each core.
    on_core: Vec<u32>,
    /// The most CPUs of a core.
    threads: usize,
}

impl<'a> Domains<'a> {
    /// With nothing running.
    pub(super) fn new(settings: &'a Settings, table: &'a AdmissionTable, machine: &'a Machine) -> Domains<'a> {
        let domain = || Domain { load: BusLoad::new(), active: 0, limits: Vec::new(), throughput: None };
        let domains = machine.memory_domains.iter().map(|_| domain()).collect();
        let threads = machine.cores.iter().map(CpuSet::len).max().unwrap_or(1);
        Domains { settings, table, machine, domains, on_core: vec![0; machine.cores.len()], threads }
    }

    /// The domain of a CPU, given by its position.
    pub(super) fn of(&self, cpu: usize) -> usize {
        self.machine.cpus[cpu].memory_domain
    }

    /// Whether nothing runs on the core of a CPU, given by its position.
    pub(super) fn core_is_idle(&self, cpu: usize) -> bool {
        self.on_core[self.machine.cpus[cpu].core] == 0
    }

    /// What a task would be to a domain on these CPUs, given by their positions.
    pub(super) fn joining(&self, cpus: &[usize]) -> Joining {
        let idle = |&cpu: &usize| self.core_is_idle(cpu).then_some(self.machine.cpus[cpu].core);
        let cores = match cpus {
            [cpu] => u32::from(self.core_is_idle(*cpu)),
            _ => {
                let mut cores: Vec<usize> = cpus.iter().filter_map(idle).collect();
                cores.sort_unstable();
                cores.dedup();
                cores.len() as u32
            }
        };
        Joining { tasks: cpus.len() as u32, cores }
    }

    /// Adds a task that runs on these CPUs, whether it fits or not.
    pub(super) fn add(&mut self, class: DemandClass, cpus: &[usize]) {
        for &cpu in cpus {
            let of = &self.machine.cpus[cpu];
            let domain = &mut self.domains[of.memory_domain];
            // Beyond the most tasks that the table can hold nothing more is counted.
            let _ = domain.load.add(self.table, class);
            domain.active += usize::from(self.on_core[of.core] == 0);
            self.on_core[of.core] += 1;
            domain.limits.clear();
            domain.throughput = None;
        }
    }

    /// Whether a task of this class may join, with so many waiting, itself included.
    ///
    /// A task that wakes a core by itself may also join if it would together with as many like it as the core has CPUs
    /// for and as wait (ours). The others cost no power, so that a core can be worth waking for all of them where it is not
    /// for the first: without this, where some cores run a task on each of their CPUs, which makes work cheap, no further
    /// core would ever be woken.
    pub(super) fn admits(&mut self, domain: usize, joining: Joining, class: DemandClass, waiting: usize) -> bool {
        let fits = |limit: Option<DemandClass>| limit.is_some_and(|limit| class <= limit);
        if fits(self.limit(domain, joining)) {
            return true;
        }
        let together = waiting.min(self.threads) as u32;
        let wakes_one = joining == Joining { tasks: 1, cores: 1 };
        wakes_one && together > 1 && fits(self.limit(domain, Joining { tasks: together, ..joining }))
    }

    /// Why a task of this class may not.
    pub(super) fn refusal(&mut self, domain: usize, joining: Joining, class: DemandClass) -> WaitReason {
        let milli = |class: DemandClass| (self.table.demand(class) * 1e3 + 0.5) as u32;
        let demand_milli = milli(class);
        let threshold_milli = self.limit(domain, joining).map_or(0, |limit| (self.table.demand(limit) * 1e3) as u32);
        let throughput = self.throughput(domain);
        let domain = &self.domains[domain];
        let energy = |cores: usize, throughput: f64| {
            energy_per_work(self.settings.power.watts(cores), throughput).map_or(u64::MAX, |j| (j * 1e3 + 0.5) as u64)
        };
        let with = domain.load.throughput_with(self.table, class, joining.tasks);
        WaitReason::BusFull {
            demand_milli,
            threshold_milli,
            energy_with_mj: energy(domain.active + joining.cores as usize, with),
            energy_without_mj: energy(domain.active, throughput),
        }
    }

    fn throughput(&mut self, domain: usize) -> f64 {
        let domain = &mut self.domains[domain];
        *domain.throughput.get_or_insert_with(|| domain.load.throughput(self.table))
    }

    /// The highest class that may join; `None` when nothing may.
    fn limit(&mut self, domain: usize, joining: Joining) -> Option<DemandClass> {
        if let Some(&(_, limit)) = self.domains[domain].limits.iter().find(|(known, _)| *known == joining) {
            return limit;
        }
        let limit = self.find_limit(domain, joining);
        self.domains[domain].limits.push((joining, limit));
        limit
    }

    fn find_limit(&mut self, domain: usize, joining: Joining) -> Option<DemandClass> {
        if self.domains[domain].load.tasks() == 0 {
            return Some(DemandClass::HIGHEST);
        }
        let (power, active) = (&self.settings.power, self.domains[domain].active);
        let gain = self.settings.objective.gain(power.watts(active), power.watts(active + joining.cores as usize));
        // Power with an active core is above 0, so there is a gain.
        let Ok(gain) = gain else { return None };
        if joining.tasks == 1 {
            return Gain::of(gain).ok().and_then(|gain| self.table.ceiling(&self.domains[domain].load, gain));
        }
        let needed = self.throughput(domain) * gain;
        let load = &self.domains[domain].load;
        let fits = |class: DemandClass| load.throughput_with(self.table, class, joining.tasks) >= needed;
        // Throughput falls with demand: the last class that fits.
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
