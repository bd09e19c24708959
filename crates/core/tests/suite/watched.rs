//! An observer sees the whole state of a run, and changes nothing.

use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;

/// One observed state.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    at: Nanos,
    running: Vec<u32>,
    waiting: Vec<(u32, bool, Option<Nanos>)>,
    pending: Vec<u32>,
    ran: Vec<Nanos>,
    earned: Vec<Option<f64>>,
    energy: bool,
}

#[derive(Default)]
struct Watcher {
    wants_state: bool,
    looks: Vec<Look>,
    decisions: Vec<Decision>,
}

impl Recorder for Watcher {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            self.decisions.push(record.decision.clone());
        }
    }

    fn wants_state(&self) -> bool {
        self.wants_state
    }

    fn state(&mut self, now: &RunNow<'_>) {
        let id = |task: &WatchedTask<'_>| task.spec.id.0;
        let runs = |task: &&WatchedTask<'_>| matches!(task.doing, Doing::Runs(_));
        let waits = |task: &&WatchedTask<'_>| task.doing == Doing::Paused;
        self.looks.push(Look {
            at: now.at,
            running: now.tasks.iter().filter(runs).map(id).collect(),
            waiting: now
                .tasks
                .iter()
                .filter(waits)
                .map(|t| (id(t), t.reason.is_some(), t.latest))
                .collect(),
            pending: now.pending.iter().map(|id| id.0).collect(),
            ran: now.tasks.iter().map(|task| task.ran).collect(),
            earned: now.tasks.iter().map(|task| task.earned.value()).collect(),
            energy: now.energy_j.is_value(),
        });
    }
}

fn world() -> Memory {
    Memory::new(Machine::uniform("m", 2, 1), vec![Work::ms(1_000); 5])
}

fn play(wants_state: bool) -> (Watcher, RunResult) {
    let mut world = world();
    let mut watcher = Watcher {
        wants_state,
        ..Watcher::default()
    };
    let config = RunConfig {
        jobs: 4,
        max_pause: Nanos::from_ms(30_000),
        ..RunConfig::default()
    };
    let specs = world.specs();
    let result = run_specs(&mut world, specs, "round-robin", &[], &config, &mut watcher);
    (watcher, result)
}

#[test]
fn a_state_says_who_runs_who_waits_why_and_until_when() {
    let (watcher, _) = play(true);
    let [first, second, .., last] = &watcher.looks[..] else {
        panic!("{:?}", watcher.looks)
    };
    assert_eq!((first.at, &first.pending[..]), (Nanos::ZERO, &[4][..]));
    assert_eq!(first.running.len(), 2);
    assert_eq!(
        (second.at, &second.pending[..]),
        (Nanos::from_ms(1_000), &[4][..])
    );
    assert_eq!((second.running.len(), second.waiting.len()), (2, 2));
    for (task, has_reason, latest) in &second.waiting {
        assert!(has_reason, "task {task}");
        let latest = latest.expect("it has begun");
        assert!(
            latest > Nanos::from_ms(30_000) && latest <= Nanos::from_ms(31_000),
            "{latest:?}"
        );
    }
    // Two CPUs for a second; open intervals count.
    let ran: u64 = second.ran.iter().map(|ran| ran.0).sum();
    assert_eq!(ran, Nanos::from_ms(2_000).0);
    assert!(second.earned.iter().flatten().all(|quanta| *quanta > 0.0));
    assert!(last.running.is_empty() && last.waiting.is_empty() && last.pending.is_empty());
}

#[test]
fn watching_changes_nothing() {
    let (unwatched, plain) = play(false);
    let (watched, same) = play(true);
    assert!(unwatched.looks.is_empty());
    assert_eq!(watched.looks.len(), 4, "at 0, 1 and 2 s, and at the end");
    assert_eq!(watched.decisions, unwatched.decisions);
    assert_eq!(same.tasks, plain.tasks);
}

#[test]
fn what_was_not_read_for_long_is_read_for_a_state() {
    let mut world = Memory::new(Machine::uniform("m", 1, 1), vec![Work::ms(5_000)]);
    world.naps = vec![(Nanos::from_ms(3_000), Event::Slept(TaskId(9)))];
    struct Told(Vec<Option<Nanos>>);
    impl Recorder for Told {
        fn wants_state(&self) -> bool {
            true
        }
        fn state(&mut self, now: &RunNow<'_>) {
            let task = now.tasks.first();
            self.0.extend(task.map(|task| task.cpu_time.value()));
        }
    }
    let (mut told, specs) = (Told(Vec::new()), world.specs());
    run_specs(
        &mut world,
        specs,
        "fifo",
        &[("quantum_s", "5")],
        &RunConfig::default(),
        &mut told,
    );
    assert_eq!(told.0[1], Some(Nanos::from_ms(3_000)));
}

/// The user ends a running task, a waiting one and one that has not begun; the other continues, and no halt rule counts these
/// ends as failures.
#[test]
fn the_user_ends_tasks() {
    let mut world = Memory::new(Machine::uniform("m", 1, 1), vec![Work::ms(1_000); 4]);
    let end = |ms: u64, id: u32, name: &str| {
        (
            Nanos::from_ms(ms),
            Event::EndTask {
                task: TaskId(id),
                name: name.to_owned(),
            },
        )
    };
    world.naps = vec![
        end(450, 0, "t0"),
        end(450, 1, "t1"),
        end(500, 2, "t0"),
        end(500, 3, "t3"),
        end(500, 9, "t9"),
        end(510, 0, "t0"),
    ];
    struct Told(Vec<Warning>);
    impl Recorder for Told {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Warned(warning) = fact {
                self.0.push(warning.clone());
            }
        }
    }
    let (mut told, specs) = (Told(Vec::new()), world.specs());
    let halt = "now,fail=1".parse().unwrap();
    let config = RunConfig {
        jobs: 3,
        halt,
        attempts: 3,
        ..RunConfig::default()
    };
    let result = run_specs(&mut world, specs, "round-robin", &[], &config, &mut told);
    assert_eq!(
        told.0,
        [
            Warning::EndedByUser(TaskId(0)),
            Warning::EndedByUser(TaskId(1)),
            Warning::EndedByUser(TaskId(3))
        ]
    );
    assert_eq!(result.ended_by, EndedBy::Completion);
    let ended: Vec<(bool, bool, u32)> = result
        .tasks
        .iter()
        .map(|task| {
            (
                task.ended_by_user,
                task.exit.as_ref().is_some_and(Exit::ok),
                task.runs,
            )
        })
        .collect();
    assert_eq!(
        ended,
        [
            (true, false, 1),
            (true, false, 1),
            (false, true, 1),
            (true, false, 0)
        ]
    );
}
