//! When a core is left idle, for energy or throughput, and when it is filled again.

use super::log::{BUS, Log, QUANTUM, TurnLog, four, hogs, simple};
use crate::memory::{Memory, Work, run_specs};
use cosched_core::model::power::PowerModel;
use cosched_core::*;

/// Energy of a run in joules, by the number of busy cores on the paper's machine.
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
    // EFS, Table 1: four memory-bound copies. The paper saved 47.6 %, partly by effects that this world does not have.
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
fn cores_idle_only_as_long_as_energy_says_so() {
    // Beside a task that needs nine tenths of the bus, three compute-bound tasks are welcome, but not a second such
    // task.
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
    // Compute-bound tasks never wait.
    assert!(log.longest.keys().all(|id| id.0 < 2), "{:?}", log.longest);
    // For throughput all four run all the time.
    let (log, _) = simple(four(), work(), &[("objective", "throughput")]);
    assert!(log.turns.iter().all(|turn| turn.waits.is_empty()));
    // If another core costs next to nothing, energy does the same.
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
    // The first hog ends within a quantum: the second starts at once, and no other task changes.
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
    // Two tasks that exclude each other; the running one falls asleep in the middle of a quantum.
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
