//! Early ends of tasks: `--halt`, timeouts and interrupts.

use super::support::world;
use crate::memory::{Work, run_policy, run_specs};
use cosched_core::*;

/// Keeps warnings, and the tasks that are left out.
#[derive(Default)]
struct Told {
    warnings: Vec<Warning>,
    left_out: Vec<TaskId>,
}

impl Recorder for Told {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::LeftOut { task, reason: _ } => {
                self.left_out.push(task);
            }
            Fact::Warned(warning) => {
                self.warnings.push(warning.clone());
            }
            _ => {}
        }
    }
}

/// Closing one task's interval visits the others. One by one, that would cost quadratic time.
#[test]
fn tasks_that_are_ended_together_are_read_together() {
    let n = 50;
    for timeout in [None, Some(TimeLimit::Fixed(Nanos::from_ms(50)))] {
        let mut world = world(1, vec![Work::ms(10_000); n]);
        if timeout.is_none() {
            world.interrupts = vec![Nanos::from_ms(50)];
        }
        let config = RunConfig {
            jobs: n,
            timeout,
            ..RunConfig::default()
        };
        let result = run_policy(&mut world, "linux", &[], &config);
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.told_to_end != task.timed_out)
        );
        // All before they are asked to end, and each once it has ended.
        let (together, one): (Vec<usize>, Vec<usize>) =
            world.reads.iter().partition(|&&tasks| tasks > 1);
        assert_eq!((together, one.len()), (vec![n], n), "{timeout:?}");
    }
}

#[test]
fn halt_now_ends_the_others_and_soon_lets_them_finish() {
    let work = || vec![Work::ms(100).exit(1), Work::ms(500), Work::ms(500)];
    let config = |rule: &str| RunConfig {
        halt: rule.parse().unwrap(),
        ..RunConfig::default()
    };
    let mut world = world(2, work());
    let result = run_policy(&mut world, "fifo", &[], &config("now,fail=1"));
    assert_eq!(result.ended_by, EndedBy::Halt);
    assert_eq!(
        result.tasks[1].exit,
        Some(Exit::Signal {
            signal: 15,
            oom: false
        })
    );
    assert_eq!(result.tasks[2].started, None);
    let mut world = self::world(2, work());
    let result = run_policy(&mut world, "fifo", &[], &config("soon,fail=1"));
    assert_eq!(result.tasks[1].exit, Some(Exit::Code(0)));
    assert_eq!(result.tasks[2].started, None);
}

#[test]
fn a_backend_learns_that_all_tasks_are_ended() {
    let is_told = |interrupts: &[Nanos], config: RunConfig| {
        let mut world = world(2, vec![Work::ms(100).exit(1), Work::ms(500)]);
        world.interrupts = interrupts.to_vec();
        run_policy(&mut world, "fifo", &[], &config);
        world.is_ending
    };
    let halt = |rule: &str| RunConfig {
        halt: rule.parse().unwrap(),
        ..RunConfig::default()
    };
    assert!(!is_told(&[], halt("soon,fail=1")), "the others go on");
    assert!(is_told(&[], halt("now,fail=1")));
    let early = Nanos::from_ms(50);
    assert!(is_told(&[early], RunConfig::default()));
    let deadline = Some(early);
    let at_deadline = RunConfig {
        deadline,
        ..RunConfig::default()
    };
    assert!(is_told(&[], at_deadline));
    let restart = Restart::UntilLast;
    let until_last = RunConfig {
        restart,
        ..RunConfig::default()
    };
    assert!(is_told(&[], until_last));
}

#[test]
fn a_timeout_counts_placed_time_only_and_kills_the_deaf() {
    let mut deaf = Work::ms(60_000);
    deaf.ignores_term = true;
    let mut world = world(1, vec![deaf, Work::ms(900), Work::ms(900)]);
    let config = RunConfig {
        timeout: Some(TimeLimit::Fixed(Nanos::from_ms(1_000))),
        grace: Nanos::from_ms(700),
        ..RunConfig::default()
    };
    let result = run_policy(&mut world, "round-robin", &[], &config);
    assert!(result.tasks[0].timed_out);
    assert_eq!(
        result.tasks[0].exit,
        Some(Exit::Signal {
            signal: 9,
            oom: false
        })
    );
    for task in &result.tasks[1..] {
        assert!(!task.timed_out);
        assert_eq!(task.exit, Some(Exit::Code(0)));
        assert!(task.finished.unwrap() > Nanos::from_ms(1_000));
    }
}

#[test]
fn at_the_deadline_jobs_are_ended_and_none_is_started() {
    let run_until = |deadline_ms| {
        let mut deaf = Work::ms(2_000);
        deaf.ignores_term = true;
        let mut world = world(1, vec![deaf, Work::ms(100)]);
        let config = RunConfig {
            deadline: Some(Nanos::from_ms(deadline_ms)),
            grace: Nanos::from_ms(700),
            attempts: 2,
            ..RunConfig::default()
        };
        run_policy(&mut world, "fifo", &[], &config)
    };
    let cut = run_until(1_000);
    let killed = Exit::Signal {
        signal: 9,
        oom: false,
    };
    assert_eq!(cut.ended_by, EndedBy::Deadline);
    assert_eq!(cut.turnaround, Nanos::from_ms(1_700));
    let [deaf, other] = &cut.tasks[..] else {
        panic!("two tasks");
    };
    assert_eq!((&deaf.exit, deaf.told_to_end), (&Some(killed), true));
    assert_eq!((deaf.runs, other.started), (1, None));
    assert_eq!(run_until(60_000).ended_by, EndedBy::Completion);
    let at_once = run_until(0);
    assert_eq!(
        (at_once.ended_by, at_once.tasks[0].started),
        (EndedBy::Deadline, None)
    );
}

/// Tasks of 900 ms on a machine with one CPU, of which some say so before.
fn run_before_the_end(known: &[Option<ExpectedFrom>], restart: Restart) -> (RunResult, Told) {
    let mut world = world(1, vec![Work::ms(900); known.len()]);
    let mut specs = world.specs();
    for (spec, from) in specs.iter_mut().zip(known) {
        spec.expected = from.map(|from| Expected::of(Nanos::from_ms(900), from));
    }
    let config = RunConfig {
        jobs: 1,
        order: Order::Given,
        ends: Some(Nanos::from_ms(2_000)),
        restart,
        ..RunConfig::default()
    };
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, "fifo", &[], &config, &mut told);
    (result, told)
}

#[test]
fn what_would_end_too_late_is_left_out() {
    let sure = Some(ExpectedFrom::Told);
    let (result, told) = run_before_the_end(&[sure; 4], Restart::Never);
    let ended = result.tasks.iter().filter(|task| task.exit.is_some());
    assert_eq!((ended.count(), result.ended_by), (2, EndedBy::NoTime));
    let [Warning::LeftOut(TaskId(2), WaitReason::NoTime { expected, left })] = told.warnings[..]
    else {
        panic!("{:?}", told.warnings)
    };
    assert_eq!(expected, Nanos::from_ms(900));
    assert!(left < expected && left > Nanos::ZERO);
    assert_eq!(told.left_out, [TaskId(2), TaskId(3)]);
    // A guess and an unknown time are no ground, and others pass.
    let known = [None, sure, sure, None, Some(ExpectedFrom::Program)];
    let (result, told) = run_before_the_end(&known, Restart::Never);
    assert_eq!(
        (told.left_out, result.ended_by),
        (vec![TaskId(2)], EndedBy::NoTime)
    );
    let (result, _) = run_before_the_end(&[sure; 4], Restart::UntilLast);
    assert_eq!(result.ended_by, EndedBy::Completion);
}

#[test]
fn a_drained_run_starts_no_more_and_lets_jobs_finish() {
    for (works, by) in [(3, EndedBy::Drain), (1, EndedBy::Completion)] {
        // A failed attempt is not repeated.
        let mut world = world(1, vec![Work::ms(500).exit(1); works]);
        world.naps = vec![
            (Nanos::from_ms(100), Event::Drain),
            (Nanos::from_ms(200), Event::Drain),
        ];
        let config = RunConfig {
            jobs: 1,
            attempts: 2,
            ..RunConfig::default()
        };
        let result = run_policy(&mut world, "fifo", &[], &config);
        assert_eq!(result.ended_by, by);
        assert_eq!(
            (result.tasks[0].runs, &result.tasks[0].exit),
            (1, &Some(Exit::Code(1)))
        );
        assert!(result.tasks[1..].iter().all(|task| task.started.is_none()));
    }
}

#[test]
fn first_interrupt_asks_second_kills() {
    let deaf = || {
        let mut work = Work::ms(60_000);
        work.ignores_term = true;
        work
    };
    let mut world = world(1, vec![deaf(), deaf()]);
    world.interrupts = vec![Nanos::from_ms(300)];
    let result = run_policy(&mut world, "round-robin", &[], &RunConfig::default());
    assert_eq!(result.ended_by, EndedBy::Signal(15));
    assert_eq!(
        result.turnaround,
        Nanos::from_ms(5_300),
        "killed after the grace period"
    );
    // A batch system sends SIGTERM several times; a user who presses Ctrl-C again does not want to wait.
    for (signal, turnaround) in [(15, 5_300), (1, 5_300), (2, 400)] {
        let mut world = self::world(1, vec![deaf(), deaf()]);
        world.interrupts = vec![Nanos::from_ms(300), Nanos::from_ms(400)];
        world.signals = [15, signal].into();
        let result = run_policy(&mut world, "round-robin", &[], &RunConfig::default());
        assert_eq!(
            result.turnaround,
            Nanos::from_ms(turnaround),
            "signal {signal}"
        );
    }
}

/// A job that saves its state and exits with 0 on SIGTERM is not complete.
#[test]
fn a_job_that_was_told_to_end_did_not_succeed() {
    let mut world = world(
        2,
        vec![
            Work::ms(100),
            Work {
                term_exit: Some(Exit::Code(0)),
                ..Work::ms(60_000)
            },
        ],
    );
    world.interrupts = vec![Nanos::from_ms(500)];
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    let exits: Vec<_> = result.tasks.iter().map(|task| task.exit.clone()).collect();
    assert_eq!(exits, [Some(Exit::Code(0)), Some(Exit::ToldToEnd)]);
}
