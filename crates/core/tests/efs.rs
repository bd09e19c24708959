//! `efs` in the world in memory and at single moments: who runs, who waits and why, and for how long at most.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod memory;

use cosched_core::model::admission_table::{AdmissionTable, DemandClass};
use cosched_core::model::power::PowerModel;
use cosched_core::model::starvation::Starvation;
use cosched_core::*;
use memory::{Memory, Work, run_specs};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};

const QUANTUM: Nanos = Nanos::from_ms(200);
/// 4 ms of the kernel's 18 ms.
const LEAST_SLICE: Nanos = Nanos(44_444_444);
/// What the bus of the world serves per microsecond, and `efs` assumes.
const BUS: u64 = 150;

/// What ran after each decision, and what was said of the others.
#[derive(Default)]
struct Log {
    turns: Vec<TurnLog>,
    /// Longest wait of each task that had to wait, also for its first time.
    longest: BTreeMap<TaskId, Nanos>,
}

struct TurnLog {
    at: Nanos,
    until: Nanos,
    runs: BTreeMap<TaskId, CpuSet>,
    waits: Vec<Wait>,
    /// Tasks that were given a lease: the starved.
    starved: Vec<(TaskId, Nanos)>,
    admission: Option<Admission>,
}

impl Recorder for Log {
    fn decided(&mut self, record: DecisionRecord<'_>) {
        assert!(!record.stood_in);
        let (snap, decision) = (record.snapshot, record.decision);
        let mut runs: BTreeMap<TaskId, CpuSet> = snap
            .tasks
            .iter()
            .filter_map(|task| Some((task.id, task.running.as_ref()?.placement.cpus().clone())))
            .collect();
        let mut starved = Vec::new();
        for change in &decision.changes {
            match change {
                Change::Place {
                    task,
                    placement,
                    lease_end,
                    ..
                } => {
                    runs.insert(*task, placement.cpus().clone());
                    starved.extend(lease_end.map(|end| (*task, end)));
                }
                Change::Stop { task } => {
                    runs.remove(task);
                }
            }
        }
        for task in snap
            .tasks
            .iter()
            .filter(|task| task.running.is_none() && task.waiting_since < snap.now)
        {
            let longest = self.longest.entry(task.id).or_default();
            *longest = (*longest).max(snap.now - task.waiting_since);
        }
        let until = decision.next_wake.unwrap();
        let waits = decision.waits.clone();
        self.turns.push(TurnLog {
            at: snap.now,
            until,
            runs,
            waits,
            starved,
            admission: decision.admission.clone(),
        });
    }
}

impl Log {
    /// Numbers of the tasks that ran after each decision.
    fn sets(&self) -> Vec<Vec<u32>> {
        self.turns
            .iter()
            .map(|turn| turn.runs.keys().map(|id| id.0).collect())
            .collect()
    }
}

fn run_log(
    machine: Machine,
    work: Vec<Work>,
    change: impl Fn(&mut Vec<TaskSpec>),
    settings: &[(&str, &str)],
    config: &RunConfig,
    stop_s: Option<u64>,
) -> (Log, RunResult) {
    let mut world = Memory::new(machine, work);
    world.bus_per_us = Some(BUS);
    world.interrupts = stop_s
        .map(|s| Nanos::from_ms(s * 1_000))
        .into_iter()
        .collect();
    let mut specs = world.specs();
    change(&mut specs);
    let mut log = Log::default();
    let result = run_specs(&mut world, specs, "efs", settings, config, &mut log);
    assert_eq!(result.policy_faults, 0);
    (log, result)
}

fn simple(machine: Machine, work: Vec<Work>, settings: &[(&str, &str)]) -> (Log, RunResult) {
    run_log(machine, work, |_| {}, settings, &RunConfig::default(), None)
}

fn four() -> Machine {
    Machine::uniform("four", 4, 1)
}

fn policy(settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let entry = find_policy("efs").unwrap();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    (entry.build)(&Params::resolve("efs", entry.params, &settings).unwrap())
}

fn hogs(n: usize, ms: u64) -> Vec<Work> {
    (0..n).map(|_| Work::ms(ms).reads(BUS)).collect()
}

#[test]
fn four_saturating_tasks_run_one_at_a_time_and_take_turns() {
    // EFS, Figure 7.
    let (log, result) = simple(four(), hogs(4, 4_000), &[]);
    // At first nothing is known: a quarter of the bus each.
    assert_eq!(log.turns[0].runs.len(), 4);
    let sets = log.sets();
    let alone = sets.iter().filter(|set| set.len() == 1).count();
    assert_eq!(alone, sets.len() - 1, "{sets:?}");
    // Whoever runs goes on until another has not run for t_global (EFS, Eq. 23): five periods.
    let starved: Vec<TaskId> = log
        .turns
        .iter()
        .flat_map(|turn| turn.starved.iter().map(|(task, _)| *task))
        .collect();
    assert!(
        (0..4).all(|id| starved.contains(&TaskId(id))),
        "{starved:?}"
    );
    let t_global = Nanos(5 * QUANTUM.0);
    let three_others = Nanos(3 * QUANTUM.0);
    let most = log.longest.values().max().unwrap();
    assert!(*most <= t_global + three_others + QUANTUM, "{most:?}");
    // Those that wait are told why, and that more energy would be used.
    for wait in log.turns[1..].iter().flat_map(|turn| &turn.waits) {
        let WaitReason::BusFull {
            demand_milli,
            threshold_milli,
            energy_with_mj,
            energy_without_mj,
            ..
        } = wait.reason
        else {
            panic!("{wait:?}")
        };
        assert!(demand_milli > 950 && threshold_milli < demand_milli);
        assert!(
            energy_with_mj > energy_without_mj,
            "{energy_with_mj} {energy_without_mj}"
        );
    }
    // One after the other they take as long as together.
    assert!(
        result.turnaround <= Nanos::from_ms(16_200),
        "{:?}",
        result.turnaround
    );
}

#[test]
fn the_bounds_of_starvation_are_the_users() {
    let longest = |settings: &[(&str, &str)]| {
        let (log, _) = simple(four(), hogs(4, 4_000), settings);
        *log.longest.values().max().unwrap()
    };
    let usual = longest(&[]);
    assert!(longest(&[("c_global", "1"), ("c_local", "1")]) < usual);
    assert!(longest(&[("c_global", "15")]) > usual);
}

/// Energy of a run in joules, by the power of the cores that were busy on the paper's machine.
fn energy_j(policy: &str, work: Vec<Work>) -> f64 {
    let mut world = Memory::new(four(), work);
    world.bus_per_us = Some(BUS);
    let (mut log, specs) = (Log::default(), world.specs());
    let result = run_specs(
        &mut world,
        specs,
        policy,
        &[],
        &RunConfig::default(),
        &mut log,
    );
    let power = PowerModel::new([26.6, 22.6, 12.0, 12.3]).unwrap();
    let ends = log
        .turns
        .iter()
        .skip(1)
        .map(|turn| turn.at)
        .chain([result.turnaround]);
    log.turns
        .iter()
        .zip(ends)
        .map(|(turn, end)| power.watts(turn.runs.len()) * (end - turn.at).as_s())
        .sum()
}

#[test]
fn energy_is_saved_where_the_bus_is_full_and_nowhere_else() {
    // EFS, Table 1: four copies that only miss. There 47.6 % were saved, also by what this world does not have.
    let [turns, together] = ["efs", "round-robin"].map(|policy| energy_j(policy, hogs(4, 4_000)));
    assert!(turns < 0.65 * together, "{turns} J and {together} J");
    let calm = || (0..4).map(|_| Work::ms(4_000).reads(2)).collect();
    let [turns, together] = ["efs", "round-robin"].map(|policy| energy_j(policy, calm()));
    assert!(
        (turns / together - 1.0).abs() < 1e-3,
        "{turns} J and {together} J"
    );
}

#[test]
fn when_counters_are_lost_the_last_demands_hold() {
    let mut world = Memory::new(four(), hogs(4, 2_000));
    world.bus_per_us = Some(BUS);
    world.counters_until = Some(Nanos::from_ms(1_500));
    let (mut log, specs) = (Log::default(), world.specs());
    let result = run_specs(
        &mut world,
        specs,
        "efs",
        &[],
        &RunConfig::default(),
        &mut log,
    );
    assert!(result.tasks.iter().all(|task| task.finished.is_some()));
    assert!(
        log.turns[1..].iter().all(|turn| turn.runs.len() == 1),
        "{:?}",
        log.sets()
    );
}

#[test]
fn without_stress_on_the_bus_everything_runs_and_nothing_is_lost() {
    for (cores, threads) in [(4, 1), (12, 1), (6, 2), (64, 1)] {
        let cpus = cores as usize * threads as usize;
        let work = |ms| (0..cpus).map(|_| Work::ms(ms).reads(1)).collect();
        let (log, result) = simple(Machine::uniform("calm", cores, threads), work(3_000), &[]);
        // With many cores the first guess, one over their number, may not let all in at once. It is soon replaced.
        let late = log
            .turns
            .iter()
            .filter(|turn| !turn.waits.is_empty())
            .count();
        assert!(late <= 2, "{cores} x {threads}: {late}");
        assert!(
            result.turnaround <= Nanos(3_000_000_000 + 2 * LEAST_SLICE.0),
            "{:?}",
            result.turnaround
        );
        let places = log
            .turns
            .iter()
            .flat_map(|turn| turn.runs.iter().map(|(id, cpus)| (*id, cpus.to_string())));
        assert_eq!(places.collect::<BTreeSet<_>>().len(), cpus, "nobody moves");
    }
    // More tasks than CPUs share them fairly, and none idles.
    let (log, result) = simple(
        four(),
        (0..12).map(|_| Work::ms(2_000).reads(2)).collect(),
        &[],
    );
    assert!(
        log.turns
            .iter()
            .filter(|turn| turn.runs.len() < 4)
            .all(|turn| turn.waits.is_empty())
    );
    assert!(
        result.turnaround <= Nanos::from_ms(6_200),
        "{:?}",
        result.turnaround
    );
    let first = result
        .tasks
        .iter()
        .filter_map(|task| task.finished)
        .min()
        .unwrap();
    assert!(first >= Nanos::from_ms(5_000), "{first:?}");
}

#[test]
fn cores_idle_only_as_long_as_energy_says_so() {
    // Beside one that needs nine tenths of the bus, three that compute are welcome, a second such one is not.
    let work = || {
        let heavy = (0..2).map(|_| Work::ms(4_000).reads(BUS * 9 / 10));
        heavy
            .chain((0..2).map(|_| Work::ms(4_000).reads(0)))
            .collect::<Vec<_>>()
    };
    let (log, _) = simple(four(), work(), &[]);
    let both =
        |turn: &&TurnLog| turn.runs.contains_key(&TaskId(0)) && turn.runs.contains_key(&TaskId(1));
    assert_eq!(log.turns.iter().skip(1).filter(both).count(), 0);
    // Those that compute never wait.
    assert!(log.longest.keys().all(|id| id.0 < 2), "{:?}", log.longest);
    // For throughput all four run all the time.
    let (log, _) = simple(four(), work(), &[("objective", "throughput")]);
    assert!(log.turns.iter().all(|turn| turn.waits.is_empty()));
    // Where another core costs next to nothing, so does energy.
    let free = [("p1_w", "0.001"), ("p2_w", "0"), ("p_more_w", "0")];
    let (log, _) = simple(
        four(),
        (0..4).map(|_| Work::ms(2_000).reads(30)).collect(),
        &free,
    );
    assert!(log.turns.iter().all(|turn| turn.waits.is_empty()));
}

#[test]
fn for_throughput_only_what_would_lower_it_waits() {
    let work = || {
        (0..11)
            .map(|i| Work::ms(4_000).reads(i * BUS / 10))
            .collect()
    };
    let idle = |objective: &str| {
        let (log, _) = simple(
            Machine::uniform("three by two", 3, 2),
            work(),
            &[("objective", objective)],
        );
        let mut idle = 0;
        for turn in log.turns.iter().filter(|turn| turn.runs.len() < 6) {
            for wait in &turn.waits {
                let WaitReason::BusFull {
                    demand_milli,
                    threshold_milli,
                    ..
                } = wait.reason
                else {
                    panic!("{wait:?}")
                };
                assert!(demand_milli >= threshold_milli, "{wait:?}");
                idle += 1;
            }
        }
        idle
    };
    let (throughput, energy) = (idle("throughput"), idle("energy"));
    assert!(
        throughput > 0,
        "whoever takes more from the others than it does itself waits"
    );
    assert!(
        energy > throughput,
        "and for energy, more do: {energy}, {throughput}"
    );
}

#[test]
fn an_idle_cpu_looks_again_when_load_falls() {
    // The first hog ends within a quantum: the second begins at once, and nobody else is touched.
    let work = vec![
        Work::ms(1_000).reads(BUS),
        Work::ms(3_000).reads(BUS),
        Work::ms(3_000).reads(0),
    ];
    let (log, result) = simple(Machine::uniform("three", 3, 1), work, &[]);
    let ended = result.tasks[0].finished.unwrap();
    assert_ne!(
        (ended.0 / 1_000_000) % 200,
        0,
        "the test is about the middle of a quantum"
    );
    let after = log.turns.iter().find(|turn| turn.at == ended).unwrap();
    assert_eq!(
        after.runs.keys().collect::<Vec<_>>(),
        [&TaskId(1), &TaskId(2)]
    );
    assert!(after.until - after.at < QUANTUM);
}

#[test]
fn an_idle_cpu_looks_again_when_a_task_falls_asleep() {
    // Two that exclude each other; the one that runs falls asleep in the middle of a quantum.
    let mut world = Memory::new(Machine::uniform("two", 2, 1), hogs(2, 3_000));
    world.bus_per_us = Some(BUS);
    let (mut log, specs) = (Log::default(), world.specs());
    let naps = [0, 1].map(|id| (Nanos::from_ms(950), Event::Slept(TaskId(id))));
    world.naps = naps.to_vec();
    let result = run_specs(
        &mut world,
        specs,
        "efs",
        &[],
        &RunConfig::default(),
        &mut log,
    );
    assert_eq!(result.policy_faults, 0);
    let before = log
        .turns
        .iter()
        .rev()
        .find(|turn| turn.at < Nanos::from_ms(950))
        .unwrap();
    assert_eq!(before.runs.len(), 1, "one at a time");
    let at = log
        .turns
        .iter()
        .find(|turn| turn.at == Nanos::from_ms(950))
        .expect("a decision when the load falls");
    assert_eq!(
        at.runs.len(),
        2,
        "who waited runs beside the one that sleeps: {:?}",
        at.runs
    );
}

#[test]
fn the_starved_runs_at_once_for_its_slice_and_all_are_judged_again() {
    // Whoever has not run for a period counts as starved; three hogs and a task that computes.
    let mut work = hogs(3, 60_000);
    work.push(Work::ms(60_000).reads(0));
    let config = RunConfig {
        max_pause: Nanos::MAX,
        ..RunConfig::default()
    };
    let (log, _) = run_log(
        four(),
        work,
        |_| {},
        &[("c_global", "1")],
        &config,
        Some(20),
    );
    let starved: Vec<&TurnLog> = log
        .turns
        .iter()
        .filter(|turn| !turn.starved.is_empty())
        .collect();
    assert!(starved.len() > 20, "{}", starved.len());
    for turn in starved {
        let [(task, end)] = turn.starved[..] else {
            panic!("one at a time: {:?}", turn.starved)
        };
        // With one task on its CPU its lag is 0: the least slice (ours).
        assert_eq!(end - turn.at, LEAST_SLICE);
        assert_eq!(turn.until, end);
        // The other hogs were stopped, the task that computes was not.
        assert_eq!(turn.runs.keys().collect::<Vec<_>>(), [&task, &TaskId(3)]);
    }
}

#[test]
fn the_slice_of_the_starved_is_as_long_as_its_lag_up_to_a_period() {
    // Two hogs and two light tasks on two CPUs; any lag is too much.
    let mut work = hogs(2, 60_000);
    work.extend((0..2).map(|_| Work::ms(60_000).reads(2)));
    let config = RunConfig {
        max_pause: Nanos::MAX,
        ..RunConfig::default()
    };
    let (log, _) = run_log(
        Machine::uniform("two", 2, 1),
        work,
        |_| {},
        &[("c_local", "0")],
        &config,
        Some(10),
    );
    let slices: BTreeSet<Nanos> = log
        .turns
        .iter()
        .flat_map(|turn| turn.starved.iter().map(|(_, end)| *end - turn.at))
        .collect();
    assert!(!slices.is_empty());
    assert!(
        slices
            .iter()
            .all(|&slice| slice >= LEAST_SLICE && slice <= QUANTUM),
        "{slices:?}"
    );
    assert!(
        slices.iter().any(|&slice| slice > LEAST_SLICE),
        "{slices:?}"
    );
    // A slice that is longer than a tick is not cut by it.
    for (turn, next) in log.turns.iter().zip(&log.turns[1..]) {
        for (task, end) in &turn.starved {
            assert!(next.runs.contains_key(task) || next.at >= *end);
        }
    }
}

#[test]
fn nice_values_share_a_cpu_by_their_weights() {
    for (nice, expected) in [(0, 1.0), (1, 1.25), (5, 3.05), (10, 9.3)] {
        let work = vec![Work::ms(1_000_000).reads(1), Work::ms(1_000_000).reads(1)];
        let config = RunConfig {
            max_pause: Nanos::MAX,
            ..RunConfig::default()
        };
        let (_, result) = run_log(
            Machine::uniform("one", 1, 1),
            work,
            |specs| specs[1].nice = nice,
            &[],
            &config,
            Some(200),
        );
        let ratio = result.tasks[0].ran.as_s() / result.tasks[1].ran.as_s();
        assert!(
            (ratio / expected - 1.0).abs() < 0.05,
            "nice {nice}: {ratio}"
        );
    }
}

#[test]
fn queues_are_balanced() {
    // On each CPU one long and two short tasks would be ideal; numbers alone would put all long ones on one CPU.
    let work = |i: u64| Work::ms(if i.is_multiple_of(4) { 6_000 } else { 1_000 }).reads(1);
    let (log, result) = simple(four(), (0..16).map(work).collect(), &[]);
    assert!(
        log.turns
            .iter()
            .all(|turn| turn.runs.len() == 4 || turn.waits.is_empty())
    );
    // 36 s of work on four CPUs, of which the longest task takes 6 in a row at best.
    assert!(
        result.turnaround < Nanos::from_ms(10_500),
        "{:?}",
        result.turnaround
    );
    // A weight of nine others has a CPU for itself.
    let (log, _) = run_log(
        Machine::uniform("two", 2, 1),
        (0..6).map(|_| Work::ms(100_000).reads(1)).collect(),
        |specs| specs[0].nice = -10,
        &[],
        &RunConfig::default(),
        Some(10),
    );
    let with_it = log
        .turns
        .iter()
        .filter(|turn| turn.runs.contains_key(&TaskId(0)))
        .count();
    assert!(
        with_it * 10 > log.turns.len() * 9,
        "{with_it} of {}",
        log.turns.len()
    );
}

#[test]
fn gangs_are_judged_as_a_whole() {
    // Two gangs of two that fill the bus take turns, beside a task that computes.
    let work = vec![
        Work::ms(10_000).reads(BUS),
        Work::ms(10_000).reads(BUS),
        Work::ms(10_000).reads(0),
    ];
    let gangs = |specs: &mut Vec<TaskSpec>| specs[..2].iter_mut().for_each(|spec| spec.cpus = 2);
    let (log, _) = run_log(
        Machine::uniform("five", 5, 1),
        work,
        gangs,
        &[],
        &RunConfig::default(),
        Some(5),
    );
    let steady = &log.turns[2..];
    assert!(
        steady
            .iter()
            .all(|turn| turn.runs.len() == 2 && turn.runs.contains_key(&TaskId(2))),
        "{:?}",
        log.sets()
    );
    for gang in [TaskId(0), TaskId(1)] {
        let ran = steady
            .iter()
            .filter(|turn| turn.runs.contains_key(&gang))
            .count();
        assert!(ran * 5 > steady.len() * 2, "{ran} of {}", steady.len());
    }
}

#[test]
fn a_saved_state_gives_the_same_decisions() {
    struct Replay {
        decisions: usize,
    }
    impl Recorder for Replay {
        fn wants_policy_state(&self) -> bool {
            true
        }
        fn decided(&mut self, record: DecisionRecord<'_>) {
            let mut again = policy(&[]);
            let text = serde_json::to_string(record.policy_state.unwrap()).unwrap();
            again.load(&serde_json::from_str(&text).unwrap()).unwrap();
            let decision = again.decide(record.snapshot, &mut Rng::restore(record.rng));
            assert_eq!(&decision, record.decision);
            self.decisions += 1;
        }
    }
    let work = (0..9)
        .map(|i| Work::ms(3_000).reads(i * 35 % 151))
        .collect();
    let mut world = Memory::new(Machine::uniform("two by two", 2, 2), work);
    world.bus_per_us = Some(BUS);
    let specs = world.specs();
    let mut replay = Replay { decisions: 0 };
    run_specs(
        &mut world,
        specs,
        "efs",
        &[],
        &RunConfig::default(),
        &mut replay,
    );
    assert!(replay.decisions > 50);
}

#[test]
fn demands_are_published_when_they_move() {
    let mut work = hogs(1, 4_000);
    work.extend((0..3).map(|_| Work::ms(4_000).reads(1)));
    let (log, _) = simple(four(), work, &[]);
    let published: Vec<&Admission> = log
        .turns
        .iter()
        .filter_map(|turn| turn.admission.as_ref())
        .collect();
    assert!(
        published.len() >= 2 && published.len() <= 8,
        "{}",
        published.len()
    );
    let table = AdmissionTable::new();
    let demand = |demand: &Demand| table.demand(DemandClass::from_number(demand.class).unwrap());
    // The first guess, then what was measured.
    assert!(
        published[0]
            .demands
            .iter()
            .all(|first| (demand(first) - 0.25).abs() < 0.002)
    );
    let last: Vec<f64> = published
        .last()
        .unwrap()
        .demands
        .iter()
        .map(demand)
        .collect();
    assert!(
        last[0] > 0.97 && last[1..].iter().all(|&demand| demand < 0.08),
        "{last:?}"
    );
    // What power must be made up for by throughput, core by core: 49.2, 61.2, 73.5, 85.8 W.
    let gains = published
        .last()
        .unwrap()
        .gains
        .iter()
        .map(|&gain| f64::from(gain) / f64::from(1 << 20));
    for (gain, exact) in gains.zip([61.2 / 49.2, 73.5 / 61.2, 85.8 / 73.5]) {
        assert!((gain - exact).abs() < 1e-5, "{gain}, exactly {exact}");
    }
}

#[test]
fn reads_from_memory_are_required_and_traffic_wanted() {
    let entry = find_policy("efs").unwrap();
    let params = Params::resolve("efs", entry.params, &[]).unwrap();
    let missing = |capability| {
        let mut capabilities = Capabilities::default();
        capabilities.missing.insert(capability, Absence::NoCounters);
        entry.shortfalls(&params, &capabilities)[..].to_vec()
    };
    assert!(matches!(
        missing(Capability::Counter(Counter::MmReads))[..],
        [Shortfall {
            importance: Importance::Required,
            ..
        }]
    ));
    assert!(matches!(
        missing(Capability::Traffic)[..],
        [Shortfall {
            importance: Importance::Wanted(_),
            ..
        }]
    ));
    // Where demands are given nothing needs to be counted.
    let given = Params::resolve(
        "efs",
        entry.params,
        &[("demand".to_owned(), "given".to_owned())],
    )
    .unwrap();
    for capability in [Capability::Counter(Counter::MmReads), Capability::Traffic] {
        let mut capabilities = Capabilities::default();
        capabilities.missing.insert(capability, Absence::NoCounters);
        assert!(entry.shortfalls(&given, &capabilities).is_empty());
    }
}

#[test]
fn given_demands_go_before_what_is_counted() {
    let given = |milli: u16, reads: u64| {
        let work = (0..4).map(|_| Work::ms(4_000).reads(reads)).collect();
        let say = |specs: &mut Vec<TaskSpec>| {
            specs
                .iter_mut()
                .for_each(|spec| spec.bus_use_milli = Some(milli))
        };
        run_log(
            four(),
            work,
            say,
            &[("demand", "given")],
            &RunConfig::default(),
            None,
        )
        .0
    };
    // Four that are said to fill the bus run one at a time from the first moment on, though they read next to nothing.
    let log = given(1_000, 1);
    assert!(
        log.sets().iter().all(|set| set.len() == 1),
        "{:?}",
        log.sets()
    );
    for wait in log.turns.iter().flat_map(|turn| &turn.waits) {
        assert!(
            matches!(
                wait.reason,
                WaitReason::BusFull {
                    basis: DemandBasis::Given,
                    ..
                }
            ),
            "{wait:?}"
        );
    }
    let ran: BTreeSet<u32> = log.sets().into_iter().flatten().collect();
    assert_eq!(ran.len(), 4);
    // Four that are said to use a fifth of it all run, though each fills it.
    assert!(given(200, BUS).sets().iter().all(|set| set.len() == 4));
}

#[test]
fn without_a_given_demand_a_task_stays_where_it_starts() {
    let work = (0..4).map(|_| Work::ms(2_000).reads(BUS)).collect();
    let say = |specs: &mut Vec<TaskSpec>| specs[0].bus_use_milli = Some(1_000);
    let (log, _) = run_log(
        four(),
        work,
        say,
        &[("demand", "given")],
        &RunConfig::default(),
        None,
    );
    // A quarter of the bus each, which fit beside each other, and not all beside one that fills it.
    assert!(
        log.sets()
            .iter()
            .any(|set| set.len() == 3 && !set.contains(&0)),
        "{:?}",
        log.sets()
    );
    let of_others = log
        .turns
        .iter()
        .flat_map(|turn| &turn.waits)
        .filter(|wait| wait.task != TaskId(0));
    for wait in of_others {
        let assumed = matches!(
            wait.reason,
            WaitReason::BusFull {
                basis: DemandBasis::Assumed,
                demand_milli: 245..=255,
                ..
            }
        );
        assert!(
            assumed || matches!(wait.reason, WaitReason::Order { .. }),
            "{wait:?}"
        );
    }
}

#[test]
fn the_tasks_that_are_left_share_the_cpus_evenly() {
    // Three tasks on each CPU, of which two on the second end soon.
    let work = (0..6)
        .map(|i| Work::ms(if i == 1 || i == 3 { 500 } else { 1_000_000 }).reads(1))
        .collect();
    let (_, result) = run_log(
        Machine::uniform("two", 2, 1),
        work,
        |_| {},
        &[],
        &RunConfig::default(),
        Some(60),
    );
    for task in [0, 2, 4, 5] {
        let ran = result.tasks[task].ran.as_s();
        assert!((28.0..32.0).contains(&ran), "task {task} ran for {ran} s");
    }
}

#[test]
fn a_light_weight_does_not_wait_beyond_the_bound() {
    // By its weight alone it would wait for 15 quanta after each least slice.
    let work = || vec![Work::ms(1_000_000).reads(1), Work::ms(1_000_000).reads(1)];
    let longest = |factors: &str| {
        let settings = [("c_local", factors), ("c_global", factors)];
        let nice = |specs: &mut Vec<TaskSpec>| specs[1].nice = 19;
        let config = RunConfig {
            max_pause: Nanos::MAX,
            ..RunConfig::default()
        };
        let (log, _) = run_log(
            Machine::uniform("one", 1, 1),
            work(),
            nice,
            &settings,
            &config,
            Some(60),
        );
        log.longest[&TaskId(1)]
    };
    assert!(
        longest("1000") > Nanos(10 * QUANTUM.0),
        "{:?}",
        longest("1000")
    );
    let rule = Starvation {
        local_factor: 0,
        global_factor: 0,
        ..Starvation::for_quantum(QUANTUM.0)
    };
    assert!(longest("0") <= bound(&rule, 2, 1.0), "{:?}", longest("0"));
}

/// The bound on waiting that the policy states: detection, the starved before it, and one quantum.
fn bound(rule: &Starvation, n: u64, weight_ratio: f64) -> Nanos {
    let period = rule.period_ns(n);
    let factor = rule.local_factor.max(rule.global_factor) as f64 * weight_ratio;
    Nanos((factor * period as f64) as u64 + n * period + QUANTUM.0)
}

/// A task: its reads per microsecond, nice value, CPUs, and a mask by the bits of a number.
type Job = (u64, i8, u32, Option<u32>);

fn job() -> impl Strategy<Value = Job> {
    let reads = prop_oneof![2 => Just(BUS), 1 => 0..=BUS, 1 => Just(0)];
    let nice = prop_oneof![4 => Just(0i8), 1 => -3i8..=3];
    let cpus = prop_oneof![5 => Just(1u32), 1 => 2u32..=3];
    let mask = prop_oneof![3 => Just(None), 1 => any::<u32>().prop_map(Some)];
    (reads, nice, cpus, mask)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        rng_seed: RngSeed::Fixed(4_300),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nobody_waits_longer_than_the_stated_bound(
        cores in 1u32..=4,
        threads in 1u32..=2,
        jobs in proptest::collection::vec(job(), 2..12),
        c_local in 0u64..6,
        c_global in 0u64..4,
    ) {
        let machine = Machine::uniform("bound", cores, threads);
        let all: Vec<CpuId> = machine.cpus.iter().map(|cpu| cpu.id).collect();
        let work = jobs.iter().map(|job| Work::ms(100_000_000).reads(job.0)).collect();
        let change = |specs: &mut Vec<TaskSpec>| {
            for (spec, &(_, nice, cpus, mask)) in specs.iter_mut().zip(&jobs) {
                spec.nice = nice;
                spec.cpus = cpus.min(all.len() as u32);
                spec.allowed = mask.map(|bits| {
                    let chosen = all.iter().enumerate().filter(|(n, _)| bits >> n & 1 != 0).map(|(_, &cpu)| cpu);
                    let mut mask: CpuSet = chosen.collect();
                    mask.extend(all.iter().copied().take(spec.cpus as usize));
                    mask
                });
            }
        };
        let (local, global) = (c_local.to_string(), c_global.to_string());
        let settings = [("c_local", local.as_str()), ("c_global", global.as_str())];
        let config = RunConfig { max_pause: Nanos::MAX, ..RunConfig::default() };
        let (log, _) = run_log(machine, work, change, &settings, &config, Some(40));
        let rule = Starvation {
            local_factor: c_local,
            global_factor: c_global,
            ..Starvation::for_quantum(QUANTUM.0)
        };
        let least_nice = jobs.iter().map(|job| job.1).min().unwrap();
        for (task, &waited) in &log.longest {
            // Weights are whole numbers, so their ratios are not quite powers.
            let ratio = 1.25_f64.powi(i32::from(jobs[task.0 as usize].1 - least_nice)) * 1.01;
            let bound = bound(&rule, jobs.len() as u64, ratio);
            prop_assert!(waited <= bound, "{task}: {waited:?}, bound {bound:?}");
        }
    }
}
