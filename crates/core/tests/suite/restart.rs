//! Tasks that restart until the longest has ended, in the world in memory.

use crate::memory::{Act, Memory, Work, run_policy, run_specs};
use cosched_core::*;

fn until_last() -> RunConfig {
    RunConfig {
        restart: Restart::UntilLast,
        ..RunConfig::default()
    }
}

fn world(cores: u32, work: Vec<Work>) -> Memory {
    Memory::new(Machine::uniform("memory", cores, 1), work)
}

fn finish_ms(result: &RunResult) -> Vec<u64> {
    result
        .tasks
        .iter()
        .map(|task| task.finished.unwrap().0 / 1_000_000)
        .collect()
}

fn runs(result: &RunResult) -> Vec<u32> {
    result.tasks.iter().map(|task| task.runs).collect()
}

/// Reports of starts and ends.
#[derive(Default)]
struct Told {
    started: Vec<u32>,
    restarted: Vec<(u32, u32)>,
    ended: Vec<u32>,
    warnings: Vec<Warning>,
    left: usize,
}

impl Recorder for Told {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Ended(result) => {
                self.ended.push(result.spec.id.0);
            }
            Fact::Warned(warning) => {
                self.warnings.push(warning.clone());
            }
            Fact::Sampled(samples) => {
                self.left += samples.len();
            }
            Fact::Started {
                task, again: false, ..
            } => {
                self.started.push(task.id.0);
            }
            Fact::Started { task, run, .. } => {
                self.restarted.push((task.id.0, run));
            }
            _ => {}
        }
    }
}

#[test]
fn what_ends_starts_again_until_the_longest_has_ended_once() {
    let mut world = world(3, vec![Work::ms(300), Work::ms(1_000), Work::ms(450)]);
    let specs = world.specs();
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, "linux", &[], &until_last(), &mut told);
    // Each alone on a CPU; the first end of each counts.
    assert_eq!(finish_ms(&result), [300, 1_000, 450]);
    assert_eq!(runs(&result), [4, 1, 3]);
    assert_eq!(result.turnaround, Nanos::from_ms(1_000));
    assert_eq!(result.ended_by, EndedBy::Completion);
    // A repeated run is ended at the end, which is no failure.
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
    assert_eq!(
        result.tasks[0].cpu_time,
        Reading::Value(Nanos::from_ms(300)),
        "figures are of the first run"
    );
    assert_eq!(
        result.tasks[0].counts[Counter::Instructions],
        Reading::Value(300_000_000)
    );
    let killed = world
        .acts
        .iter()
        .filter(|(_, act)| matches!(act, Act::Kill(_)))
        .count();
    assert_eq!(killed, 2);
    assert_eq!((told.started, told.ended), (vec![0, 1, 2], vec![0, 2, 1]));
    assert_eq!(told.restarted, [(0, 2), (2, 2), (0, 3), (0, 4), (2, 3)]);
    assert!(told.warnings.is_empty() && told.left > 0);
}

#[test]
fn every_policy_keeps_the_load_and_comes_to_an_end() {
    for entry in POLICIES {
        let mut world = world(
            2,
            (0..5).map(|i| Work::ms(300 + 700 * i).reads(i)).collect(),
        );
        let result = run_policy(&mut world, entry.name, &[], &until_last());
        assert_eq!(
            (result.ended_by, result.policy_faults),
            (EndedBy::Completion, 0),
            "{}",
            entry.name
        );
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{}",
            entry.name
        );
        assert!(runs(&result)[0] > 1, "{}", entry.name);
        assert_eq!(
            result.turnaround.0 / 1_000_000,
            *finish_ms(&result).iter().max().unwrap()
        );
    }
}

#[test]
fn a_late_arrival_is_waited_for_and_nobody_overtakes_it_in_the_queue() {
    let mut world = world(1, vec![Work::ms(200), Work::ms(300)]);
    let mut specs = world.specs();
    specs[1].arrives = Nanos::from_ms(500);
    let result = run_specs(
        &mut world,
        specs,
        "fifo",
        &[],
        &until_last(),
        &mut NullRecorder,
    );
    // The first runs at 0, 200 and 400; then the second gets the CPU.
    assert_eq!(finish_ms(&result), [200, 900]);
    assert_eq!(result.tasks[1].started, Some(Nanos::from_ms(600)));
    // If only one task may run, new tasks come before restarted ones.
    let mut world = self::world(1, vec![Work::ms(100), Work::ms(100), Work::ms(100)]);
    let result = run_policy(
        &mut world,
        "fifo",
        &[],
        &RunConfig {
            jobs: 1,
            ..until_last()
        },
    );
    assert_eq!(
        (finish_ms(&result), runs(&result)),
        (vec![100, 200, 300], vec![1, 1, 1])
    );
}

#[test]
fn what_fails_is_not_started_again() {
    let mut work = vec![
        Work::ms(100).exit(3),
        Work::ms(500),
        Work::ms(100),
        Work::ms(100),
        Work::ms(100),
    ];
    // One succeeds once; one never succeeds a second time; the last cannot be started any more.
    work[2].second = Some(Box::new(Work::ms(50).exit(4)));
    work[3].once = true;
    work[4].second = Some(Box::new(Work {
        broken: true,
        ..Work::ms(100)
    }));
    let mut world = world(5, work);
    let specs = world.specs();
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, "linux", &[], &until_last(), &mut told);
    assert_eq!(runs(&result), [1, 1, 2, 1, 1]);
    assert_eq!(result.tasks[0].exit, Some(Exit::Code(3)));
    assert!(
        result.tasks[1..]
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
    assert_eq!(told.ended.len(), 5);
    let not = |task, exit| Warning::NotRestarted(TaskId(task), exit);
    let missing = Exit::NotStarted("no such file".to_owned());
    assert_eq!(
        told.warnings,
        [
            not(3, None),
            not(4, Some(missing)),
            not(2, Some(Exit::Code(4)))
        ]
    );
}

#[test]
fn later_runs_count_for_no_halt_rule_and_an_interrupt_ends_all() {
    let config = RunConfig {
        halt: "now,success=2".parse().unwrap(),
        ..until_last()
    };
    let mut world = world(2, vec![Work::ms(100), Work::ms(1_000), Work::ms(2_000)]);
    let result = run_policy(&mut world, "linux", &[], &config);
    // The first succeeds every 150 ms or more, which counts once.
    assert_eq!(result.ended_by, EndedBy::Halt);
    assert!(
        result.tasks[1].exit.as_ref().unwrap().ok() && !result.tasks[2].exit.as_ref().unwrap().ok()
    );
    assert!(runs(&result)[0] > 3);
    let mut world = self::world(2, vec![Work::ms(100), Work::ms(1_000)]);
    world.interrupts = vec![Nanos::from_ms(450)];
    let result = run_policy(&mut world, "linux", &[], &until_last());
    assert_eq!(result.ended_by, EndedBy::Signal(15));
    assert_eq!(
        result.tasks[0].exit,
        Some(Exit::Code(0)),
        "it had ended well before"
    );
    assert_eq!(
        result.tasks[1].exit,
        Some(Exit::Signal {
            signal: 15,
            oom: false
        })
    );
    assert_eq!(runs(&result), [5, 1]);
}

#[test]
fn a_later_run_that_does_not_listen_is_killed() {
    let deaf = Work {
        ignores_term: true,
        ..Work::ms(200)
    };
    let mut world = world(2, vec![deaf, Work::ms(500)]);
    let result = run_policy(&mut world, "linux", &[], &until_last());
    assert_eq!(finish_ms(&result), [200, 500]);
    assert_eq!(result.turnaround, Nanos::from_ms(500));
    assert_eq!(
        world.now().0 / 1_000_000,
        5_500,
        "killed after the grace period"
    );
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

#[test]
fn estimates_begin_anew() {
    struct Look(Vec<(Nanos, u32, Nanos)>);
    impl Recorder for Look {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact {
                let task = record.snapshot.task(TaskId(0));
                self.0.extend(
                    task.map(|task| (record.snapshot.now, task.estimates.executed, task.arrived)),
                );
            }
        }
    }
    let mut world = world(2, vec![Work::ms(500), Work::ms(700)]);
    let specs = world.specs();
    let mut look = Look(Vec::new());
    run_specs(&mut world, specs, "linux", &[], &until_last(), &mut look);
    let ms = Nanos::from_ms;
    let at = |now| {
        look.0
            .iter()
            .find(|(at, ..)| *at == now)
            .map(|&(_, executed, arrived)| (executed, arrived))
    };
    assert_eq!(at(ms(400)), Some((2, ms(0))));
    assert_eq!(at(ms(500)), Some((0, ms(500))));
    assert_eq!(at(ms(600)), Some((1, ms(500))));
}
