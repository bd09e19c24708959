//! Tasks that fill the bus take turns, and other tasks run side by side.

use super::log::{BUS, LEAST_SLICE, QUANTUM, four, hogs, run_log, simple};
use crate::memory::Work;
use cosched_core::*;
use std::collections::BTreeSet;

#[test]
fn four_saturating_tasks_run_one_at_a_time_and_take_turns() {
    // EFS, Figure 7.
    let (log, result) = simple(four(), hogs(4, 4_000), &[]);
    // At first nothing is measured: a quarter of the bus each.
    assert_eq!(log.turns[0].runs.len(), 4);
    let sets = log.sets();
    let alone = sets.iter().filter(|set| set.len() == 1).count();
    assert_eq!(alone, sets.len() - 1, "{sets:?}");
    // A task continues until another has not run for t_global (EFS, Eq. 23): five periods.
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
    // The waiting tasks have a reason: more energy would be used.
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
    // Sequentially they take as long as together.
    assert!(
        result.turnaround <= Nanos::from_ms(16_200),
        "{:?}",
        result.turnaround
    );
}

#[test]
fn without_stress_on_the_bus_everything_runs_and_nothing_is_lost() {
    for (cores, threads) in [(4, 1), (12, 1), (6, 2), (64, 1)] {
        let cpus = cores as usize * threads as usize;
        let work = |ms| (0..cpus).map(|_| Work::ms(ms).reads(1)).collect();
        let (log, result) = simple(Machine::uniform("calm", cores, threads), work(3_000), &[]);
        // With many cores the first guess, one over their number, may not admit all tasks at once. It is soon replaced.
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
    // More tasks than CPUs share them fairly, and no CPU is idle.
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
fn gangs_are_judged_as_a_whole() {
    // Two gangs of two that fill the bus take turns, beside a compute-bound task.
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
