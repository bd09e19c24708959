//! Whoever looks at a run sees all of it, and changes nothing.

mod memory;

use cosched_core::*;
use memory::{Memory, Work, run_specs};

/// What is kept of one look.
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
    looks: Vec<Look>,
    decisions: Vec<Decision>,
}

impl Recorder for Watcher {
    fn watched(&mut self, now: &RunNow<'_>) {
        let id = |task: &WatchedTask<'_>| task.now.spec.id.0;
        let runs = |task: &&WatchedTask<'_>| matches!(task.now.doing, Doing::Runs(_));
        let waits = |task: &&WatchedTask<'_>| task.now.doing == Doing::Paused;
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

    fn decided(&mut self, record: DecisionRecord<'_>) {
        self.decisions.push(record.decision.clone());
    }
}

fn world() -> Memory {
    Memory::new(Machine::uniform("m", 2, 1), vec![Work::ms(1_000); 5])
}

fn play(looks: &[u64], max_pause: Nanos) -> (Watcher, RunResult, Memory) {
    let mut world = world();
    world.naps = looks
        .iter()
        .map(|&ms| (Nanos::from_ms(ms), Event::Watched))
        .collect();
    let mut watcher = Watcher::default();
    let config = RunConfig {
        jobs: 4,
        max_pause,
        ..RunConfig::default()
    };
    let specs = world.specs();
    let result = run_specs(&mut world, specs, "round-robin", &[], &config, &mut watcher);
    (watcher, result, world)
}

#[test]
fn a_look_tells_who_runs_who_waits_why_and_until_when() {
    let (watcher, ..) = play(&[500, 1_350], Nanos::from_ms(30_000));
    let [first, second] = &watcher.looks[..] else {
        panic!("{:?}", watcher.looks)
    };
    assert_eq!(
        (first.at, &first.pending[..]),
        (Nanos::from_ms(500), &[4][..])
    );
    assert_eq!((first.running.len(), first.waiting.len()), (2, 2));
    for (task, has_reason, latest) in &first.waiting {
        assert!(has_reason, "task {task}");
        let latest = latest.expect("it has begun");
        assert!(
            latest > Nanos::from_ms(30_000) && latest <= Nanos::from_ms(30_500),
            "{latest:?}"
        );
    }
    // Two CPUs for half a second, and what is under way counts.
    let ran: u64 = first.ran.iter().map(|ran| ran.0).sum();
    assert_eq!(ran, Nanos::from_ms(1_000).0);
    assert_eq!(second.at, Nanos::from_ms(1_350));
    assert!(first.earned.iter().flatten().all(|quanta| *quanta > 0.0));
}

#[test]
fn looking_changes_nothing() {
    let (unwatched, plain, _) = play(&[], Nanos::from_ms(30_000));
    let often: Vec<u64> = (0..250).map(|n| 10 * n).collect();
    let (watched, same, world) = play(&often, Nanos::from_ms(30_000));
    assert_eq!(watched.looks.len(), often.len());
    assert_eq!(watched.decisions, unwatched.decisions);
    assert_eq!(same.tasks, plain.tasks);
    // What was read less than a second ago is not read for a look.
    assert!(
        world.reads.iter().filter(|&&tasks| tasks == 0).count() >= often.len() - 10,
        "{:?}",
        world.reads
    );
}

#[test]
fn what_was_not_read_for_long_is_read_for_a_look() {
    let mut world = Memory::new(Machine::uniform("m", 1, 1), vec![Work::ms(5_000)]);
    world.naps = vec![(Nanos::from_ms(3_000), Event::Watched)];
    struct Told(Option<Nanos>);
    impl Recorder for Told {
        fn watched(&mut self, now: &RunNow<'_>) {
            self.0 = now.tasks[0].now.cpu_time.value();
        }
    }
    let (mut told, specs) = (Told(None), world.specs());
    run_specs(
        &mut world,
        specs,
        "fifo",
        &[("quantum_s", "5")],
        &RunConfig::default(),
        &mut told,
    );
    assert_eq!(told.0, Some(Nanos::from_ms(3_000)));
}

/// The user ends a task that runs and one that waits; the others go on, and no halt rule takes that for a failure.
#[test]
fn the_user_ends_tasks_that_have_begun() {
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
        fn warn(&mut self, _now: Nanos, warning: &Warning) {
            self.0.push(warning.clone());
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
            Warning::EndedByUser(TaskId(1))
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
            (false, true, 1)
        ]
    );
}
