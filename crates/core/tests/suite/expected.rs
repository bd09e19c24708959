//! Expectations of tasks, in the world in memory: the order of admission, waiting for memory, and the cost of wrong
//! expectations.

use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;

/// The starts in their order, and the warnings.
#[derive(Default)]
struct Told {
    starts: Vec<u32>,
    warnings: Vec<Warning>,
    /// The learnt models that were reported at the ends of tasks.
    learnt: Vec<(u32, Option<EarlierPhases>)>,
}

impl Recorder for Told {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Ended(result) => {
                self.learnt
                    .push((result.spec.id.0, result.learnt.as_deref().cloned()));
            }
            Fact::Warned(warning) => {
                self.warnings.push(warning.clone());
            }
            Fact::Started {
                task, again: false, ..
            } => {
                self.starts.push(task.id.0);
            }
            _ => {}
        }
    }
}

/// The lengths of a batch of forty in milliseconds: many short tasks, and a few long ones towards the end.
fn lengths() -> Vec<u64> {
    (0..40u64)
        .map(|ix| {
            200 + (ix * 7_919) % 900
                + if ix % 9 == 7 { 3_000 } else { 0 }
                + if ix == 38 { 6_000 } else { 0 }
        })
        .collect()
}

const CPUS: u32 = 4;

/// Runs tasks of these lengths with other expectations, and returns the turnaround in seconds and the starts.
fn batch(
    policy: &str,
    expected: impl Fn(usize) -> Option<u64>,
    config: &RunConfig,
) -> (f64, Vec<u32>) {
    let mut world = Memory::new(
        Machine::uniform("memory", CPUS, 1),
        lengths().into_iter().map(Work::ms).collect(),
    );
    let mut specs = world.specs();
    for (ix, spec) in specs.iter_mut().enumerate() {
        spec.expected = expected(ix).map(|ms| Expected::of(Nanos::from_ms(ms), ExpectedFrom::Same));
    }
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, policy, &[], config, &mut told);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit.as_ref().is_some_and(Exit::ok))
            && result.policy_faults == 0
    );
    (result.turnaround.as_s(), told.starts)
}

fn jobs(jobs: usize) -> RunConfig {
    RunConfig {
        jobs,
        ..RunConfig::default()
    }
}

/// A lower bound on every schedule.
fn least_s() -> f64 {
    let all = lengths();
    let sum: u64 = all.iter().sum();
    (sum as f64 / f64::from(CPUS)).max(*all.iter().max().unwrap() as f64) / 1e3
}

#[test]
fn the_longest_begin_first_and_the_batch_ends_sooner() {
    let known = |ix: usize| Some(lengths()[ix]);
    let (given_s, starts) = batch("fifo", |_| None, &jobs(4));
    assert_eq!(
        starts,
        (0..40).collect::<Vec<u32>>(),
        "nothing changes where nothing is known"
    );
    let (same_s, starts) = batch("fifo", |_| Some(1_000), &jobs(4));
    assert_eq!(
        (same_s, &starts),
        (given_s, &(0..40).collect()),
        "nor where all is alike"
    );
    let kept = RunConfig {
        order: Order::Given,
        ..jobs(4)
    };
    assert_eq!(batch("fifo", known, &kept).0, given_s);
    let (longest_s, starts) = batch("fifo", known, &jobs(4));
    assert_eq!(starts[0], 38);
    assert!(
        longest_s < 1.05 * least_s() && given_s > 1.25 * least_s(),
        "{given_s} {longest_s} {}",
        least_s()
    );
    // Also with more tasks admitted than CPUs, and with time-sharing.
    assert!(batch("fifo", known, &jobs(16)).0 < 1.05 * least_s());
    let shared =
        |expected: &dyn Fn(usize) -> Option<u64>| batch("round-robin", expected, &jobs(8)).0;
    assert!(
        shared(&known) < 0.95 * shared(&|_| None),
        "{} {}",
        shared(&known),
        shared(&|_| None)
    );
}

/// Programs that disturb each other look long, and must not come side by side for it.
#[test]
fn the_longest_may_wait_while_there_is_room() {
    let (_, starts) = batch("fifo", |ix| Some(1_000 + 300 * (ix as u64 % 3)), &jobs(4));
    let (first, last) = starts.split_at(20);
    assert_eq!(first, (0..20).collect::<Vec<u32>>(), "as in the list");
    let longest = last.iter().rposition(|id| id % 3 == 2);
    assert!(longest < Some(last.len() - 4), "{last:?}");
}

/// Twenty that disturb each other, and then twenty that hardly do: the starts, and the neighbours of the first. `sd`: how
/// little is known of them. `first_cpus`: those that the first needs.
fn neighbours(policy: &str, cpus: u32, sd: f64, first_cpus: u32) -> (Vec<u32>, TaskResult) {
    let machine = Machine::uniform("memory", cpus, 1);
    let mut world = Memory::new(machine, vec![Work::ms(1_000); 40]);
    let mut specs = world.specs();
    for spec in &mut specs {
        let is_heavy = spec.id.0 < 20;
        spec.program = Some(if is_heavy { "heavy" } else { "light" }.into());
        spec.expected = Some(Expected::of(Nanos::from_ms(1_000), ExpectedFrom::Same));
        spec.interference = Some(Interference {
            sensitivity: if is_heavy { 2.0 } else { 0.2 },
            pressure: if is_heavy { 0.4 } else { 0.02 },
            bandwidth_pressure: 0.0,
            sensitivity_sd: sd,
            pressure_sd: 0.1 * sd,
            bandwidth_pressure_sd: 0.1 * sd,
        });
    }
    specs[1].cpus = first_cpus;
    let mut told = Told::default();
    let result = run_specs(
        &mut world,
        specs,
        policy,
        &[],
        &jobs(cpus as usize),
        &mut told,
    );
    (told.starts, result.tasks[0].clone())
}

#[test]
fn who_clearly_fits_better_begins_beside_who_runs() {
    let in_turn = (0..10).flat_map(|ix| [ix, 20 + ix]);
    let (starts, first) = neighbours("fifo", 2, 0.1, 1);
    assert_eq!(starts[..20], in_turn.collect::<Vec<u32>>());
    let beside = first.beside.unwrap();
    assert_eq!(beside.len(), 1);
    assert!((beside["light"].share_of(first.ran) - 1.0).abs() < 0.01);
    let as_listed: Vec<u32> = (0..40).collect();
    let (starts, first) = neighbours("fifo", 2, 3.0, 1);
    assert_eq!(starts, as_listed, "nothing is clear");
    assert!(first.beside.unwrap().contains_key("heavy"));
    let (starts, first) = neighbours("fifo", 9, 0.1, 1);
    assert_eq!((starts, first.beside), (as_listed, None), "too many CPUs");
    let (starts, _) = neighbours("fifo", 2, 0.1, 2);
    assert_eq!(starts[..2], [0, 1], "nobody passes who needs several CPUs");
    let (_, first) = neighbours("linux", 2, 0.1, 1);
    assert_eq!(first.beside, None, "on shared CPUs");
}

/// Wrong expectations never cost more than a random order: at most 2 - 1/m of the minimum (Graham, 1969).
#[test]
fn a_wrong_memory_costs_little() {
    let given_s = batch("fifo", |_| None, &jobs(4)).0;
    let right_s = batch("fifo", |ix| Some(lengths()[ix]), &jobs(4)).0;
    let all = lengths();
    // Wrong by a factor of ten for all tasks, either way: the order is the same.
    for (factor, divisor) in [(10, 1), (1, 10)] {
        let wrong_s = batch("fifo", |ix| Some(all[ix] * factor / divisor), &jobs(4)).0;
        assert!(wrong_s <= 1.05 * right_s, "{wrong_s} {right_s}");
    }
    // Wrong by a factor of ten, for some tasks upwards and for others downwards.
    let mixed_s = batch(
        "fifo",
        |ix| {
            Some(if ix % 2 == 0 {
                all[ix] * 10
            } else {
                all[ix] / 10
            })
        },
        &jobs(4),
    )
    .0;
    // Each task has another task's expectation: like a random order.
    let shuffled: Vec<f64> = (1..40)
        .map(|shift| batch("fifo", |ix| Some(all[(ix + shift) % 40]), &jobs(4)).0)
        .collect();
    let mean = shuffled.iter().sum::<f64>() / shuffled.len() as f64;
    let bound = (2.0 - 1.0 / f64::from(CPUS)) * least_s();
    assert!(
        shuffled.iter().chain([&mixed_s]).all(|&s| s <= bound),
        "{shuffled:?} {bound}"
    );
    assert!(mean <= 1.02 * given_s, "{mean} {given_s}");
    // The worst case: the shortest first.
    let backward_s = batch("fifo", |ix| Some(10_000_000 / all[ix]), &jobs(4)).0;
    assert!(backward_s <= bound, "{backward_s} {bound}");
}

/// A batch of eight alike on two CPUs, of which the first fails once.
#[test]
fn a_task_of_a_batch_is_tried_again_at_the_end() {
    let mut works = vec![Work::ms(1_000); 8];
    works[0] = Work::ms(1_000).exit(1);
    works[0].second = Some(Box::new(Work::ms(1_000)));
    let mut world = Memory::new(Machine::uniform("memory", 2, 1), works);
    let mut specs = world.specs();
    for spec in &mut specs {
        spec.expected = Some(Expected::of(Nanos::from_ms(1_000), ExpectedFrom::Same));
    }
    let config = RunConfig {
        attempts: 2,
        ..jobs(2)
    };
    let mut told = Told::default();
    run_specs(&mut world, specs, "fifo", &[], &config, &mut told);
    let ends: Vec<u32> = told.learnt.iter().map(|(id, _)| *id).collect();
    assert_eq!(ends.last(), Some(&0), "{ends:?}");
}

#[test]
fn tasks_that_come_later_and_again_take_their_turn() {
    let mut fails = Work::ms(100).exit(1);
    fails.second = Some(Box::new(Work::ms(100)));
    let mut world = Memory::new(
        Machine::uniform("memory", 1, 1),
        vec![fails, Work::ms(100), Work::ms(100), Work::ms(100)],
    );
    let mut specs = world.specs();
    for (spec, s) in specs.iter_mut().zip([1.0, 10.0, 50.0, 0.5]) {
        spec.expected = Some(Expected::of(Nanos::from_s(s), ExpectedFrom::Same));
    }
    specs[3].arrives = Nanos::from_ms(150);
    #[derive(Default)]
    struct Ends(Vec<u32>);
    impl Recorder for Ends {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Ended(result) = fact {
                self.0.push(result.spec.id.0);
            }
        }
    }
    let mut ends = Ends::default();
    let config = RunConfig {
        jobs: 2,
        attempts: 2,
        ..RunConfig::default()
    };
    run_specs(&mut world, specs, "fifo", &[], &config, &mut ends);
    // The first task fails and waits anew. The fourth is shorter and has waited longer.
    assert_eq!(ends.0, [1, 2, 3, 0]);
}

/// The order in which tasks of these lengths start on one CPU. Each arrives at its time in ms.
fn starts_of(tasks: &[(u64, u64)]) -> Vec<u32> {
    let works = tasks.iter().map(|&(ms, _)| Work::ms(ms)).collect();
    let mut world = Memory::new(Machine::uniform("memory", 1, 1), works);
    let mut specs = world.specs();
    for (spec, &(ms, arrives)) in specs.iter_mut().zip(tasks) {
        spec.expected = Some(Expected::of(Nanos::from_ms(ms), ExpectedFrom::Same));
        spec.arrives = Nanos::from_ms(arrives);
    }
    let mut told = Told::default();
    run_specs(&mut world, specs, "fifo", &[], &jobs(1), &mut told);
    told.starts
}

#[test]
fn where_tasks_arrive_over_time_short_ones_pass_long_ones_but_not_for_ever() {
    let last = (200, 60_000);
    let starts = starts_of(&[(8_000, 0), (500, 0), (2_000, 0), (510, 0), last]);
    assert_eq!(starts, [1, 3, 2, 0, 4], "similar ones as they came");
    // The last arrival does not make a batch of the rest.
    let starts = starts_of(&[(300, 0), (200, 0), (200, 0), (1_000, 0), (100, 250)]);
    assert_eq!(starts, [1, 2, 4, 0, 3]);
    // Some short tasks always wait: one comes whenever one ends.
    let mut tasks = vec![(2_000, 0), (500, 0), (500, 0)];
    tasks.extend((0..20).map(|ix| (500, 500 * ix)));
    tasks.push(last);
    let starts = starts_of(&tasks);
    let long = starts.iter().position(|&id| id == 0).unwrap();
    assert!((4..12).contains(&long), "{starts:?}");
}

/// The time for a batch of eight tasks of 1 s with these expected memory needs, of 100 in all.
fn with_memory(needs: &[u64]) -> (f64, Told) {
    let mut world = Memory::new(
        Machine::uniform("memory", 2, 1),
        needs.iter().map(|_| Work::ms(1_000)).collect(),
    );
    world.memory = Some(100);
    let mut specs = world.specs();
    for (spec, &bytes) in specs.iter_mut().zip(needs) {
        let expected = Expected::of(Nanos::from_ms(1_000), ExpectedFrom::Same);
        spec.expected = Some(Expected {
            memory: Some(bytes),
            ..expected
        });
    }
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, "fifo", &[], &jobs(2), &mut told);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit.as_ref().is_some_and(Exit::ok))
    );
    (result.turnaround.as_s(), told)
}

#[test]
fn what_does_not_fit_waits_and_lets_others_pass() {
    let (fits_s, told) = with_memory(&[50; 8]);
    assert!(told.warnings.is_empty() && fits_s < 4.1, "{fits_s}");
    let (one_by_one_s, told) = with_memory(&[60; 8]);
    assert_eq!(told.warnings, [Warning::WaitsForMemory(TaskId(1))]);
    assert!((7.9..8.1).contains(&one_by_one_s), "{one_by_one_s}");
    let (passes_s, told) = with_memory(&[60, 60, 10, 10, 10, 10, 10, 10]);
    assert_eq!(
        told.starts[..3],
        [0, 2, 1],
        "the third passes the second, which comes as soon as it fits"
    );
    assert!(passes_s < 4.6, "{passes_s}");
}

/// A task that never fits runs alone at the end: it does not wait for ever, and costs at most its own length.
#[test]
fn what_never_fits_is_started_when_nothing_else_runs() {
    let (plain_s, _) = with_memory(&[10; 8]);
    let (wrong_s, told) = with_memory(&[10, 10_000_000_000_000, 10, 10, 10, 10, 10, 10]);
    assert_eq!(told.starts.last(), Some(&1));
    assert_eq!(
        told.warnings,
        [
            Warning::WaitsForMemory(TaskId(1)),
            Warning::ShortOfMemory(TaskId(1))
        ]
    );
    assert!(wrong_s <= plain_s + 1.1, "{plain_s} {wrong_s}");
    let (alone_s, told) = with_memory(&[500]);
    assert_eq!(
        (told.warnings, alone_s < 1.1),
        (vec![Warning::ShortOfMemory(TaskId(0))], true)
    );
}

#[test]
fn what_was_learnt_of_a_task_is_told_when_it_ends() {
    // More tasks than CPUs, so that this policy measures them alone.
    let work = vec![
        Work::ms(9_000).reads(40),
        Work::ms(9_000).reads(30),
        Work::ms(9_000).reads(20),
        Work::ms(1),
    ];
    let mut world = Memory::new(Machine::uniform("memory", 2, 1), work);
    let specs = world.specs();
    let mut told = Told::default();
    let result = run_specs(&mut world, specs, "perf-fair", &[], &jobs(4), &mut told);
    let learnt = |id: u32| {
        told.learnt
            .iter()
            .find(|told| told.0 == id)
            .unwrap()
            .1
            .as_ref()
    };
    let Some(first) = learnt(0) else {
        panic!("{:?}", told.learnt)
    };
    assert!(
        first.is_sound() && (first.phases[0].solo_cpi - 1.0).abs() < 0.05,
        "{first:?}"
    );
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.learnt.as_deref() == learnt(task.spec.id.0)),
        "{:?}",
        told.learnt
    );
    assert_eq!(learnt(3), None, "it was too short to be measured");
    let none = EarlierPhases::default();
    let many = EarlierPhases {
        phases: vec![first.phases[0]; 9],
    };
    let odd = EarlierPhases {
        phases: vec![EarlierPhase {
            solo_cpi: f64::NAN,
            ..first.phases[0]
        }],
    };
    assert!([none, many, odd].iter().all(|earlier| !earlier.is_sound()));
}
