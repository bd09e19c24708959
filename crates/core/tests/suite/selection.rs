//! Selection and allocation, compared with their plainest definitions.

use crate::memory;
use crate::random::*;
use cosched_core::*;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use std::cmp::Reverse;
use std::sync::Arc;

/// The target and each task's bandwidth per CPU. A gang counts once for each of its CPUs, and an unmeasured task counts
/// as the mean.
struct Oracle<'a> {
    snap: &'a Snapshot,
    remain: i128,
    cpus: u32,
    mean: u64,
    chosen: Vec<TaskId>,
}

impl<'a> Oracle<'a> {
    /// With the online target (Perf&Fair, Algorithm 1, line 11).
    fn online(snap: &'a Snapshot) -> Oracle<'a> {
        let measured = || {
            snap.tasks
                .iter()
                .filter_map(|t| Some((t.estimates.mm_reads_mean.value()?.0, t.cpus)))
        };
        let sum: u64 = measured().map(|(rate, _)| rate).sum();
        let over: u64 = measured().map(|(_, cpus)| u64::from(cpus)).sum();
        let cpus = snap.machine.cpus.len() as u32;
        let over_all = |sum: u64| sum.checked_div(over).unwrap_or(0);
        Oracle {
            snap,
            remain: i128::from(over_all(sum * u64::from(cpus))),
            cpus,
            mean: over_all(sum),
            chosen: Vec::new(),
        }
    }

    /// With the target of the whole workload (the poster's `AVG WK TRMM`).
    fn ideal(snap: &'a Snapshot) -> Oracle<'a> {
        let mean = snap.ideal_bandwidth.value().unwrap().0;
        let cpus = snap.machine.cpus.len() as u32;
        Oracle {
            remain: i128::from(mean) * i128::from(cpus),
            mean,
            ..Oracle::online(snap)
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
        let tasks = self.snap.tasks.iter().map(Box::as_ref);
        let mut queue: Vec<&TaskView> = tasks.filter(ready).collect();
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

    fn sorted(self) -> Vec<TaskId> {
        sorted(self.chosen.into_iter())
    }
}

/// Progress by the estimates.
fn estimated(task: &TaskView) -> f64 {
    task.estimates.progress.value().unwrap()
}

/// Progress by the trace of the solo run, if there is one.
fn traced(task: &TaskView) -> f64 {
    let traced = task.estimates.trace_progress.value();
    traced.unwrap_or_else(|| estimated(task))
}

/// Perf&Fair's selection by progress (Algorithm 1, lines 11-19), with our weights and lead.
fn select_behind(mut oracle: Oracle<'_>, lead: f64, progress: fn(&TaskView) -> f64) -> Vec<TaskId> {
    let snap = oracle.snap;
    let weights = snap.tasks.iter().map(|task| task.weight);
    let least = weights.fold(f64::INFINITY, f64::min);
    let differ = snap.tasks.iter().any(|task| task.weight > least);
    let progress_after = |task: &TaskView, quanta: f64| {
        let weight = task.weight / least;
        progress(task) / weight + quanta / weight
    };
    let all = || snap.tasks.iter().map(|task| progress_after(task, 0.0));
    let max = all().fold(0.0, f64::max);
    let enough = all().fold(f64::INFINITY, f64::min) * (1.0 + lead / 100.0);
    let entitled = if differ { entitled(snap) } else { Vec::new() };
    let first: [&dyn Fn(&TaskView) -> bool; 3] = [
        &|task| task.overdue,
        &|task| entitled.contains(&task.id),
        &|task| task.estimates.executed == 0 || differ && progress_after(task, 5.0) < max,
    ];
    for is_first in first {
        for task in oracle.queue() {
            if is_first(task) {
                oracle.take(task);
            }
        }
    }
    oracle.fill(|task| progress_after(task, 1.0) < max || progress_after(task, 0.0) < enough);
    oracle.fill(|_| true);
    oracle.sorted()
}

/// The selection of an estimation quantum (Perf&Fair, Algorithm 1, lines 2-9) on cores that are all alike.
struct EstimationQuantum<'a> {
    /// The tasks that reserve whole cores, the first first.
    alone: Vec<&'a TaskView>,
    /// The light tasks on the other CPUs.
    beside: Vec<&'a TaskView>,
}

impl<'a> EstimationQuantum<'a> {
    /// `None` if no estimate has expired, no task has to wait, or some come first (ours).
    fn of(snap: &'a Snapshot) -> Option<EstimationQuantum<'a>> {
        let queue = Oracle::online(snap).queue();
        let cpus = snap.machine.cpus.len() as u32;
        let all_fit = queue.iter().map(|task| task.cpus).sum::<u32>() <= cpus;
        if all_fit || queue.iter().any(|task| comes_first(task)) {
            return None;
        }
        let threads = snap.machine.cores[0].len() as u32;
        let reserved = |task: &TaskView| task.cpus.div_ceil(threads) * threads;
        // The oldest estimate first; of equally old ones, the task that has run longest.
        let mut oldest = queue.clone();
        oldest.sort_by_key(|task| Reverse((age(task), task.estimates.ran)));
        let is_first = |task: &&TaskView| age(task) >= Some(40) && reserved(task) <= cpus;
        let first = oldest.into_iter().find(is_first)?;
        let mut left = cpus - reserved(first);
        let mut alone = vec![first];
        let mut more = queue.clone();
        more.retain(|task| is_light(first) && is_light(task) && age(task) >= Some(20));
        more.sort_by_key(|task| Reverse(age(task)));
        for task in more {
            if task.id != first.id && reserved(task) <= left {
                left -= reserved(task);
                alone.push(task);
            }
        }
        let least_progress = |task: &&TaskView| estimated(task) / task.weight;
        let mut light = queue;
        light.retain(|task| is_light(task) && alone.iter().all(|other| other.id != task.id));
        light.sort_by(|a, b| least_progress(a).total_cmp(&least_progress(b)));
        let mut beside = Vec::new();
        for task in light {
            if task.cpus <= left {
                left -= task.cpus;
                beside.push(task);
            }
        }
        Some(EstimationQuantum { alone, beside })
    }
}

/// Whether a task is overdue or never ran.
fn comes_first(task: &TaskView) -> bool {
    task.overdue || task.estimates.executed == 0
}

/// Quanta since the task's estimate, and infinitely many before the first; `None` if it can't be estimated.
fn age(task: &TaskView) -> Option<u32> {
    match task.estimates.solo_ipc {
        Reading::Value(_) => Some(task.estimates.solo_age),
        Reading::Absent(Absence::NoSoloEstimate) => Some(u32::MAX),
        Reading::Absent(_) => None,
    }
}

/// Whether the counts that there are, are those of a light task.
fn is_light(task: &TaskView) -> bool {
    let counted = [(task.estimates.llc, 19.0), (task.estimates.mm_reads, 3.5)];
    let mut counted = counted
        .iter()
        .filter_map(|(rate, most)| Some((rate.value()?, most)));
    let is_low = |(rate, most): (Rate, &f64)| rate.per_us() <= *most;
    counted.clone().next().is_some() && counted.all(is_low)
}

/// The tasks that a decision places for a purpose.
fn placed_for(decision: &Decision, wanted: Purpose) -> Vec<TaskId> {
    let places = decision
        .changes
        .iter()
        .filter(|change| matches!(change, Change::Place { purpose, .. } if *purpose == wanted));
    sorted(places.map(Change::task))
}

fn sorted(tasks: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = tasks.collect();
    tasks.sort_unstable();
    tasks
}

fn placed(decision: &Decision) -> Vec<TaskId> {
    let places = decision
        .changes
        .iter()
        .filter(|change| matches!(change, Change::Place { .. }));
    sorted(places.map(Change::task))
}

/// The tasks that should always run: for each, the CPUs left by the others of them, divided by weight, would give it more
/// than it can use.
fn entitled(snap: &Snapshot) -> Vec<TaskId> {
    let mut entitled: Vec<TaskId> = Vec::new();
    loop {
        let taken = snap.tasks.iter().filter(|task| entitled.contains(&task.id));
        let left = snap.machine.cpus.len() as u32 - taken.map(|task| task.cpus).sum::<u32>();
        let awake = snap.tasks.iter().filter(|task| !task.asleep);
        let rest: Vec<&Box<TaskView>> = awake.filter(|task| !entitled.contains(&task.id)).collect();
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
    (machine(), jobs(0..40, false))
        .prop_map(|(machine, jobs)| end_of_quantum(Arc::new(machine), &jobs))
}

fn end_of_quantum(machine: Arc<Machine>, jobs: &[Job]) -> Snapshot {
    let now = Nanos::from_ms(100_000);
    let mut snap = snapshot(&machine, jobs, &[Trigger::QuantumEnd], now);
    for task in &mut snap.tasks {
        task.allowed = None;
        task.control = Control::FULL;
        // Critical tasks come first, which the definitions do not cover.
        task.expected = None;
        task.asleep &= task.running.is_none();
    }
    snap
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn bandwidth_takes_what_the_definition_takes(mut snap in ends_of_quanta(), ideal in 0u64..12_000) {
        snap.ideal_bandwidth = Reading::Value(Rate(ideal));
        for (target, mut oracle) in [("online", Oracle::online(&snap)), ("ideal", Oracle::ideal(&snap))] {
            for task in oracle.queue() {
                if oracle.chosen.is_empty() || task.overdue {
                    oracle.take(task);
                }
            }
            oracle.fill(|_| true);
            let mut bandwidth = policy(find_policy("bandwidth").unwrap(), &[("target", target)]);
            let decision = bandwidth.decide(&snap, &mut Rng::new(1));
            prop_assert_eq!(placed(&decision), oracle.sorted());
        }
    }

    #[test]
    fn perf_fair_takes_what_the_definition_takes(snap in ends_of_quanta(), lead in 0u8..3) {
        let lead = 30.0 * f64::from(lead);
        let expected = select_behind(Oracle::online(&snap), lead, estimated);
        let settings = [("estimation_share_max", "0"), ("lead_max_percent", &lead.to_string())];
        let decision = policy(find_policy("perf-fair").unwrap(), &settings).decide(&snap, &mut Rng::new(1));
        prop_assert_eq!(decision.basis.measures, None);
        prop_assert_eq!(placed(&decision), expected);
    }

    #[test]
    fn the_oracle_takes_what_the_definition_takes(mut snap in ends_of_quanta(), ideal in 0u64..12_000) {
        snap.ideal_bandwidth = Reading::Value(Rate(ideal));
        let expected = select_behind(Oracle::ideal(&snap), 0.0, traced);
        let decision = policy(find_policy("oracle").unwrap(), &[]).decide(&snap, &mut Rng::new(1));
        prop_assert_eq!(placed(&decision), expected);
    }

    #[test]
    fn fair_takes_what_the_definition_takes(snap in ends_of_quanta()) {
        let weights = snap.tasks.iter().map(|task| task.weight);
        let least = weights.fold(f64::INFINITY, f64::min);
        let differ = snap.tasks.iter().any(|task| task.weight > least);
        let entitled = if differ { entitled(&snap) } else { Vec::new() };
        // Overdue tasks and those that should always run come first (ours).
        let rank = |task: &TaskView| match (task.overdue, entitled.contains(&task.id)) {
            (true, _) => (0, 0.0),
            (false, true) => (1, 0.0),
            (false, false) => (2, estimated(task) / (task.weight / least)),
        };
        let mut oracle = Oracle::online(&snap);
        let mut queue = oracle.queue();
        queue.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap());
        queue.into_iter().for_each(|task| oracle.take(task));
        let settings = [("estimation_share_max", "0")];
        let decision = policy(find_policy("fair").unwrap(), &settings).decide(&snap, &mut Rng::new(1));
        prop_assert_eq!(placed(&decision), oracle.sorted());
    }

    #[test]
    fn who_would_end_last_runs_unless_as_in_the_paper(jobs in jobs(12..30, true)) {
        let mut snap = end_of_quantum(Arc::new(Machine::uniform("alike", 4, 2)), &jobs);
        for task in &mut snap.tasks {
            (task.overdue, task.asleep, task.weight) = (false, false, 1.0);
            task.estimates.executed = 1;
            task.expected = Some(Expected::of(task.estimates.ran + Nanos::from_s(1.0), ExpectedFrom::Same));
        }
        // By progress it would wait.
        let last = &mut snap.tasks[0];
        last.expected = Some(Expected::of(Nanos::from_s(3_600.0), ExpectedFrom::Same));
        last.estimates.progress = Reading::Value(100.0);
        last.estimates.trace_progress = Reading::Value(100.0);
        let runs = |name: &str, settings: &[(&str, &str)]| {
            let decision = policy(find_policy(name).unwrap(), settings).decide(&snap, &mut Rng::new(1));
            placed(&decision).contains(&TaskId(0))
        };
        prop_assert!(runs("bandwidth", &[]) && runs("oracle", &[]));
        for name in ["fair", "perf-fair"] {
            prop_assert!(runs(name, &[("estimation_share_max", "0")]), "{}", name);
            prop_assert!(!runs(name, &[("as", "paper"), ("estimation_share_max", "0")]), "{}", name);
        }
    }

    #[test]
    fn perf_fair_estimates_whom_the_definition_estimates(
        cores in 1u32..8, threads in 1u32..=3, jobs in jobs(8..30, false),
        all_known in any::<bool>(), settled in 0u8..4,
    ) {
        let machine = Arc::new(Machine::uniform("alike", cores, threads));
        let mut snap = end_of_quantum(machine, &jobs);
        if settled > 0 {
            snap.tasks.retain(|task| !comes_first(task));
        }
        if all_known {
            // Each has an estimate, which expired just now at the most.
            snap.tasks.retain(|task| age(task) != Some(u32::MAX));
            snap.tasks.iter_mut().for_each(|task| task.estimates.solo_age = task.estimates.solo_age % 24 + 18);
        }
        let decision = policy(find_policy("perf-fair").unwrap(), &[("as", "paper")]).decide(&snap, &mut Rng::new(1));
        // No other task is on the cores of those that are measured.
        prop_assert_eq!(check(&snap, &decision), Ok(()));
        let expected = EstimationQuantum::of(&snap);
        prop_assert_eq!(decision.basis.measures, expected.as_ref().map(|quantum| quantum.alone[0].id));
        if let Some(EstimationQuantum { alone, beside }) = expected {
            let ids = |tasks: Vec<&TaskView>| sorted(tasks.into_iter().map(|task| task.id));
            prop_assert_eq!(placed_for(&decision, Purpose::MeasureAlone), ids(alone));
            prop_assert_eq!(placed_for(&decision, Purpose::LowContention), ids(beside));
            prop_assert_eq!(placed_for(&decision, Purpose::Run), Vec::new());
        }
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
        let mut order: Vec<u64> = snap.tasks.iter().map(|task| l1(task)).collect();
        order.sort_unstable();
        let mut expected: Vec<(u64, u64)> =
            order.iter().copied().zip(order.iter().rev().copied()).take(cores as usize).collect();
        expected.sort_unstable();
        for entry in sharing().filter(|entry| !["efs", "even"].contains(&entry.name)) {
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
        // `even` lets jobs take turns at sharing a core.
        for entry in sharing().filter(|entry| threads == 1 || entry.name != "even") {
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
                solo_reads: None,
                memory: None,
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
                home_cpu: None,
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
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
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
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
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
}

/// Over both sockets together the four tasks with mean bandwidth would be chosen, and two of them would run abroad.
#[test]
fn each_socket_gets_tasks_whose_memory_is_there() {
    let mut machine = Machine::uniform("two sockets", 4, 1);
    let halves: Vec<CpuSet> = ["0-1", "2-3"].map(|cpus| cpus.parse().unwrap()).to_vec();
    (machine.llcs, machine.memory_domains) = (halves.clone(), halves);
    for cpu in &mut machine.cpus {
        cpu.llc = cpu.id.0 as usize / 2;
        cpu.memory_domain = cpu.llc;
    }
    machine.validate().unwrap();
    let task = |(id, (home, reads)): (u32, (u32, u64))| {
        let spec = TaskSpec::new(id, &format!("t{id}"));
        let mut task = TaskView::arriving(&spec, Nanos::ZERO, Estimates::default());
        task.home_cpu = Some(CpuId(2 * home));
        task.last_cpus = CpuId(2 * home).into();
        task.estimates.executed = 1;
        task.estimates.mm_reads = Reading::Value(Rate(reads));
        task.estimates.mm_reads_mean = Reading::Value(Rate(reads));
        Box::new(task)
    };
    let reads = [900, 900, 100, 100].map(|reads| (0, reads));
    let tasks = (0..).zip(reads.into_iter().chain([(1, 500); 4]));
    let snap = Snapshot {
        tasks: tasks.map(task).collect(),
        ..snapshot(&Arc::new(machine), &[], &[Trigger::QuantumEnd], Nanos::ZERO)
    };
    for name in ["bandwidth", "perf-fair"] {
        let decision = policy(find_policy(name).unwrap(), &[]).decide(&snap, &mut Rng::new(1));
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for (task, place) in snap.tasks.iter().zip(after(&snap, &decision)) {
            let cpu = place.map(|place| place.cpus().first().unwrap().0 / 2);
            runs.extend(cpu.map(|socket| (task.estimates.mm_reads.value().unwrap().0, socket)));
        }
        runs.sort_unstable();
        assert_eq!(runs, [(100, 0), (500, 1), (500, 1), (900, 0)], "{name}");
    }
}
