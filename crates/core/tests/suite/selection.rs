//! Selection and allocation, compared with their plainest definitions.

use crate::memory;
use crate::random::*;
use cosched_core::*;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, proptest};
use std::cmp::Reverse;
use std::sync::Arc;

/// The online target and each task's bandwidth per CPU (Perf&Fair, Algorithm 1, line 11). A gang counts once for each
/// of its CPUs, and an unmeasured task counts as the mean.
struct Oracle<'a> {
    snap: &'a Snapshot,
    remain: i128,
    cpus: u32,
    mean: u64,
    chosen: Vec<TaskId>,
}

impl<'a> Oracle<'a> {
    fn new(snap: &'a Snapshot) -> Oracle<'a> {
        let measured = || {
            snap.tasks
                .iter()
                .filter_map(|t| Some((t.estimates.mm_reads_mean.value()?.0, t.cpus)))
        };
        let sum: u64 = measured().map(|(rate, _)| rate).sum();
        let over: u64 = measured().map(|(_, cpus)| u64::from(cpus)).sum();
        let cpus = snap.machine.cpus.len() as u32;
        let over_all = |sum: u64| sum.checked_div(over).unwrap_or(0);
        let (mean, target) = (over_all(sum), over_all(sum * u64::from(cpus)));
        Oracle {
            snap,
            remain: i128::from(target),
            cpus,
            mean,
            chosen: Vec::new(),
        }
    }

    fn bandwidth(&self, task: &TaskView) -> i128 {
        i128::from(
            task.estimates
                .mm_reads
                .value()
                .map_or(self.mean, |rate| rate.0 / u64::from(task.cpus)),
        )
    }

    /// Ready tasks that are not chosen: first waiting tasks, the longest waiting first; then running tasks, the latest
    /// start first. Ties go to the task that has run least.
    fn queue(&self) -> Vec<&'a TaskView> {
        let ready = |task: &&TaskView| !task.asleep && !self.chosen.contains(&task.id);
        let mut queue: Vec<&TaskView> = self.snap.tasks.iter().filter(ready).collect();
        queue.sort_by_key(|task| {
            let begun = task.running.as_ref().map(|running| Reverse(running.since));
            (
                begun.is_some(),
                !task.overdue,
                begun,
                task.waiting_since,
                task.estimates.ran,
                task.id,
            )
        });
        queue
    }

    fn take(&mut self, task: &TaskView) {
        if task.cpus <= self.cpus {
            self.remain -= self.bandwidth(task) * i128::from(task.cpus);
            self.cpus -= task.cpus;
            self.chosen.push(task.id);
        }
    }

    /// Lines 14-19: the largest FITNESS, which is the smallest distance, among tasks that meet the condition and still
    /// fit; ties go to the longest waiting task.
    fn fill(&mut self, condition: impl Fn(&TaskView) -> bool) {
        loop {
            let distance = |task: &TaskView| {
                (self.remain - self.bandwidth(task) * i128::from(self.cpus)).abs()
            };
            let candidates = self
                .queue()
                .into_iter()
                .filter(|task| condition(task) && task.cpus <= self.cpus);
            let Some(fittest) = candidates.min_by_key(|task| distance(task)) else {
                return;
            };
            self.take(fittest);
        }
    }

    fn sorted(mut self) -> Vec<TaskId> {
        self.chosen.sort_unstable();
        self.chosen
    }
}

fn placed(decision: &Decision) -> Vec<TaskId> {
    let places = decision
        .changes
        .iter()
        .filter(|change| matches!(change, Change::Place { .. }));
    let mut placed: Vec<TaskId> = places.map(Change::task).collect();
    placed.sort_unstable();
    placed
}

/// The tasks that should always run: for each, the CPUs left by the others of them, divided by weight, would give it more
/// than it can use.
fn entitled(snap: &Snapshot) -> Vec<TaskId> {
    let mut entitled: Vec<TaskId> = Vec::new();
    loop {
        let taken = snap.tasks.iter().filter(|task| entitled.contains(&task.id));
        let left = snap.machine.cpus.len() as u32 - taken.map(|task| task.cpus).sum::<u32>();
        let awake = snap.tasks.iter().filter(|task| !task.asleep);
        let rest: Vec<&TaskView> = awake.filter(|task| !entitled.contains(&task.id)).collect();
        let sum: f64 = rest
            .iter()
            .map(|task| task.weight * f64::from(task.cpus))
            .sum();
        let Some(next) = rest
            .iter()
            .find(|task| f64::from(left) * task.weight / sum >= 1.0)
        else {
            return entitled;
        };
        entitled.push(next.id);
    }
}

/// Ends of quanta with gangs, unmeasured tasks and ties, but without masks and without sleeping tasks on CPUs.
fn ends_of_quanta() -> impl Strategy<Value = Snapshot> {
    (machine(), jobs(0..40, false)).prop_map(|(machine, jobs)| {
        let now = Nanos::from_ms(100_000);
        let mut snap = snapshot(&Arc::new(machine), &jobs, &[Trigger::QuantumEnd], now);
        for task in &mut snap.tasks {
            task.allowed = None;
            task.control = Control::FULL;
            // Critical tasks come first, which the definitions do not cover.
            task.expected = None;
            task.asleep &= task.running.is_none();
        }
        snap
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn bandwidth_takes_what_the_definition_takes(snap in ends_of_quanta()) {
        let mut oracle = Oracle::new(&snap);
        for task in oracle.queue() {
            if oracle.chosen.is_empty() || task.overdue {
                oracle.take(task);
            }
        }
        oracle.fill(|_| true);
        let decision = policy(find_policy("bandwidth").unwrap(), &[]).decide(&snap, &mut Rng::new(1));
        prop_assert_eq!(placed(&decision), oracle.sorted());
    }

    #[test]
    fn perf_fair_takes_what_the_definition_takes(snap in ends_of_quanta(), margin in 0u8..3) {
        let mut oracle = Oracle::new(&snap);
        let least = snap.tasks.iter().map(|task| task.weight).fold(f64::INFINITY, f64::min);
        let differ = snap.tasks.iter().any(|task| task.weight > least);
        let progress_after = |task: &TaskView, quanta: f64| {
            let weight = task.weight / least;
            task.estimates.progress.value().unwrap() / weight + quanta / weight
        };
        let max = snap.tasks.iter().map(|task| progress_after(task, 0.0)).fold(0.0, f64::max);
        let margin = f64::from(margin);
        let entitled = if differ { entitled(&snap) } else { Vec::new() };
        let first: [&dyn Fn(&TaskView) -> bool; 3] = [
            &|task| task.overdue,
            &|task| entitled.contains(&task.id),
            &|task| task.estimates.executed == 0 || differ && progress_after(task, margin + 4.0) < max,
        ];
        for is_first in first {
            for task in oracle.queue() {
                if is_first(task) {
                    oracle.take(task);
                }
            }
        }
        oracle.fill(|task| progress_after(task, margin) < max);
        oracle.fill(|_| true);
        let settings = [("estimation_share_max", "0"), ("progress_margin_quanta", &margin.to_string())];
        let decision = policy(find_policy("perf-fair").unwrap(), &settings).decide(&snap, &mut Rng::new(1));
        prop_assert_eq!(decision.basis.measures, None);
        prop_assert_eq!(placed(&decision), oracle.sorted());
    }

    #[test]
    fn pairs_are_head_and_tail_of_the_l1_order(
        cores in 1u32..12,
        jobs in jobs(24..25, true),
        full in any::<bool>(),
    ) {
        // As many single tasks as CPUs; each waits or runs anywhere.
        let machine = Arc::new(Machine::uniform("pairs", cores, 2));
        let mut snap = snapshot(&machine, &jobs[..cores as usize * 2], &[Trigger::QuantumEnd], Nanos::from_ms(100_000));
        for task in &mut snap.tasks {
            task.asleep = false;
            if !full {
                task.running = None;
            }
        }
        let l1 = |task: &TaskView| task.estimates.l1.value().map_or(0, |rate| rate.0);
        let mut order: Vec<u64> = snap.tasks.iter().map(l1).collect();
        order.sort_unstable();
        let mut expected: Vec<(u64, u64)> =
            order.iter().copied().zip(order.iter().rev().copied()).take(cores as usize).collect();
        expected.sort_unstable();
        for entry in sharing().filter(|entry| entry.name != "efs") {
            let decision = policy(entry, &[("quantum_s", "0.2")]).decide(&snap, &mut Rng::new(1));
            let after = after(&snap, &decision);
            let on = |core: &CpuSet| {
                let members = snap.tasks.iter().zip(&after).filter(|(_, place)| {
                    place.as_ref().is_some_and(|place| place.cpus().is_subset(core))
                });
                let mut rates: Vec<u64> = members.map(|(task, _)| l1(task)).collect();
                rates.sort_unstable();
                rates
            };
            let mut pairs: Vec<(u64, u64)> = Vec::new();
            for core in &machine.cores {
                let rates = on(core);
                prop_assert_eq!(rates.len(), 2);
                pairs.push((rates[0], rates[1]));
            }
            pairs.sort_unstable();
            prop_assert_eq!(&pairs, &expected, "{}", entry.name);
        }
    }

    #[test]
    fn nobody_moves_without_need(cores in 1u32..8, threads in 1u32..3, jobs in jobs(16..17, true)) {
        // Every running task stays where it is, even if its pair is not on the cores that it would get first.
        let machine = Arc::new(Machine::uniform("still", cores, threads));
        let jobs = &jobs[..(cores * threads) as usize];
        let mut snap = snapshot(&machine, jobs, &[Trigger::QuantumEnd], Nanos::from_ms(100_000));
        snap.tasks.iter_mut().for_each(|task| task.asleep = false);
        for entry in sharing() {
            let settings: &[(&str, &str)] = if entry.name == "efs" { &[("objective", "throughput")] } else { &[] };
            let first = policy(entry, settings).decide(&snap, &mut Rng::new(1));
            let mut next = snap.clone();
            let one_on = |cpu: CpuId| CpuId(cpu.0 / cores * cores + (cpu.0 + 1) % cores);
            for (task, place) in next.tasks.iter_mut().zip(after(&snap, &first)) {
                let cpus: CpuSet = place.unwrap().cpus().iter().map(one_on).collect();
                task.last_cpus = cpus.clone();
                task.running = Some(Running {
                    placement: Placement::Exclusive { cpus, whole_core: false },
                    purpose: Purpose::Run,
                    since: snap.now,
                    lease_end: None,
                });
                task.overdue = false;
                task.waiting_since = next.now;
            }
            let second = policy(entry, settings).decide(&next, &mut Rng::new(1));
            let ran: Vec<_> = next.tasks.iter().map(|task| Some(task.running.clone().unwrap().placement)).collect();
            prop_assert_eq!(after(&next, &second), ran, "{}", entry.name);
        }
    }
}

#[test]
fn who_fills_a_cpu_is_paired_with_who_runs_beside_it() {
    // Cores 0 and 1 hold a task with low and one with high L1 bandwidth; two more tasks arrive.
    let machine = Arc::new(Machine::uniform("two by two", 2, 2));
    for (here, coming) in [
        ([100, 900], [50, 800]),
        ([900, 100], [50, 800]),
        ([900, 100], [800, 50]),
    ] {
        let task = |id: u32, l1: u64, cpu: Option<u32>| {
            let cpus: CpuSet = cpu.map(CpuId).into_iter().collect();
            TaskView {
                id: TaskId(id),
                name: "t".into(),
                cpus: 1,
                allowed: None,
                weight: 1.0,
                origin: Origin::Spawned,
                control: Control::FULL,
                arrived: Nanos::ZERO,
                bus_use_milli: None,
                turn: 0,
                expected: None,
                running: cpu.map(|_| Running {
                    placement: Placement::Exclusive {
                        cpus: cpus.clone(),
                        whole_core: false,
                    },
                    purpose: Purpose::Run,
                    since: Nanos::ZERO,
                    lease_end: None,
                }),
                asleep: false,
                waiting_since: Nanos::ZERO,
                overdue: false,
                last_cpus: cpus,
                estimates: Estimates {
                    l1: Reading::Value(Rate(l1)),
                    executed: 1,
                    ..Estimates::default()
                },
            }
        };
        let tasks = vec![
            task(0, here[0], Some(0)),
            task(1, here[1], Some(1)),
            task(2, coming[0], None),
            task(3, coming[1], None),
        ];
        let now = Nanos::from_ms(50);
        let snap = Snapshot {
            machine: machine.clone(),
            now,
            triggers: vec![Trigger::Ended(TaskId(9))],
            queued: 0,
            admits: None,
            contention: Default::default(),
            tasks,
        };
        // `efs` has a queue per CPU: it does not pair.
        for entry in sharing().filter(|entry| entry.name != "efs") {
            let decision = policy(entry, &[]).decide(&snap, &mut Rng::new(1));
            let after = after(&snap, &decision);
            let core = |ix: usize| after[ix].as_ref().unwrap().cpus().first().unwrap().0 % 2;
            let of = |least: bool, pair: [u64; 2]| usize::from((pair[0] < pair[1]) != least);
            assert_eq!(
                core(of(true, here)),
                core(2 + of(false, coming)),
                "{} {here:?} {coming:?}",
                entry.name
            );
            assert_eq!(
                core(of(false, here)),
                core(2 + of(true, coming)),
                "{} {here:?} {coming:?}",
                entry.name
            );
        }
    }
}

/// Without counters, no decision shows a made-up number.
#[test]
fn without_counters_no_bandwidth_is_told() {
    for (name, settings) in [
        ("bandwidth", vec![]),
        ("perf-fair", vec![("estimation_share_max", "0")]),
    ] {
        let mut world = memory::Memory::new(
            Machine::uniform("two", 2, 1),
            (0..6).map(|_| memory::Work::ms(900)).collect(),
        );
        for capability in [
            Capability::Ipc,
            Capability::Counter(Counter::MmReads),
            Capability::Counter(Counter::LlcAccesses),
        ] {
            world
                .capabilities
                .missing
                .insert(capability, Absence::NoCounters);
        }
        let mut told = Told::default();
        let specs = world.specs();
        memory::run_specs(
            &mut world,
            specs,
            name,
            &settings,
            &RunConfig::default(),
            &mut told,
        );
        assert!(told.decisions > 5 && told.waits > 5, "{name}");
        assert_eq!((told.bases, told.bandwidths), (0, 0), "{name}");
    }
}

#[derive(Default)]
struct Told {
    decisions: usize,
    waits: usize,
    bases: usize,
    bandwidths: usize,
}

impl Recorder for Told {
    fn decided(&mut self, record: DecisionRecord<'_>) {
        let decision = record.decision;
        self.decisions += 1;
        self.waits += decision.waits.len();
        self.bases +=
            usize::from(decision.basis.target.is_some() || decision.basis.predicted.is_some());
        let is_bandwidth = |wait: &&Wait| {
            matches!(
                wait.reason,
                WaitReason::Fitness { .. } | WaitReason::Heavy { .. }
            )
        };
        self.bandwidths += decision.waits.iter().filter(is_bandwidth).count();
    }
}
