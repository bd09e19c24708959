//! The purpose of the policies, tested in the world in memory: tasks that slow each other down. No policy may starve a
//! task.

use crate::memory::{Memory, Work, run_policy, run_specs};
use cosched_core::*;

const QUANTUM: Nanos = Nanos::from_ms(200);

fn turnaround(result: &RunResult) -> f64 {
    result.turnaround.as_s()
}

/// Largest over smallest slowdown against a solo time of `solo_s`.
fn unfairness(result: &RunResult, solo_s: f64) -> f64 {
    let slowdowns = result
        .tasks
        .iter()
        .map(|task| task.turnaround().unwrap().as_s() / solo_s);
    let (min, max) = slowdowns.fold((f64::MAX, 0.0), |(min, max), s| (s.min(min), s.max(max)));
    max / min
}

fn on_bus(machine: Machine, work: Vec<Work>, policy: &str) -> RunResult {
    let mut world = Memory::new(machine, work);
    world.bus_per_us = Some(100);
    let result = run_policy(&mut world, policy, &[], &RunConfig::default());
    assert_eq!(result.policy_faults, 0, "{policy}");
    result
}

#[test]
fn bandwidth_ends_a_mix_of_heavy_and_light_sooner_than_round_robin() {
    // Two heavy and two light tasks together just fill the bus. Round-robin lets four heavy ones meet.
    let mix = || {
        let heavy = (0..8).map(|_| Work::ms(8_000).reads(48));
        heavy
            .chain((0..8).map(|_| Work::ms(8_000).reads(1)))
            .collect()
    };
    let four = || Machine::uniform("four", 4, 1);
    let in_turn = turnaround(&on_bus(four(), mix(), "round-robin"));
    let balanced = turnaround(&on_bus(four(), mix(), "bandwidth"));
    // 16 tasks of 8 s on 4 CPUs take 32 s at full speed.
    assert!(balanced < 1.06 * 32.0, "{balanced}");
    assert!(in_turn > 1.12 * balanced, "{in_turn} {balanced}");
}

#[test]
fn bandwidth_gains_nothing_among_equals() {
    for reads in [1, 60] {
        let equal = || (0..12).map(|_| Work::ms(4_000).reads(reads)).collect();
        let four = || Machine::uniform("four", 4, 1);
        let in_turn = turnaround(&on_bus(four(), equal(), "round-robin"));
        let balanced = turnaround(&on_bus(four(), equal(), "bandwidth"));
        assert!(
            (in_turn - balanced).abs() <= QUANTUM.as_s(),
            "{in_turn} {balanced}"
        );
    }
}

/// A wide range of demands, for six cores with two threads.
fn broad() -> Vec<Work> {
    (0..24)
        .map(|i| {
            Work::ms(10_000)
                .reads(i * 7 % 24 * 2)
                .l1(100 + i * 13 % 24 * 10)
        })
        .collect()
}

#[test]
fn fair_policies_are_fairer_than_bandwidth_and_pay_for_it() {
    let six = || Machine::uniform("six by two", 6, 2);
    let [fast, fair, both] =
        ["bandwidth", "fair", "perf-fair"].map(|policy| on_bus(six(), broad(), policy));
    let unfair = [&fast, &fair, &both].map(|result| unfairness(result, 10.0));
    let time = [&fast, &fair, &both].map(turnaround);
    assert!(unfair[1] < 1.0 + (unfair[0] - 1.0) / 2.0, "{unfair:?}");
    assert!(unfair[2] < 1.0 + (unfair[0] - 1.0) / 2.0, "{unfair:?}");
    // Solo measurements, and heavy tasks that run together because they are behind, cost time.
    assert!(
        time[0] < time[2] && time[0] < time[1] && time[2] < 1.02 * time[1],
        "{time:?}"
    );
}

#[test]
fn pairing_by_l1_bandwidth_needs_its_counts() {
    let ends = |counted: bool| {
        // As many tasks as CPUs, so that only the pairing on cores matters.
        let work = (0..12)
            .map(|i| Work::ms(5_000).l1(if i % 6 < 3 { 500 } else { 100 }))
            .collect();
        let mut world = Memory::new(Machine::uniform("six by two", 6, 2), work);
        world.l1_per_us = Some(600);
        if !counted {
            world.capabilities.missing.insert(
                Capability::Counter(Counter::L1Accesses),
                Absence::NoSuchEvent,
            );
        }
        turnaround(&run_policy(
            &mut world,
            "bandwidth",
            &[],
            &RunConfig::default(),
        ))
    };
    assert!(
        ends(true) < 0.75 * ends(false),
        "{} {}",
        ends(true),
        ends(false)
    );
}

/// Records how long started tasks have waited.
struct Waits {
    longest: Nanos,
    started: Vec<TaskId>,
    decisions: u64,
    measured: u64,
}

impl Recorder for Waits {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Decided(record) => {
                assert!(!record.stood_in);
                self.decisions += 1;
                self.measured += u64::from(record.decision.basis.measures.is_some());
                let snap = record.snapshot;
                for task in snap
                    .tasks
                    .iter()
                    .filter(|task| task.running.is_none() && self.started.contains(&task.id))
                {
                    self.longest = self.longest.max(snap.now - task.waiting_since);
                }
            }
            Fact::Started {
                task, again: false, ..
            } => {
                self.started.push(task.id);
            }
            _ => {}
        }
    }
}

/// Runs endless tasks for two minutes, and returns the longest wait of any of them.
fn longest_wait(
    machine: Machine,
    specs: Vec<TaskSpec>,
    policy: &str,
    settings: &[(&str, &str)],
    max_pause: Nanos,
) -> Waits {
    // Very different demands and speeds, so that FITNESS and progress prefer some tasks.
    let work = |i: usize| {
        Work::ms(100_000_000)
            .reads(if i.is_multiple_of(5) {
                1
            } else {
                i as u64 * 7 % 90
            })
            .l1(i as u64 * 37 % 400)
    };
    let mut world = Memory::new(machine, (0..specs.len()).map(work).collect());
    world.bus_per_us = Some(100);
    world.interrupts = vec![Nanos::from_ms(120_000)];
    let mut waits = Waits {
        longest: Nanos::ZERO,
        started: Vec::new(),
        decisions: 0,
        measured: 0,
    };
    let config = RunConfig {
        max_pause,
        ..RunConfig::default()
    };
    run_specs(&mut world, specs, policy, settings, &config, &mut waits);
    waits
}

fn sharing() -> impl Iterator<Item = &'static PolicyEntry> {
    let stops = |entry: &&PolicyEntry| entry.time_shares && !entry.kernel_shares;
    POLICIES.iter().filter(stops)
}

fn singles(n: u32) -> Vec<TaskSpec> {
    (0..n)
        .map(|id| TaskSpec::new(id, &format!("t{id}")))
        .collect()
}

#[test]
fn nobody_waits_longer_than_the_bound() {
    for entry in sharing() {
        for (cores, threads, n) in [(1, 1, 5), (4, 1, 13), (3, 2, 40)] {
            for (max_pause, heavy) in [(0, 1.0), (300, 1.0), (2_000, 1.0), (300, 1e3), (2_000, 1e3)]
            {
                let machine = Machine::uniform("bound", cores, threads);
                let max_pause = Nanos::from_ms(max_pause);
                let mut specs = singles(n);
                specs
                    .iter_mut()
                    .step_by(2)
                    .for_each(|spec| spec.weight = heavy);
                let waits = longest_wait(machine, specs, entry.name, &[], max_pause);
                let rounds = u64::from(n.div_ceil(cores * threads));
                let bound = max_pause + Nanos(QUANTUM.0 * rounds);
                assert!(
                    waits.longest <= bound,
                    "{} {n} on {cores}x{threads}, {heavy}: {:?}",
                    entry.name,
                    waits.longest
                );
                // Only if the bound is too tight for all tasks, some never start.
                let tight = max_pause < Nanos(QUANTUM.0 * rounds);
                assert!(
                    tight || waits.started.len() == n as usize,
                    "{}: {:?}",
                    entry.name,
                    waits.started
                );
            }
        }
    }
}

#[test]
fn without_the_bound_favourites_would_run_for_ever() {
    // The largest lead leaves only FITNESS, which prefers some tasks.
    let machine = || Machine::uniform("four", 4, 1);
    let settings = [
        ("lead_max_percent", "1000000"),
        ("estimation_share_max", "0"),
    ];
    let unbound = longest_wait(machine(), singles(13), "perf-fair", &settings, Nanos::MAX);
    assert!(
        unbound.longest > Nanos::from_ms(60_000),
        "{:?}",
        unbound.longest
    );
    let bound = longest_wait(
        machine(),
        singles(13),
        "perf-fair",
        &settings,
        Nanos::from_ms(2_000),
    );
    assert!(
        bound.longest <= Nanos::from_ms(2_000 + 4 * 200),
        "{:?}",
        bound.longest
    );
}

#[test]
fn gangs_and_masks_keep_their_bounds() {
    for entry in sharing() {
        let mut gangs = singles(9);
        gangs
            .iter_mut()
            .enumerate()
            .for_each(|(i, task)| task.cpus = 1 + i as u32 % 4);
        let wanted: u32 = gangs.iter().map(|task| task.cpus).sum();
        let pause = Nanos::from_ms(300);
        let waits = longest_wait(
            Machine::uniform("gangs", 2, 2),
            gangs,
            entry.name,
            &[],
            pause,
        );
        let bound = pause + Nanos(QUANTUM.0 * 2 * u64::from(wanted.div_ceil(4)));
        assert!(
            waits.longest <= bound,
            "{}: {:?}",
            entry.name,
            waits.longest
        );

        let mut masked = singles(9);
        masked
            .iter_mut()
            .step_by(2)
            .for_each(|task| task.allowed = Some("0".parse().unwrap()));
        let waits = longest_wait(
            Machine::uniform("masks", 2, 2),
            masked,
            entry.name,
            &[],
            pause,
        );
        assert!(
            waits.longest <= pause + Nanos(QUANTUM.0 * 9),
            "{}: {:?}",
            entry.name,
            waits.longest
        );
    }
}

#[test]
fn estimation_keeps_its_share_of_the_time() {
    // Every task's estimate expires with every quantum.
    let cases = [
        ("0.1", "1", 0.11),
        ("0.25", "1", 0.26),
        ("0", "1", 0.0),
        ("0.25", "0.1", 0.12),
        ("0.25", "0", 0.02),
    ];
    for (share, renewal, most) in cases {
        let settings = [
            ("valid_quanta", "1"),
            ("estimation_share_max", share),
            ("renewal_share_max", renewal),
        ];
        let machine = Machine::uniform("six by two", 6, 2);
        let waits = longest_wait(
            machine,
            singles(24),
            "perf-fair",
            &settings,
            RunConfig::default().max_pause,
        );
        let spent_s = waits.measured as f64 * 0.1;
        assert!(
            spent_s <= most * 120.0 && spent_s >= (most - 0.03) * 120.0,
            "{share}, {renewal}: {spent_s}"
        );
    }
}

#[test]
fn estimation_goes_on_where_waits_are_short_of_the_bound() {
    for policy in ["fair", "perf-fair"] {
        let machine = Machine::uniform("six by two", 6, 2);
        let waits = longest_wait(
            machine,
            singles(24),
            policy,
            &[],
            RunConfig::default().max_pause,
        );
        assert!(
            waits.measured > 24 && waits.measured * 3 < waits.decisions,
            "{} of {}",
            waits.measured,
            waits.decisions
        );
    }
}
