//! How tasks share the CPUs: by weight, and evenly between queues.

use super::log::{four, run_log, simple};
use crate::memory::Work;
use cosched_core::*;

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
            |specs| specs[1].weight = weight_of_nice(nice),
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
fn the_end_of_a_heavy_task_changes_no_order() {
    let work = [500, 100_000, 100_000].map(|ms| Work::ms(ms).reads(1));
    let (log, _) = run_log(
        Machine::uniform("one", 1, 1),
        work.into(),
        |specs| specs[0].weight = 100.0,
        &[],
        &RunConfig::default(),
        Some(8),
    );
    let sets = log.sets();
    let turns = |task: u32| sets.iter().filter(|set| set.contains(&task)).count();
    assert!(turns(1).abs_diff(turns(2)) <= 2, "{sets:?}");
}

#[test]
fn queues_are_balanced() {
    // One long and three short tasks on each CPU would be ideal; numbers alone would put all long ones on one CPU.
    let work = |i: u64| Work::ms(if i.is_multiple_of(4) { 6_000 } else { 1_000 }).reads(1);
    let (log, result) = simple(four(), (0..16).map(work).collect(), &[]);
    assert!(
        log.turns
            .iter()
            .all(|turn| turn.runs.len() == 4 || turn.waits.is_empty())
    );
    // 36 s of work on four CPUs; the longest task takes at least 6 s in a row.
    assert!(
        result.turnaround < Nanos::from_ms(10_500),
        "{:?}",
        result.turnaround
    );
    // A task with the weight of nine others gets a CPU for itself.
    let (log, _) = run_log(
        Machine::uniform("two", 2, 1),
        (0..6).map(|_| Work::ms(100_000).reads(1)).collect(),
        |specs| specs[0].weight = weight_of_nice(-10),
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
fn the_tasks_that_are_left_share_the_cpus_evenly() {
    // Three tasks on each CPU; two of those on the second CPU end soon.
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
