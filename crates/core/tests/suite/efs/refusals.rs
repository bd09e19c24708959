//! Each refusal that a decision explains, against the set that it really runs.

use crate::random::{after, is_full, machine, moments_on, policy};
use cosched_core::model::bus::throughput;
use cosched_core::model::power::PowerModel;
use cosched_core::*;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};
use std::sync::Arc;

/// P_0, P_1, P_2 and the step of each further core, in W: the defaults of `efs`.
const STEPS_W: [f64; 4] = [26.6, 22.6, 12.0, 12.3];
/// Least throughput that a task on an active core must add.
const LEAST_WORK: f64 = 0.01;

/// The tasks that run after a decision.
#[derive(Debug)]
struct RunningSet<'a> {
    machine: &'a Machine,
    power: PowerModel,
    /// The CPUs with an awake task, and its demand.
    busy: Vec<(CpuId, f64)>,
    /// The CPUs that a waiting task could get.
    free: CpuSet,
}

/// A place for one more task: a memory domain, the cores that it wakes there, and the CPUs that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OneMore {
    domain: usize,
    cores: usize,
    cpus: usize,
}

impl<'a> RunningSet<'a> {
    fn after(snap: &'a Snapshot, decision: &Decision) -> RunningSet<'a> {
        let mut set = RunningSet {
            machine: &snap.machine,
            power: PowerModel::new(STEPS_W).unwrap(),
            busy: Vec::new(),
            free: snap.machine.all_cpus(),
        };
        for (task, placement) in snap.tasks.iter().zip(after(snap, decision)) {
            let Some(placement) = placement else { continue };
            // A sleeper does not use the bus. It keeps its CPU as long as no other task wants it.
            if !task.asleep || task.stays(is_full(snap)) {
                set.free.remove_all(&reserved(&snap.machine, &placement));
            }
            if !task.asleep {
                let demand = demand(task);
                set.busy
                    .extend(placement.cpus().iter().map(|cpu| (cpu, demand)));
            }
        }
        set
    }

    fn is_active(&self, core: &CpuSet) -> bool {
        self.busy.iter().any(|(cpu, _)| core.contains(*cpu))
    }

    /// Power of the machine, with the cores that one more wakes.
    fn watts(&self, more: Option<OneMore>) -> f64 {
        let mut watts = self.power.watts(0);
        for (domain, cpus) in self.machine.memory_domains.iter().enumerate() {
            let cores = self.machine.cores.iter();
            let here = cores.filter(|core| core.is_subset(cpus) && self.is_active(core));
            let woken = more.filter(|more| more.domain == domain);
            let active = here.count() + woken.map_or(0, |more| more.cores);
            watts += self.power.watts(active) - self.power.watts(0);
        }
        watts
    }

    /// Throughput of the machine, with one more task of this demand.
    fn work(&self, more: Option<(OneMore, f64)>) -> f64 {
        let mut work = 0.0;
        for (domain, cpus) in self.machine.memory_domains.iter().enumerate() {
            let mut demands: Vec<f64> = Vec::new();
            demands.extend(
                self.busy
                    .iter()
                    .filter(|(cpu, _)| cpus.contains(*cpu))
                    .map(|of| of.1),
            );
            if let Some((place, demand)) = more.filter(|(place, _)| place.domain == domain) {
                demands.extend(std::iter::repeat_n(demand, place.cpus));
            }
            work += throughput(&demands).unwrap();
        }
        work
    }

    /// Energy per work, in mJ.
    fn energy(&self, more: Option<(OneMore, f64)>) -> f64 {
        1e3 * self.watts(more.map(|(place, _)| place)) / self.work(more)
    }

    /// By bisection, the greatest demand of one more that does not raise the energy per work and adds a little, in
    /// thousandths. `off` is the relative error of its throughput.
    fn threshold(&self, place: OneMore, off: f64) -> f64 {
        let fits = |demand: f64| {
            let work = self.work(Some((place, demand))) * (1.0 + off);
            let adds = work >= self.work(None) + LEAST_WORK;
            adds && self.watts(Some(place)) / work <= self.watts(None) / self.work(None)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if fits(middle) {
                low = middle
            } else {
                high = middle
            }
        }
        1e3 * low
    }

    /// Whether a task fits in a place, alone or with equal ones that wait, on the other CPUs of the core that it wakes.
    fn fits(&self, place: OneMore, task: &TaskView) -> bool {
        let threads = self.machine.cores.iter().map(CpuSet::len).max().unwrap();
        let together = place.cpus..=if place.cores == 1 {
            threads
        } else {
            place.cpus
        };
        let mut thresholds = together.map(|cpus| self.threshold(OneMore { cpus, ..place }, 0.01));
        thresholds.any(|threshold| 1e3 * demand(task) <= threshold + 2.0)
    }

    /// Whether a refusal tells the threshold and the energy of one more in this place, within the table's error.
    fn is_told(
        &self,
        place: OneMore,
        task: &TaskView,
        threshold_milli: u32,
        energy_with_mj: u64,
    ) -> bool {
        let (least, most) = (
            self.threshold(place, -0.01) - 2.0,
            self.threshold(place, 0.01) + 2.0,
        );
        (least..=most).contains(&f64::from(threshold_milli))
            && near(
                energy_with_mj as f64,
                self.energy(Some((place, demand(task)))),
            )
    }

    /// The places on free CPUs that a task of one CPU may use.
    fn free_places(&self, task: &TaskView) -> Vec<OneMore> {
        let mut places: Vec<OneMore> = Vec::new();
        for cpu in self
            .machine
            .cpus
            .iter()
            .filter(|cpu| self.free.contains(cpu.id) && task.may_use(cpu.id))
        {
            let is_active = self.is_active(&self.machine.cores[cpu.core]);
            let place = OneMore {
                domain: cpu.memory_domain,
                cores: usize::from(!is_active),
                cpus: 1,
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// All places that a task could have been tried in.
    fn all_places(&self, cpus: usize) -> Vec<OneMore> {
        let domains = 0..self.machine.memory_domains.len();
        let place = |domain| {
            move |cores| OneMore {
                domain,
                cores,
                cpus,
            }
        };
        domains
            .flat_map(|domain| (0..=cpus).map(place(domain)))
            .collect()
    }
}

fn reserved(machine: &Machine, placement: &Placement) -> CpuSet {
    let mut cpus = placement.cpus().clone();
    if let Placement::Exclusive {
        whole_core: true, ..
    } = placement
    {
        for core in machine
            .cores
            .iter()
            .filter(|core| !core.intersection(placement.cpus()).is_empty())
        {
            cpus.extend(core.iter());
        }
    }
    cpus
}

fn demand(task: &TaskView) -> f64 {
    f64::from(task.bus_use_milli.unwrap()) / 1e3
}

fn near(milli: f64, exact: f64) -> bool {
    (milli - exact).abs() <= 1.0 + 0.015 * exact
}

fn moments_of_given_demands() -> impl Strategy<Value = Vec<Snapshot>> {
    // A memory domain per last-level cache.
    let machine = machine().prop_map(|mut machine| {
        machine.memory_domains = machine.llcs.clone();
        machine
            .cpus
            .iter_mut()
            .for_each(|cpu| cpu.memory_domain = cpu.llc);
        machine.validate().unwrap();
        Arc::new(machine)
    });
    let demands = proptest::collection::vec(0u16..1_000, 16);
    (moments_on(machine), demands).prop_map(|(mut moments, demands)| {
        for task in moments.iter_mut().flat_map(|snap| &mut snap.tasks) {
            task.bus_use_milli = Some(demands[task.id.0 as usize]);
        }
        moments
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn each_refusal_tells_of_the_set_that_runs(moments in moments_of_given_demands()) {
        let mut efs = policy(find_policy("efs").unwrap(), &[("demand", "given")]);
        for snap in &moments {
            let decision = efs.decide(snap, &mut Rng::new(1));
            let set = RunningSet::after(snap, &decision);
            for wait in &decision.waits {
                let task = snap.task(wait.task).unwrap();
                let free = if task.cpus == 1 { set.free_places(task) } else { Vec::new() };
                if wait.reason == WaitReason::FitsNow && task.cpus == 1 {
                    prop_assert!(free.iter().any(|&place| set.fits(place, task)), "{wait:?} beside {set:?}");
                }
                let WaitReason::BusFull { demand_milli, threshold_milli, energy_with_mj, energy_without_mj, .. } = wait.reason else {
                    continue;
                };
                let possible = if free.is_empty() { set.all_places(task.cpus as usize) } else { free.clone() };
                let is_told = |place: &OneMore| set.is_told(*place, task, threshold_milli, energy_with_mj);
                prop_assert!(possible.into_iter().any(|place| is_told(&place)), "{wait:?} beside {set:?}");
                for place in free {
                    let least = set.threshold(place, -0.01) - 2.0;
                    prop_assert!(f64::from(threshold_milli) >= least, "{wait:?}: more fits in {place:?} beside {set:?}");
                }
                prop_assert!(near(energy_without_mj as f64, set.energy(None)), "{wait:?} beside {set:?}");
                prop_assert!(near(f64::from(demand_milli), 1e3 * demand(task)), "{wait:?}");
                prop_assert!(demand_milli >= threshold_milli, "{wait:?}");
            }
        }
    }
}
