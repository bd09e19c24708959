//! The cost of a decision: policies at the end of a quantum and when a CPU is free, the check, and a whole turn of the
//! loop.

use cosched_core::*;
use divan::Bencher;
use std::hint::black_box;
use std::sync::Arc;

fn main() {
    divan::main();
}

/// Number of tasks, and of CPUs in cores of two.
const SIZES: [(u32, u32); 4] = [(24, 12), (1_024, 128), (2_048, 256), (4_096, 512)];

/// Whether tasks differ in their bandwidth.
#[derive(Clone, Copy)]
enum Bandwidth {
    Distinct,
    Equal,
}

/// The snapshot after some quanta: each CPU has a task, at least as many tasks wait, and everything is measured.
fn snapshot(tasks: u32, cpus: u32, bandwidth: Bandwidth) -> Snapshot {
    let machine = Arc::new(Machine::uniform("bench", cpus / 2, 2));
    let now = Nanos::from_ms(60_000);
    let mut rng = Rng::new(11);
    let mut tasks: Vec<TaskView> = (0..tasks)
        .map(|id| {
            let mut random = |most: u64| match bandwidth {
                Bandwidth::Distinct => rng.below(most),
                Bandwidth::Equal => most / 2,
            };
            let value = |rate| Reading::Value(Rate(rate));
            let reads = random(30_000);
            TaskView {
                id: TaskId(id),
                name: format!("task-{id}").into(),
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
                running: None,
                asleep: false,
                waiting_since: now - Nanos(200_000_000 * random(8) + random(100_000)),
                overdue: false,
                last_cpus: CpuSet::new(),
                home_cpu: None,
                estimates: Estimates {
                    mm_reads: value(reads),
                    mm_reads_mean: value(reads / 2 + random(15_000)),
                    llc: value(reads * 2),
                    l1: value(random(900_000)),
                    ipc: Reading::Value(0.9),
                    cpu_instructions: Reading::Value(400_000 + random(2_000_000)),
                    cpu_mm_reads: value(reads),
                    solo_ipc: Reading::Value(1.1),
                    solo_age: random(39) as u32,
                    progress: Reading::Value(100.0 + random(8_000) as f64 / 1_000.0),
                    progress_basis: ProgressBasis::Ipc,
                    trace_ipc: Reading::Value(1.1),
                    trace_progress: Reading::Value(100.0 + random(8_000) as f64 / 1_000.0),
                    learnt: Reading::Value(Learnt {
                        asks: model::contention::PhaseDemand {
                            own: 0.3 + random(400) as f64 / 1_000.0,
                            penalty: 20.0 + random(80) as f64,
                            l1: 0.2 + random(300) as f64 / 1_000.0,
                            llc: reads as f64 / 1_000_000.0 * 2.0,
                            reads: reads as f64 / 1_000_000.0,
                            steepness: random(60) as f64 / 100.0,
                            ghz: 2.4,
                            ..Default::default()
                        },
                        solo_cpi: 1.0,
                        error: 0.005,
                        measured: Measured::Phase,
                        progress: 100.0 + random(4_000) as f64 / 1_000.0,
                        phase: 0,
                        slower: Vec::new(),
                        last: None,
                    }),
                    executed: 150,
                    ran: Nanos::from_ms(30_000),
                    ..Estimates::default()
                },
            }
        })
        .collect();
    for task in &mut tasks {
        if let Reading::Value(learnt) = &mut task.estimates.learnt {
            learnt.solo_cpi = learnt.asks.solo_cpi(&Default::default());
        }
    }
    // Every CPU has a task, in a different order than the task numbers.
    let count = tasks.len();
    for (place, cpu) in machine.cpus.iter().enumerate() {
        let task = &mut tasks[place * 7 % count];
        let cpus: CpuSet = [cpu.id].into_iter().collect();
        task.last_cpus = cpus.clone();
        task.waiting_since = now;
        let placement = Placement::Exclusive {
            cpus,
            whole_core: false,
        };
        task.running = Some(Running {
            placement,
            purpose: Purpose::Run,
            since: now,
            lease_end: None,
        });
    }
    // The waiting tasks have last CPUs too.
    for (n, task) in tasks
        .iter_mut()
        .filter(|task| task.running.is_none())
        .enumerate()
    {
        task.last_cpus = [machine.cpus[n * 5 % machine.cpus.len()].id]
            .into_iter()
            .collect();
    }
    let memory = model::contention::Latency {
        most: Some(0.005 * f64::from(cpus)),
        rise: 0.2,
    };
    let contention = model::contention::Contention {
        memory,
        ..Default::default()
    };
    Snapshot {
        machine,
        now,
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        ideal_bandwidth: Reading::Value(Rate(15_000)),
        admits: None,
        contention,
        tasks: tasks.into_iter().map(Box::new).collect(),
    }
}

/// The same with two core types, a quarter of the cores big, and every task on one side.
fn two_types(mut snap: Snapshot) -> Snapshot {
    let mut machine = (*snap.machine).clone();
    let big = machine.cores.len() / 4;
    machine
        .cpus
        .iter_mut()
        .for_each(|cpu| cpu.core_type = usize::from(cpu.core >= big));
    machine.core_types = ["big", "small"]
        .map(|name| CoreType {
            name: name.to_owned(),
            capacity: None,
            max_khz: None,
        })
        .to_vec();
    let side = |kind| {
        machine
            .cpus
            .iter()
            .filter(|cpu| cpu.core_type == kind)
            .map(|cpu| cpu.id)
            .collect::<CpuSet>()
    };
    let sides = [side(0), side(1)];
    for (n, task) in snap.tasks.iter_mut().enumerate() {
        let mask = sides[usize::from(n % 4 != 0)].clone();
        task.last_cpus = mask.clone();
        task.waiting_since = snap.now;
        let placement = Placement::Shared { mask };
        task.running = Some(Running {
            placement,
            purpose: Purpose::Run,
            since: snap.now,
            lease_end: None,
        });
    }
    snap.machine = Arc::new(machine);
    snap
}

/// The same just after a task's end.
fn one_free(mut snap: Snapshot) -> Snapshot {
    let ended = snap
        .tasks
        .iter()
        .position(|task| task.running.is_some())
        .unwrap_or_default();
    snap.triggers = vec![Trigger::Ended(snap.tasks.remove(ended).id)];
    snap
}

fn build(name: &str) -> Box<dyn Policy> {
    let entry = find_policy(name).expect("a policy of the table");
    (entry.build)(&Params::resolve(entry.name, entry.params, &[]).expect("its defaults"))
}

fn decide(bencher: Bencher<'_, '_>, name: &str, snap: Snapshot) {
    let mut policy = build(name);
    let mut rng = Rng::new(1);
    bencher.bench_local(|| policy.decide(black_box(&snap), &mut rng));
}

#[divan::bench(args = ["bias", "big-fair", "lucky"], consts = [0, 1, 2, 3])]
fn core_type_round<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    decide(
        bencher,
        policy,
        two_types(snapshot(tasks, cpus, Bandwidth::Distinct)),
    );
}

const POLICY_NAMES: [&str; 9] = [
    "linux",
    "fifo",
    "round-robin",
    "bandwidth",
    "fair",
    "perf-fair",
    "oracle",
    "efs",
    "even",
];

#[divan::bench(args = POLICY_NAMES, consts = [0, 1, 2, 3])]
fn full_round<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    decide(bencher, policy, snapshot(tasks, cpus, Bandwidth::Distinct));
}

#[divan::bench(args = POLICY_NAMES, consts = [0, 3])]
fn full_round_equal<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    decide(bencher, policy, snapshot(tasks, cpus, Bandwidth::Equal));
}

#[divan::bench(args = POLICY_NAMES, consts = [0, 3])]
fn fill_round<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    decide(
        bencher,
        policy,
        one_free(snapshot(tasks, cpus, Bandwidth::Distinct)),
    );
}

/// The bus is hardly used, so `efs` evaluates a task for each CPU.
#[divan::bench(args = ["efs"], consts = [0, 3])]
fn full_round_calm<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    let mut snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    for task in &mut snap.tasks {
        task.estimates.mm_reads = Reading::Value(Rate(u64::from(task.id.0) % 97));
    }
    decide(bencher, policy, snap);
}

/// Every task wants two CPUs at once.
#[divan::bench(args = POLICY_NAMES, consts = [0, 3])]
fn full_round_gangs<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    let mut snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    for task in &mut snap.tasks {
        task.cpus = 2;
        task.running = None;
    }
    decide(bencher, policy, snap);
}

/// Every task may use one half of the CPUs.
#[divan::bench(args = POLICY_NAMES, consts = [0, 3])]
fn full_round_masks<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    let mut snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    for task in &mut snap.tasks {
        let odd = task.id.0 % 2;
        task.allowed = Some((0..cpus).filter(|cpu| cpu % 2 == odd).map(CpuId).collect());
        task.running = None;
    }
    decide(bencher, policy, snap);
}

/// The quantum in which one task is measured alone.
#[divan::bench(args = ["fair", "perf-fair"], consts = [0, 3])]
fn estimation_round<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (tasks, cpus) = SIZES[SIZE];
    let mut snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    for (n, task) in snap.tasks.iter_mut().enumerate() {
        task.estimates.solo_age = if n % 3 == 0 { 45 } else { 25 };
        if n % 2 == 0 {
            task.estimates.mm_reads = Reading::Value(Rate(2_000));
            task.estimates.llc = Reading::Value(Rate(9_000));
        }
    }
    let fresh = build(policy).save();
    let (mut policy, mut rng) = (build(policy), Rng::new(1));
    bencher.bench_local(|| {
        // Resets the time spent on estimation, so that each round is an estimation round.
        policy.load(&fresh).expect("its own state");
        policy.decide(black_box(&snap), &mut rng)
    });
}

#[divan::bench(args = [0, 1, 2, 3])]
fn check_decision(bencher: Bencher<'_, '_>, size: usize) {
    let (tasks, cpus) = SIZES[size];
    let snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    let decision = build("perf-fair").decide(&snap, &mut Rng::new(1));
    bencher.bench_local(|| check(black_box(&snap), black_box(&decision)));
}

/// What the loop does for a policy in another process, beside the pipe: it writes the question, and reads the answer.
#[divan::bench(args = [0, 1, 2, 3])]
fn question_and_answer_as_text(bencher: Bencher<'_, '_>, size: usize) {
    let (tasks, cpus) = SIZES[size];
    let snap = snapshot(tasks, cpus, Bandwidth::Distinct);
    let decision = build("perf-fair").decide(&snap, &mut Rng::new(1));
    let answer = serde_json::to_vec(&decision).expect("JSON");
    bencher.bench_local(|| {
        let question = serde_json::to_vec(black_box(&snap)).expect("JSON");
        let answer: Decision = serde_json::from_slice(black_box(&answer)).expect("a decision");
        (question, answer)
    });
}

/// A backend with no latency, so that only the loop's own work is measured.
struct Instant {
    machine: Arc<Machine>,
    now: Nanos,
    turns: u32,
    /// Whether events are counted, so that the learner has input.
    counts: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("enough turns were measured")]
struct Enough;

impl Backend for Instant {
    type Error = Enough;
    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn now(&mut self) -> Nanos {
        self.now
    }
    fn stopwatch(&self) -> Option<Nanos> {
        None
    }
    fn wait(&mut self, until: Option<Nanos>, _: &mut Vec<Event>) -> Result<(), Enough> {
        self.now = until.unwrap_or(self.now);
        self.turns = self.turns.checked_sub(1).ok_or(Enough)?;
        Ok(())
    }
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        // Each task seems to have run all the time, at its own rate.
        let us = self.now.0 / 1_000;
        out.extend(tasks.iter().map(|&task| {
            let own = u64::from(task.0) * 7 % 30;
            let counts = Counts::from_fn(|counter| match counter {
                _ if !self.counts => Reading::Absent(Absence::NoCounters),
                Counter::Cycles => Reading::Value(us * 1_000),
                Counter::Instructions => Reading::Value(us * (500 + own)),
                Counter::L1Accesses => Reading::Value(us * own * 20),
                Counter::LlcAccesses => Reading::Value(us * own * 2),
                Counter::MmReads => Reading::Value(us * own),
                _ => Reading::Absent(Absence::NoSuchEvent),
            });
            Usage {
                cpu_time: Reading::Value(self.now),
                counts,
                ..Usage::zero(task)
            }
        }));
    }
    fn device_time(&mut self, _: &mut [Usage]) {}

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, _: TaskId) -> Reading<Wanting> {
        Reading::Absent(Absence::NotOffered)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Enough> {
        black_box(changes);
        Ok(())
    }
    fn began(&self, _: TaskId) -> Began {
        Began::WithDecision
    }
    fn planner(&mut self) -> Option<&mut dyn Planner<Enough>> {
        None
    }

    fn kill(&mut self, _: TaskId, _: Kill) {}
    fn ending(&mut self) {}
    fn forget(&mut self, _: TaskId) {}
    fn restart(&mut self, _: TaskId) -> bool {
        false
    }
    fn resources(&mut self, _: TaskId) -> Resources {
        Resources::absent(Absence::NotOffered)
    }
    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }
    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        out.extend(
            self.machine
                .memory_domains
                .iter()
                .map(|_| Traffic::absent(Absence::NotOffered)),
        );
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NoEnergyMeter)
    }
}

/// Number of turns measured together, so that the start hardly counts.
const TURNS: u32 = 200;

#[divan::bench(args = ["round-robin", "bandwidth", "perf-fair", "efs", "even"], consts = [0, 3], sample_count = 20, sample_size = 1)]
fn two_hundred_turns<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    turns::<SIZE>(bencher, policy, true);
}

/// The difference from the turns with counters is the cost of estimating and learning.
#[divan::bench(args = ["round-robin"], consts = [0, 3], sample_count = 20, sample_size = 1)]
fn two_hundred_turns_without_counters<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    turns::<SIZE>(bencher, policy, false);
}

fn turns<const SIZE: usize>(bencher: Bencher<'_, '_>, policy: &str, counts: bool) {
    let (tasks, cpus) = SIZES[SIZE];
    let specs: Vec<TaskSpec> = (0..tasks)
        .map(|id| TaskSpec::new(id, &format!("task-{id}")))
        .collect();
    let machine = Arc::new(Machine::uniform("bench", cpus / 2, 2));
    let world = || {
        (
            specs.clone(),
            Instant {
                machine: machine.clone(),
                now: Nanos::ZERO,
                turns: TURNS,
                counts,
            },
            build(policy),
        )
    };
    bencher
        .with_inputs(world)
        .bench_local_values(|(specs, mut world, mut policy)| {
            run(
                &mut world,
                &mut *policy,
                &mut NullRecorder,
                specs,
                &RunConfig::default(),
            )
            .err()
        });
}
