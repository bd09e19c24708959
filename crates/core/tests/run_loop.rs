//! The loop, against a world in memory.

mod memory;

use cosched_core::*;
use memory::{Act, Memory, Work, run_policy, run_specs};

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

#[test]
fn every_policy_ends_every_batch() {
    for entry in POLICIES {
        for (cores, jobs) in [(1, 1), (1, 5), (2, 2), (2, 8), (4, 7), (3, 0)] {
            let work = (0..jobs)
                .map(|i| Work::ms(300 + 170 * i).reads(i))
                .collect();
            let mut world = world(cores, work);
            let result = run_policy(&mut world, entry.name, &[], &RunConfig::default());
            assert_eq!(result.policy_faults, 0, "{}", entry.name);
            assert_eq!(result.ended_by, EndedBy::Completion);
            for task in &result.tasks {
                assert_eq!(
                    task.exit,
                    Some(Exit::Code(0)),
                    "{} {cores} {jobs}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn fifo_runs_each_to_its_end_in_order() {
    let mut world = world(
        2,
        vec![Work::ms(300), Work::ms(100), Work::ms(100), Work::ms(100)],
    );
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    assert_eq!(finish_ms(&result), [300, 100, 200, 300]);
    assert!(
        world
            .acts
            .iter()
            .all(|(_, act)| matches!(act, Act::Start(_))),
        "nothing is stopped or moved"
    );
}

/// What the backend needs to start a task is no time of the task.
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

/// Whoever notes starts knows of all tasks that may run, whenever the process dies.
#[test]
fn a_start_is_told_before_it_happens() {
    #[derive(Default)]
    struct Told(Vec<(u32, &'static str)>);
    impl Recorder for Told {
        fn starting(&mut self, _: Nanos, task: &TaskSpec) {
            self.0.push((task.id.0, "starting"));
        }
        fn started(&mut self, _: Nanos, task: &TaskSpec) {
            self.0.push((task.id.0, "started"));
        }
        fn restarted(&mut self, _: Nanos, task: &TaskSpec, _: u32) {
            self.0.push((task.id.0, "restarted"));
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
fn round_robin_shares_by_quantum() {
    let mut world = world(1, vec![Work::ms(400), Work::ms(400)]);
    let result = run_policy(&mut world, "round-robin", &[], &RunConfig::default());
    assert_eq!(finish_ms(&result), [600, 800]);
    assert_eq!(result.tasks[0].waited_max, Nanos::from_ms(200));
}

/// Where more than half of the tasks have a CPU, some run on. It must not be the same ones each time.
#[test]
fn equal_tasks_get_equal_turns() {
    for policy in ["round-robin", "bandwidth", "fair", "perf-fair"] {
        for (cores, tasks) in [(2, 3), (3, 5), (4, 5), (4, 6), (4, 7), (4, 11)] {
            let mut world = world(cores, vec![Work::ms(6_000); tasks]);
            world
                .capabilities
                .missing
                .insert(Capability::Ipc, Absence::NoCounters);
            let result = run_policy(&mut world, policy, &[], &RunConfig::default());
            let finish = finish_ms(&result);
            let spread = finish.iter().max().unwrap() - finish.iter().min().unwrap();
            assert!(
                spread <= 3 * 200,
                "{policy}, {tasks} on {cores}: {finish:?}"
            );
        }
    }
}

#[test]
fn a_freed_cpu_is_filled_at_once_and_only_that() {
    let mut world = world(
        2,
        vec![
            Work::ms(1_000),
            Work::ms(50),
            Work::ms(1_000),
            Work::ms(1_000),
        ],
    );
    run_policy(&mut world, "round-robin", &[], &RunConfig::default());
    let at_50: Vec<&Act> = world
        .acts
        .iter()
        .filter(|(at, _)| *at == Nanos::from_ms(50))
        .map(|(_, act)| act)
        .collect();
    assert_eq!(at_50, [&Act::Start(2)]);
}

#[test]
fn no_cpu_idles_while_a_task_waits() {
    for policy in ["fifo", "round-robin", "bandwidth", "fair"] {
        let mut world = world(2, (0..6).map(|i| Work::ms(200 + 90 * i)).collect());
        let capabilities = &mut world.capabilities.missing;
        capabilities.insert(Capability::Ipc, Absence::NoCounters);
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        let total: u64 = (0..6).map(|i| 200 + 90 * i).sum();
        assert!(
            result.turnaround < Nanos::from_ms(total / 2 + 650),
            "{policy}: {:?}",
            result.turnaround
        );
    }
}

#[test]
fn a_gang_gets_its_cpus_together_and_starves_nobody() {
    for entry in POLICIES {
        let mut world = world(4, (0..6).map(|i| Work::ms(500 + 10 * i)).collect());
        let mut specs = world.specs();
        specs[2].cpus = 3;
        specs[4].cpus = 4;
        let result = run_specs(
            &mut world,
            specs,
            entry.name,
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{}",
            entry.name
        );
        assert_eq!(result.policy_faults, 0);
    }
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
fn a_late_task_starts_at_the_least_progress() {
    struct Watch(Vec<f64>);
    impl Recorder for Watch {
        fn decided(&mut self, record: DecisionRecord<'_>) {
            if let Some(task) = record.snapshot.task(TaskId(2))
                && task.estimates.executed == 0
            {
                let least = record.snapshot.tasks[..2]
                    .iter()
                    .map(|t| t.estimates.progress.value().unwrap());
                assert!(
                    task.estimates.progress.value().unwrap()
                        >= least.fold(f64::MAX, f64::min) - 1.0
                );
                self.0.push(task.estimates.progress.value().unwrap());
            }
        }
    }
    let mut world = world(1, vec![Work::ms(4_000), Work::ms(4_000), Work::ms(1_000)]);
    let mut specs = world.specs();
    specs[2].arrives = Nanos::from_ms(3_000);
    let mut watch = Watch(Vec::new());
    run_specs(
        &mut world,
        specs,
        "fair",
        &[],
        &RunConfig::default(),
        &mut watch,
    );
    assert!(watch.0[0] > 5.0, "{:?}", watch.0);
}

#[test]
fn fair_equalises_progress_and_bandwidth_does_not_starve() {
    let work = || {
        (0..6)
            .map(|i| Work::ms(4_000).reads(20 * i))
            .collect::<Vec<_>>()
    };
    let mut world = self::world(2, work());
    let result = run_policy(&mut world, "fair", &[], &RunConfig::default());
    let ends = finish_ms(&result);
    assert!(
        ends.iter().max().unwrap() - ends.iter().min().unwrap() < 1_500,
        "{ends:?}"
    );
    let mut world = self::world(2, work());
    let result = run_policy(&mut world, "bandwidth", &[], &RunConfig::default());
    let waited = result
        .tasks
        .iter()
        .map(|task| task.waited_max)
        .max()
        .unwrap();
    assert!(waited <= Nanos::from_ms(200 * 7), "{waited:?}");
}

#[test]
fn perf_fair_measures_everyone_alone_and_reports_progress() {
    let mut world = world(2, (0..6).map(|i| Work::ms(4_000).reads(20 * i)).collect());
    let result = run_policy(&mut world, "perf-fair", &[], &RunConfig::default());
    for task in &result.tasks {
        assert_eq!(task.progress_basis, ProgressBasis::Ipc);
        // No contention in this world: solo IPC is the IPC, and 4 s are 20 quanta.
        let progress = task.progress.value().unwrap();
        assert!((progress - 20.0).abs() < 0.1, "{progress}");
    }
}

#[test]
fn a_mask_of_half_a_core_keeps_nobody_from_being_measured() {
    for policy in ["fair", "perf-fair"] {
        let mut world = Memory::new(
            Machine::uniform("two by two", 2, 2),
            (0..7).map(|_| Work::ms(4_000).reads(50)).collect(),
        );
        let mut specs = world.specs();
        specs[0].allowed = Some("0".parse().unwrap());
        // No three cores are there, and no core that a gang could have with its mask.
        specs[1].cpus = 3;
        specs[2].allowed = Some("0,1".parse().unwrap());
        specs[2].cpus = 2;
        let result = run_specs(
            &mut world,
            specs,
            policy,
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        for task in &result.tasks {
            assert_eq!(
                task.progress_basis,
                ProgressBasis::Ipc,
                "{policy} {}",
                task.spec.name
            );
        }
    }
}

#[test]
fn what_cannot_be_stopped_is_measured_around() {
    let measured = |reads: u64| {
        let mut work: Vec<Work> = (0..7).map(|_| Work::ms(4_000).reads(50)).collect();
        work[0].reads_per_us = reads;
        work[0].needs = Nanos::from_ms(12_000);
        let mut world = Memory::new(Machine::uniform("two by two", 2, 2), work);
        let mut specs = world.specs();
        // It keeps one thread of a core, so that the task that may only use the other can't have the core to itself.
        specs[0].control.freeze = false;
        specs[0].allowed = Some("0".parse().unwrap());
        specs[1].allowed = Some("2".parse().unwrap());
        let result = run_specs(
            &mut world,
            specs,
            "perf-fair",
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        assert_eq!(result.policy_faults, 0);
        result.tasks[2..]
            .iter()
            .filter(|task| task.progress_basis == ProgressBasis::Ipc)
            .count()
    };
    assert_eq!(measured(1), 5);
    // Beside a heavy one that goes on, nothing that is measured would hold; only who is left at the end runs alone.
    assert!(measured(50) <= 1);
}

#[test]
fn when_the_measured_task_ends_the_cpus_are_filled_at_once() {
    let mut work: Vec<Work> = (0..6).map(|_| Work::ms(1_000).reads(50)).collect();
    work[1] = Work::ms(1_000);
    work[0].needs = Nanos::from_ms(230);
    let mut world = world(3, work);
    run_policy(&mut world, "perf-fair", &[], &RunConfig::default());
    let at = |ms| {
        world
            .acts
            .iter()
            .filter(|(at, _)| *at == Nanos::from_ms(ms))
            .count()
    };
    // Three run, three take their places, then the first is measured beside the only light one.
    assert_eq!((at(0), at(200), at(400)), (3, 6, 5));
    assert_eq!(at(430), 2, "{:?}", world.acts);
}

#[test]
fn counters_that_vanish_are_survived() {
    for policy in ["bandwidth", "fair", "perf-fair"] {
        let mut world = world(2, (0..5).map(|i| Work::ms(2_000).reads(i)).collect());
        world.counters_until = Some(Nanos::from_ms(1_900));
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        for task in &result.tasks {
            assert_eq!(task.exit, Some(Exit::Code(0)));
            assert_eq!(
                task.counts[Counter::Cycles],
                Reading::Absent(Absence::CountersLost)
            );
        }
    }
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

/// Closing one task's interval looks at the others. Done for each by itself, that would cost the square of their number.
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
        // All before they are told to end, and each when it has ended.
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
    // Batch systems send SIGTERM several times; whoever presses Ctrl-C again does not want to wait.
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

/// A job that saves its state and ends with 0 when it is told to is not done.
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

#[test]
fn a_bounded_pause_is_kept() {
    // Three jobs take turns of 10 s on one CPU.
    let longest_pause = |max_pause_s: u64| {
        let mut world = world(1, (0..3).map(|_| Work::ms(40_000)).collect());
        let config = RunConfig {
            max_pause: Nanos::from_ms(1_000 * max_pause_s),
            ..RunConfig::default()
        };
        let params = [("quantum_s", "10"), ("progress_margin_quanta", "0")];
        let result = run_policy(&mut world, "perf-fair", &params, &config);
        result
            .tasks
            .iter()
            .map(|task| task.waited_max)
            .max()
            .unwrap()
    };
    let (bounded, free) = (longest_pause(5), longest_pause(3_600));
    assert!(bounded <= Nanos::from_ms(5_000 + 10_000), "{bounded:?}");
    assert!(
        free > Nanos::from_ms(5_000 + 10_000),
        "without the bound the pauses are longer: {free:?}"
    );
}

#[test]
fn a_policy_that_asks_for_nonsense_is_stood_in_for() {
    struct Nonsense(u32);
    impl Policy for Nonsense {
        fn decide(&mut self, snap: &Snapshot, _: &mut Rng) -> Decision {
            self.0 += 1;
            let cpu = |n: u32| [CpuId(n)].into_iter().collect::<CpuSet>();
            let place = |task, cpus| Change::Place {
                task,
                placement: Placement::Exclusive {
                    cpus,
                    whole_core: false,
                },
                lease_end: None,
                purpose: Purpose::Run,
            };
            let changes = match self.0 % 5 {
                0 => vec![place(TaskId(99), cpu(0))],
                1 => snap
                    .tasks
                    .iter()
                    .map(|task| place(task.id, cpu(0)))
                    .collect(),
                2 => vec![place(snap.tasks[0].id, cpu(77))],
                3 => vec![],
                _ => vec![place(snap.tasks[0].id, CpuSet::new())],
            };
            let stop = snap
                .tasks
                .iter()
                .filter(|t| t.running.is_some())
                .map(|t| Change::Stop { task: t.id });
            let changes = if self.0 % 5 == 3 {
                stop.collect()
            } else {
                changes
            };
            Decision {
                changes,
                next_wake: (self.0 % 5 != 3).then_some(snap.now + Nanos(1)),
                ..Decision::default()
            }
        }
        fn save(&self) -> serde_json::Value {
            self.0.into()
        }
        fn load(&mut self, _: &serde_json::Value) -> Result<(), serde_json::Error> {
            Ok(())
        }
    }
    let mut world = world(2, vec![Work::ms(500), Work::ms(500), Work::ms(500)]);
    let specs = world.specs();
    let result = run(
        &mut world,
        &mut Nonsense(0),
        &mut NullRecorder,
        specs,
        &RunConfig::default(),
    )
    .unwrap();
    assert!(result.policy_faults > 2);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

#[test]
fn a_task_that_sleeps_gives_way_and_gets_its_turn_again() {
    let ms = Nanos::from_ms;
    for policy in ["round-robin", "bandwidth", "fair", "perf-fair"] {
        let mut world = world(1, vec![Work::ms(300), Work::ms(300)]);
        // It falls asleep on its CPU and is then frozen, so that nobody can see it wake; the second nap is news that
        // came too late.
        world.naps = vec![
            (ms(100), Event::Slept(TaskId(0))),
            (ms(250), Event::Slept(TaskId(0))),
        ];
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        assert_eq!(result.policy_faults, 0, "{policy}");
        assert_eq!(result.turnaround, ms(600), "{policy}");
    }
}

#[test]
fn many_short_jobs_do_not_put_off_the_end_of_the_quantum() {
    for policy in ["fifo", "linux"] {
        let mut work: Vec<Work> = (0..10).map(|_| Work::ms(150)).collect();
        work[0] = Work::ms(1_450);
        let mut world = world(2, work);
        let config = RunConfig {
            jobs: 2,
            ..RunConfig::default()
        };
        let result = run_policy(&mut world, policy, &[], &config);
        assert!(
            result.overhead.quanta >= 6,
            "{policy}: {}",
            result.overhead.quanta
        );
    }
}

#[test]
fn the_kernel_baseline_runs_everything_at_once() {
    let mut world = world(2, (0..4).map(|_| Work::ms(500)).collect());
    let result = run_policy(&mut world, "linux", &[], &RunConfig::default());
    assert_eq!(result.turnaround, Nanos::from_ms(1_000));
    assert_eq!(world.acts.len(), 4, "started once, never touched again");
}
