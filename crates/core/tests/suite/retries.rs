//! Attempts, delays between starts, and time limits by the median, over all policies in the world in memory.

use crate::memory::{Memory, Work, run_policy, run_specs};
use cosched_core::*;
use proptest::prelude::*;

/// Reports of starts and ends: time, task and attempt.
#[derive(Default)]
struct Told {
    starts: Vec<(Nanos, u32, u32)>,
    retried: Vec<(u32, u32, bool)>,
    lost: Vec<u32>,
    ended: Vec<u32>,
}

impl Recorder for Told {
    fn emit(&mut self, now: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Failed(result) => {
                self.retried
                    .push((result.spec.id.0, result.runs, result.timed_out));
            }
            Fact::Lost(task) => {
                self.lost.push(task.id.0);
            }
            Fact::Ended(result) => {
                self.ended.push(result.spec.id.0);
            }
            Fact::Started {
                task, again: false, ..
            } => {
                self.starts.push((now, task.id.0, 1));
            }
            Fact::Started { task, run, .. } => {
                self.starts.push((now, task.id.0, run));
            }
            _ => {}
        }
    }
}

fn world(cores: u32, work: Vec<Work>) -> Memory {
    Memory::new(Machine::uniform("memory", cores, 1), work)
}

fn told(world: &mut Memory, policy: &str, config: &RunConfig) -> (RunResult, Told) {
    let mut told = Told::default();
    let specs = world.specs();
    let result = run_specs(world, specs, policy, &[], config, &mut told);
    (result, told)
}

fn attempts(n: u32) -> RunConfig {
    RunConfig {
        attempts: n,
        ..RunConfig::default()
    }
}

#[test]
fn what_fails_is_started_again_and_its_last_attempt_counts() {
    let mut recovers = Work::ms(100).exit(3);
    recovers.second = Some(Box::new(Work::ms(200)));
    let mut world = world(1, vec![recovers, Work::ms(100).exit(4), Work::ms(50)]);
    let (result, told) = told(&mut world, "fifo", &attempts(3));
    let runs: Vec<u32> = result.tasks.iter().map(|task| task.runs).collect();
    assert_eq!(runs, [2, 3, 1]);
    let exits: Vec<Option<Exit>> = result.tasks.iter().map(|task| task.exit.clone()).collect();
    assert_eq!(exits, [0, 4, 0].map(|code| Some(Exit::Code(code))));
    // A failed task queues behind the tasks that have arrived.
    assert_eq!(told.retried, [(0, 1, false), (1, 1, false), (1, 2, false)]);
    assert_eq!(told.ended, [2, 0, 1]);
    assert_eq!(
        result.tasks[0].counts[Counter::Instructions],
        Reading::Value(200_000_000),
        "of the last attempt alone"
    );
}

#[test]
fn what_can_not_be_started_or_was_told_to_end_is_left_alone() {
    let broken = Work {
        broken: true,
        ..Work::ms(100)
    };
    let once = Work {
        once: true,
        ..Work::ms(100).exit(1)
    };
    let mut world = self::world(2, vec![broken, once]);
    let (result, told) = told(&mut world, "linux", &attempts(5));
    assert_eq!((result.tasks[0].runs, result.tasks[1].runs), (0, 1));
    assert!(told.retried.is_empty() && told.ended.len() == 2);
    // Only the last failure counts for the halt rule; tasks that it ends do not restart.
    let halt = RunConfig {
        halt: "now,fail=1".parse().unwrap(),
        ..attempts(2)
    };
    let mut world = self::world(2, vec![Work::ms(100).exit(1), Work::ms(10_000)]);
    let result = run_policy(&mut world, "linux", &[], &halt);
    assert_eq!(result.ended_by, EndedBy::Halt);
    assert_eq!((result.tasks[0].runs, result.tasks[1].runs), (2, 1));
    // After an interrupt no task starts.
    let mut world = self::world(1, vec![Work::ms(1_000).exit(1)]);
    world.interrupts = vec![Nanos::from_ms(500)];
    let result = run_policy(&mut world, "linux", &[], &attempts(9));
    assert_eq!(
        (result.ended_by, result.tasks[0].runs),
        (EndedBy::Signal(15), 1)
    );
}

#[test]
fn what_is_lost_starts_anew_before_the_others_and_lost_runs_do_not_count() {
    let ms = Nanos::from_ms;
    let mut world = world(1, [300, 100].map(Work::ms).to_vec());
    world.naps = [200, 300, 350]
        .map(|at| (ms(at), Event::Lost(TaskId(0))))
        .to_vec();
    let (result, told) = told(&mut world, "fifo", &attempts(1));
    let starts = [(0, 0), (200, 0), (300, 0), (350, 0), (650, 1)];
    assert_eq!(told.starts, starts.map(|(at, id)| (ms(at), id, 1)));
    assert_eq!((told.lost, told.retried), (vec![0; 3], vec![]));
    let first = &result.tasks[0];
    assert_eq!((first.runs, first.exit.clone()), (1, Some(Exit::Code(0))));
    assert_eq!((first.started, first.ran), (Some(ms(350)), ms(300)));
}

#[test]
fn what_is_lost_has_ended_if_it_was_asked_to_or_no_task_may_start() {
    let stubborn = Work {
        ignores_term: true,
        ..Work::ms(1_000)
    };
    for halt in ["never", "soon,fail=1"] {
        let failing = Work::ms(50).exit(1);
        let mut world = world(2, vec![stubborn.clone(), failing]);
        world.naps = vec![(Nanos::from_ms(200), Event::Lost(TaskId(0)))];
        let config = RunConfig {
            halt: halt.parse().unwrap(),
            deadline: (halt == "never").then_some(Nanos::from_ms(100)),
            ..attempts(3)
        };
        let (result, told) = told(&mut world, "fifo", &config);
        let first = &result.tasks[0];
        assert_eq!(first.exit, Some(Exit::ToldToEnd), "{halt}");
        assert_eq!(
            (first.finished, first.told_to_end),
            (Some(Nanos::from_ms(200)), true)
        );
        assert!(told.lost.is_empty());
    }
}

#[test]
fn the_time_of_a_task_that_is_handed_over_counts_from_its_own_begin() {
    let ms = Nanos::from_ms;
    let mut world = world(1, [400, 50].map(Work::ms).to_vec());
    world.hands_over = true;
    let at = ms(150);
    let task = TaskId(0);
    world.naps = vec![(ms(200), Event::Began { task, at })];
    let config = RunConfig {
        timeout: Some(TimeLimit::Fixed(ms(300))),
        ..attempts(1)
    };
    let (result, told) = told(&mut world, "fifo", &config);
    // What ends before its begin was reported began no earlier than it ended.
    assert_eq!(told.starts, [(at, 0, 1), (ms(450), 1, 1)]);
    let times: Vec<_> = result
        .tasks
        .iter()
        .map(|task| (task.started, task.ran))
        .collect();
    assert_eq!(times, [(Some(at), ms(250)), (Some(ms(450)), ms(0))]);
    assert!(result.tasks.iter().all(TaskResult::succeeded));
}

#[test]
fn a_time_limit_holds_for_each_attempt() {
    let timeout = Some(TimeLimit::Fixed(Nanos::from_ms(300)));
    let mut late = Work::ms(1_000);
    late.second = Some(Box::new(Work::ms(250)));
    let mut world = world(1, vec![late]);
    let (result, told) = told(
        &mut world,
        "linux",
        &RunConfig {
            timeout,
            ..attempts(2)
        },
    );
    assert_eq!(told.retried, [(0, 1, true)]);
    assert!(!result.tasks[0].timed_out && result.tasks[0].exit == Some(Exit::Code(0)));
    assert_eq!(result.tasks[0].finished, Some(Nanos::from_ms(550)));
}

#[test]
fn a_limit_by_the_median_begins_with_the_third_end() {
    let timeout = Some(TimeLimit::PercentOfMedian(200));
    let work = [100, 100, 100, 5_000, 150].map(Work::ms).to_vec();
    let mut world = world(5, work);
    let result = run_policy(
        &mut world,
        "linux",
        &[],
        &RunConfig {
            timeout,
            ..RunConfig::default()
        },
    );
    let late: Vec<bool> = result.tasks.iter().map(|task| task.timed_out).collect();
    assert_eq!(late, [false, false, false, true, false]);
    assert_eq!(result.tasks[3].finished, Some(Nanos::from_ms(200)));
}

#[test]
fn starts_keep_their_distance() {
    let delay = Nanos::from_ms(300);
    let mut world = world(
        4,
        vec![
            Work::ms(1_000),
            Work::ms(100),
            Work::ms(100).exit(1),
            Work::ms(100),
        ],
    );
    let (_, told) = told(
        &mut world,
        "linux",
        &RunConfig {
            delay,
            ..attempts(2)
        },
    );
    let starts: Vec<(u64, u32)> = told
        .starts
        .iter()
        .map(|(at, id, _)| (at.0 / 1_000_000, *id))
        .collect();
    assert_eq!(starts, [(0, 0), (300, 1), (600, 2), (900, 3), (1_200, 2)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Under every policy: no two starts are closer than the delay, no task has more attempts than allowed, all of them
    /// are used if the last one failed, and the same run gives the same result.
    #[test]
    fn attempts_and_delays_hold_under_every_policy(
        work in proptest::collection::vec((1u64..800, 0i32..3, 0u64..900), 1..7),
        policy in 0..POLICIES.len(), cores in 1u32..4, delay_ms in prop_oneof![Just(0u64), 1u64..700], most in 1u32..4,
        jobs in 1usize..6
    ) {
        let policy = POLICIES[policy].name;
        let config = RunConfig { delay: Nanos::from_ms(delay_ms), attempts: most, jobs, ..RunConfig::default() };
        let run = || {
            let mut world = world(cores, work.iter().map(|&(ms, exit, _)| Work::ms(ms).exit(exit)).collect());
            let mut specs = world.specs();
            specs.iter_mut().zip(&work).for_each(|(spec, &(_, _, at))| spec.arrives = Nanos::from_ms(at));
            let mut told = Told::default();
            let result = run_specs(&mut world, specs, policy, &[], &config, &mut told);
            (result, told)
        };
        let (result, told) = run();
        prop_assert_eq!((result.ended_by, result.policy_faults), (EndedBy::Completion, 0));
        for pair in told.starts.windows(2) {
            prop_assert!(pair[1].0 >= pair[0].0 + config.delay, "{:?}", told.starts);
        }
        for (task, &(_, exit, _)) in result.tasks.iter().zip(&work) {
            prop_assert_eq!(task.exit.clone(), Some(Exit::Code(exit)));
            prop_assert_eq!(task.runs, if exit == 0 { 1 } else { most });
        }
        prop_assert_eq!(told.starts.len() as u32, result.tasks.iter().map(|task| task.runs).sum::<u32>());
        prop_assert_eq!(told.ended.len(), work.len());
        let (again, told_again) = run();
        prop_assert_eq!(again.tasks, result.tasks);
        prop_assert_eq!(told_again.starts, told.starts);
    }
}
