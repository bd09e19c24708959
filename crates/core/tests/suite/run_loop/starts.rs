//! When a task starts, and what is reported.

use super::support::{finish_ms, world};
use crate::memory::{Work, run_policy, run_specs};
use cosched_core::*;

/// The backend's time to start a task does not count as the task's time.
#[test]
fn a_task_starts_when_it_becomes_its_program() {
    let mut world = world(2, vec![Work::ms(300), Work::ms(100), Work::ms(100)]);
    world.start_takes = Nanos::from_ms(10);
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    let started: Vec<u64> = result
        .tasks
        .iter()
        .map(|task| task.started.unwrap().0 / 1_000_000)
        .collect();
    assert_eq!(
        (started, finish_ms(&result)),
        (vec![10, 20, 130], vec![310, 120, 230])
    );
    for task in &result.tasks {
        assert_eq!(task.ran, task.finished.unwrap() - task.started.unwrap());
    }
}

/// A recorder that saves starts knows all tasks that may run, whenever the process dies.
#[test]
fn a_start_is_told_before_it_happens() {
    #[derive(Default)]
    struct Told(Vec<(u32, &'static str)>);
    impl Recorder for Told {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            match fact {
                Fact::Starting(task) => {
                    self.0.push((task.id.0, "starting"));
                }
                Fact::Started {
                    task, again: false, ..
                } => {
                    self.0.push((task.id.0, "started"));
                }
                Fact::Started { task, .. } => {
                    self.0.push((task.id.0, "restarted"));
                }
                _ => {}
            }
        }
    }
    let mut world = world(2, vec![Work::ms(600), Work::ms(100).exit(3), Work::ms(500)]);
    let mut told = Told::default();
    let config = RunConfig {
        attempts: 2,
        ..RunConfig::default()
    };
    let specs = world.specs();
    run_specs(&mut world, specs, "round-robin", &[], &config, &mut told);
    let of = |task: u32| {
        told.0
            .iter()
            .filter(|(id, _)| *id == task)
            .map(|(_, what)| *what)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of(0), of(2)),
        (vec!["starting", "started"], vec!["starting", "started"])
    );
    assert_eq!(of(1), ["starting", "started", "starting", "restarted"]);
    assert_eq!(
        told.0[..2],
        [(0, "starting"), (1, "starting")],
        "before any is started"
    );
}

#[test]
fn a_gang_larger_than_the_machine_is_refused() {
    let mut world = world(2, vec![Work::ms(1)]);
    let mut specs = world.specs();
    specs[0].cpus = 3;
    let entry = find_policy("fifo").unwrap();
    let mut policy = (entry.build)(&Params::resolve("fifo", entry.params, &[]).unwrap());
    let error = run(
        &mut world,
        &mut *policy,
        &mut NullRecorder,
        specs,
        &RunConfig::default(),
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            RunError::TooLarge {
                needs: 3,
                have: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn arrivals_wait_for_their_time_and_for_room() {
    let mut world = world(2, vec![Work::ms(100), Work::ms(100), Work::ms(100)]);
    let mut specs = world.specs();
    specs[1].arrives = Nanos::from_ms(5_000);
    let config = RunConfig {
        jobs: 1,
        ..RunConfig::default()
    };
    let result = run_specs(
        &mut world,
        specs,
        "round-robin",
        &[],
        &config,
        &mut NullRecorder,
    );
    assert_eq!(finish_ms(&result), [100, 5_100, 200]);
    let mut world = self::world(2, vec![Work::ms(2_500), Work::ms(100)]);
    world.room_from = Nanos::from_ms(1_500);
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    // The first may start although there is no room, or nothing would ever run.
    assert_eq!(finish_ms(&result), [2_500, 1_700]);
}

#[test]
fn a_task_that_cannot_start_does_not_stop_the_others() {
    let mut broken = Work::ms(100);
    broken.broken = true;
    let mut world = world(1, vec![broken, Work::ms(100)]);
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    assert_eq!(
        result.tasks[0].exit,
        Some(Exit::NotStarted("no such file".to_owned()))
    );
    assert_eq!(result.tasks[0].started, None);
    assert_eq!(finish_ms(&result), [0, 100]);
}
