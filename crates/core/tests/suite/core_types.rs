//! The policies for two core types, in the world in memory: one big core at four times the clock of the small ones, as
//! in the lucky paper.

use crate::memory::{self, Memory, Work, run_policy, run_specs, two_types};
use cosched_core::*;
use std::collections::BTreeMap;

const HETEROGENEOUS: [&str; 3] = ["bias", "big-fair", "lucky"];

fn world(big: u32, small: u32, work: Vec<Work>) -> Memory {
    let mut world = Memory::new(two_types(big, small), work);
    world.clocks = vec![1.0, 0.25];
    world
}

/// The tasks on the big cores in each interval between two decisions, and the number of tasks on each side.
#[derive(Default)]
struct Watch {
    big: CpuSet,
    on_big: BTreeMap<u32, u32>,
    intervals: u32,
    /// Number of tasks on the big cores and on the small cores, after each decision.
    sides: Vec<(usize, usize)>,
}

impl Watch {
    fn of(world: &Memory) -> Watch {
        let big = world
            .machine
            .cpus
            .iter()
            .filter(|cpu| cpu.core_type == 0)
            .map(|cpu| cpu.id)
            .collect();
        Watch {
            big,
            ..Watch::default()
        }
    }

    fn share(&self, task: u32) -> f64 {
        f64::from(self.on_big.get(&task).copied().unwrap_or(0)) / f64::from(self.intervals)
    }
}

impl Recorder for Watch {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            assert!(!record.stood_in);
            assert!(
                record
                    .decision
                    .changes
                    .iter()
                    .all(|change| matches!(change, Change::Place { .. })),
                "never stops"
            );
            let mut sides = (0, 0);
            for task in &record.snapshot.tasks {
                let change = record
                    .decision
                    .changes
                    .iter()
                    .find(|change| change.task() == task.id);
                let placement = match (change, &task.running) {
                    (Some(Change::Place { placement, .. }), _) => placement,
                    (_, Some(running)) => &running.placement,
                    _ => panic!("{} waits", task.name),
                };
                assert!(matches!(placement, Placement::Shared { .. }));
                if placement.cpus().is_subset(&self.big) {
                    sides.0 += 1;
                    *self.on_big.entry(task.id.0).or_default() += 1;
                } else {
                    assert!(placement.cpus().intersection(&self.big).is_empty());
                    sides.1 += 1;
                }
            }
            self.intervals += 1;
            self.sides.push(sides);
        }
    }
}

fn watched(
    world: &mut Memory,
    policy: &str,
    params: &[(&str, &str)],
    seed: u64,
) -> (Watch, RunResult) {
    let mut watch = Watch::of(world);
    let specs = world.specs();
    let config = RunConfig {
        seed,
        ..RunConfig::default()
    };
    let result = run_specs(world, specs, policy, params, &config, &mut watch);
    assert_eq!(result.policy_faults, 0);
    (watch, result)
}

/// Four compute-bound tasks with the same number of cycles and different IPC.
fn computing(s: u64) -> Vec<Work> {
    [300, 600, 1_200, 2_000]
        .map(|ipc| Work::ms(s * 1_000).ipc(ipc).reads(0))
        .to_vec()
}

/// Capacities at 1 GHz. Only the big core has an idle power of 0, so benefits differ.
const POWERS: [(&str, &str); 9] = [
    ("big_capacity_mips", "2000"),
    ("small_capacity_mips", "500"),
    ("big_idle_w", "0"),
    ("to_big_alpha", "4"),
    ("to_big_beta", "0"),
    ("to_big_gamma_mips", "0"),
    ("to_small_alpha", "0.25"),
    ("to_small_beta", "0"),
    ("to_small_gamma_mips", "0"),
];

#[test]
fn lucky_gives_the_big_core_in_proportion_to_tickets() {
    let mut world = world(1, 3, computing(400));
    let (watch, result) = watched(&mut world, "lucky", &POWERS, 5);
    // benefit = 16 (0.7 + 1.45 u) / (18.9 u), where u is the share of the capacity that the task uses, by the model's
    // own equations (lucky, section 3).
    let tickets =
        [0.15, 0.3, 0.6, 1.0].map(|u: f64| (1_600.0 * (0.7 + 1.45 * u) / (18.9 * u)).round());
    let sum: f64 = tickets.iter().sum();
    // The first task ends after about 600 s, 3,000 draws: the standard deviation of a share is below 0.01.
    let first = result
        .tasks
        .iter()
        .map(|task| task.finished.unwrap())
        .min()
        .unwrap();
    let draws = first.0 / 200_000_000;
    assert!(draws > 2_000, "{draws}");
    let mut world = self::world(1, 3, computing(4_000));
    world.interrupts = vec![first];
    let (watch_until, _) = watched(&mut world, "lucky", &POWERS, 5);
    for (task, tickets) in tickets.iter().enumerate() {
        let share = watch_until.share(task as u32);
        assert!(
            (share - tickets / sum).abs() < 0.03,
            "task {task}: {share} for {tickets} of {sum} tickets"
        );
    }
    assert!(
        watch.sides.iter().all(|&(big, _)| big == 1),
        "the big core always has its one task"
    );
}

#[test]
fn lucky_gives_the_big_core_in_proportion_to_weights() {
    let alike = vec![Work::ms(100_000_000).reads(0); 4];
    let mut world = world(1, 3, alike);
    // 20,000 draws: the standard deviation of the least share is 2 % of it.
    world.interrupts = vec![Nanos::from_ms(4_000_000)];
    let mut specs = world.specs();
    let weights = [1.0, 2.0, 4.0, 1.0];
    for (spec, weight) in specs.iter_mut().zip(weights) {
        spec.weight = weight;
    }
    let mut watch = Watch::of(&world);
    let config = RunConfig::default();
    run_specs(&mut world, specs, "lucky", &POWERS, &config, &mut watch);
    for (task, weight) in (0..).zip(weights) {
        let share = watch.share(task) * 8.0 / weight;
        assert!((share - 1.0).abs() < 0.05, "task {task}: {share}");
    }
}

/// Of two swapped tasks, the one that left the big cores and the tasks that were there.
#[derive(Default)]
struct Swaps(Vec<(TaskId, Vec<TaskId>)>);

impl Recorder for Swaps {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let big: CpuSet = [CpuId(0), CpuId(1), CpuId(2)].into_iter().collect();
            let tasks = record.snapshot.tasks.iter().filter(|task| {
                let running = task.running.as_ref();
                running.is_some_and(|running| running.placement.cpus().is_subset(&big))
            });
            let before: Vec<TaskId> = tasks.map(|task| task.id).collect();
            let changed = record.decision.changes.iter().map(Change::task);
            let left: Vec<TaskId> = changed.filter(|task| before.contains(task)).collect();
            if let [left] = left[..] {
                self.0.push((left, before));
            }
        }
    }
}

#[test]
fn who_has_the_fewest_tickets_leaves_the_big_cores() {
    // Tickets fall as the IPC grows, and so with the number of the task.
    let work = (1..=7).map(|step| Work::ms(1_000_000).ipc(250 * step).reads(0));
    let mut world = world(3, 4, work.collect());
    world.interrupts = vec![Nanos::from_ms(40_000)];
    let specs = world.specs();
    let mut swaps = Swaps::default();
    run_specs(
        &mut world,
        specs,
        "lucky",
        &POWERS,
        &RunConfig::default(),
        &mut swaps,
    );
    assert!(swaps.0.len() > 50, "{}", swaps.0.len());
    for (left, before) in swaps.0 {
        assert_eq!(before.len(), 3);
        assert_eq!(Some(&left), before.iter().max(), "{before:?}");
    }
}

/// The share of the big core of each task, if tasks differ only in their lines per microsecond on it: the draws'
/// probabilities depend on the task that is there, so the shares are those that a draw leaves unchanged.
fn shares_with_memory(lines: [f64; 4], benefit: f64) -> [f64; 4] {
    let mut shares = [0.25; 4];
    for _ in 0..200 {
        let mut next = [0.0; 4];
        for (there, share) in shares.into_iter().enumerate() {
            let tickets = tickets_with_memory(lines, benefit, there);
            let sum: f64 = tickets.iter().sum();
            for (next, tickets) in next.iter_mut().zip(tickets) {
                *next += share * tickets / sum;
            }
        }
        shares = next;
    }
    shares
}

/// Tickets while one task is on the big core, which has 4 times the clock: the benefit by the square of what the task's
/// move does to all tasks' throughput on a bus of 150 lines per microsecond (EFS, Eqs. 9 and 12).
fn tickets_with_memory(lines: [f64; 4], benefit: f64, there: usize) -> [f64; 4] {
    use cosched_core::model::bus::{solo_utilisation, throughput};
    let clock = |task: usize| if task == there { 1.0 } else { 0.25 };
    let used: [f64; 4] = std::array::from_fn(|task| lines[task] * clock(task) / 150.0);
    let free = 1.0 - used.iter().sum::<f64>();
    let demands = used.map(|used| solo_utilisation(used, free).unwrap());
    std::array::from_fn(|task| {
        let with_clock = |now: f64| {
            let mut demands = demands;
            demands[task] = (demands[task] * now / clock(task)).min(1.0);
            throughput(&demands).unwrap()
        };
        100.0 * benefit * (with_clock(1.0) / with_clock(0.25)).powi(2)
    })
}

#[test]
fn with_shared_memory_who_slows_the_others_is_on_the_big_core_less_often() {
    let lines = [110, 110, 0, 0];
    let work = lines.map(|lines| Work::ms(100_000_000).ipc(1_000).reads(lines));
    let mut world = world(1, 3, work.to_vec());
    // 10,000 draws: the standard deviation of a share is below 0.005.
    world.interrupts = vec![Nanos::from_ms(2_000_000)];
    let (watch, _) = watched(&mut world, "lucky", &with(&[("memory", "shared")]), 5);
    // Half of the capacity is used on both types.
    let benefit = 16.0 * (0.7 + 1.45 * 0.5) / (18.9 * 0.5);
    let expected = shares_with_memory(lines.map(|lines| lines as f64), benefit);
    assert!(expected[0] < 0.235, "{expected:?}");
    for (task, expected) in (0..).zip(expected) {
        let share = watch.share(task);
        assert!(
            (share - expected).abs() < 0.012,
            "task {task}: {share}, expected {expected}"
        );
    }
}

/// `POWERS` with other values of some parameters.
fn with<'a>(params: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&POWERS, params].concat()
}

#[test]
fn inflated_tickets_keep_a_task_on_the_big_core() {
    let mut world = world(1, 3, computing(4_000));
    // 20,000 draws. With the factor the chain stays longer in each state.
    world.interrupts = vec![Nanos::from_ms(4_000_000)];
    let (watch, _) = watched(&mut world, "lucky", &with(&[("ticket_inflation", "8")]), 5);
    let tickets =
        [0.15, 0.3, 0.6, 1.0].map(|u: f64| (1_600.0 * (0.7 + 1.45 * u) / (18.9 * u)).round());
    // Task i on the big core gives way to j with probability t_j / (S + 7 t_i), where S is the sum: detailed balance
    // gives it the share t_i (S + 7 t_i) of the time.
    let sum: f64 = tickets.iter().sum();
    let shares = tickets.map(|held| held * (sum + 7.0 * held));
    for (task, share) in (0..).zip(shares) {
        let expected = share / shares.iter().sum::<f64>();
        let share = watch.share(task);
        assert!(
            (share - expected).abs() < 0.03,
            "task {task}: {share}, not {expected}"
        );
    }
}

#[test]
fn consolidation_leaves_idle_what_is_not_worth_its_power() {
    let on_big = |params: &[(&str, &str)]| {
        let mut world = world(1, 3, computing(400));
        world.interrupts = vec![Nanos::from_ms(10_000)];
        let params = with(&[&[("consolidation", "on")], params].concat());
        let (watch, _) = watched(&mut world, "lucky", &params, 5);
        (watch.sides.last().copied().unwrap(), world.acts)
    };
    // Nobody asks for memory: (4 + 3 x 1)^2 / (P + 3 p) is the most as long as the big core's power P is below
    // (49 / 9 - 1) x 3 p. On average tasks use 0.5125 of the capacity: p is 1.443 W, and P is so much of 37.5 W.
    assert_eq!(on_big(&[]).0, (1, 3));
    assert_eq!(on_big(&[("big_busy_w", "37")]).0, (1, 3));
    assert_eq!(on_big(&[("big_busy_w", "38")]).0, (0, 4));
}

#[test]
fn consolidation_stays_until_the_tasks_change() {
    let mut world = world(1, 3, computing(400));
    world.interrupts = vec![Nanos::from_ms(10_000)];
    let params = with(&[("consolidation", "on"), ("big_busy_w", "38")]);
    let (watch, _) = watched(&mut world, "lucky", &params, 5);
    // The first quantum measures.
    let later = &watch.sides[1..];
    assert!(later.iter().all(|&sides| sides == (0, 4)), "{later:?}");
}

#[test]
fn on_a_full_bus_one_core_does_as_much_as_all() {
    let work = vec![Work::ms(400_000).reads(50); 4];
    let mut world = world(1, 3, work);
    world.interrupts = vec![Nanos::from_ms(10_000)];
    let params = [("consolidation", "on"), ("mu_trans_per_us", "0.01")];
    let (watch, _) = watched(&mut world, "lucky", &with(&params), 5);
    assert_eq!(watch.sides.last(), Some(&(4, 0)));
}

#[test]
fn learnt_coefficients_give_the_shares_of_true_ones() {
    let share_of_first = |params: &[(&str, &str)]| {
        let reads = [3, 1, 7, 2];
        let work = computing(4_000).into_iter().zip(reads);
        let mut world = world(1, 3, work.map(|(work, reads)| work.reads(reads)).collect());
        world.interrupts = vec![Nanos::from_ms(3_000_000)];
        watched(&mut world, "lucky", &with(params), 5).0.share(0)
    };
    // By this coefficient nobody on a small core gains from the big one.
    let wrong = [("to_big_alpha", "1")];
    let learnt = [&wrong[..], &[("coefficients", "learnt")]].concat();
    let [truth, wrong, learnt] = [&[][..], &wrong, &learnt].map(share_of_first);
    assert!((wrong - truth).abs() > 0.05, "{wrong} {truth}");
    assert!((learnt - truth).abs() < 0.02, "{learnt} {truth}");
}

#[test]
fn by_default_lucky_favours_who_computes_and_shuts_nobody_out() {
    // At the paper's clocks: 5,000 MIPS without a miss, and 1,400 MIPS with 28 million misses a second, which stall it
    // more than half of the time.
    let computes = || Work::ms(900_000).ipc(5_000).reads(0);
    let misses = || Work::ms(900_000).ipc(1_400).reads(28).stalls(0.56);
    let mut world = world(1, 3, vec![misses(), computes(), misses(), computes()]);
    world.interrupts = vec![Nanos::from_ms(400_000)];
    let (watch, _) = watched(&mut world, "lucky", &[], 9);
    // By the model's equations and the default coefficients: about 190 and 78 tickets on the small core, 87 on the big
    // core.
    for (task, share) in [(0, 0.145), (1, 0.355), (2, 0.145), (3, 0.355)] {
        assert!(
            (watch.share(task) - share).abs() < 0.04,
            "task {task}: {}",
            watch.share(task)
        );
    }
}

#[test]
fn a_swap_keeps_the_load_of_each_type() {
    for policy in HETEROGENEOUS {
        for (big, small, tasks) in [(1, 3, 4), (1, 3, 8), (2, 2, 9), (2, 6, 3), (4, 4, 24)] {
            let work = (0..tasks)
                .map(|i| Work::ms(60_000).reads(i % 5 * 4).ipc(500 + 90 * i))
                .collect();
            let mut world = world(big, small, work);
            world.interrupts = vec![Nanos::from_ms(10_000)];
            let (watch, _) = watched(&mut world, policy, &[], 1);
            let first = watch.sides[0];
            // Every CPU gets its first task before any CPU gets its second.
            let layers = (tasks as usize / (big + small) as usize) as u64;
            assert!(
                first.0 as u64 >= layers * u64::from(big),
                "{policy} {first:?}"
            );
            assert!(
                watch.sides.iter().all(|&sides| sides == first),
                "{policy} {big} {small} {tasks}: {:?}",
                watch.sides
            );
            // The default quantum is 200 ms.
            assert!((50..=51).contains(&watch.intervals), "{}", watch.intervals);
        }
    }
}

#[test]
fn lucky_is_the_same_for_the_same_seed() {
    let shares = |seed| {
        let mut world = world(1, 3, computing(20));
        let (watch, result) = watched(&mut world, "lucky", &[], seed);
        (watch.on_big, world.acts.clone(), result.turnaround)
    };
    assert_eq!(shares(3), shares(3));
    assert_ne!(shares(3).0, shares(4).0);
}

#[test]
fn bias_keeps_the_lowest_miss_ratio_on_the_big_cores() {
    // Misses per second would choose the slowest, task 3; misses per instruction choose task 2.
    let work = |reads, ipc| Work::ms(50_000).reads(reads).ipc(ipc).stalls(0.3);
    let mut world = world(
        1,
        3,
        vec![work(10, 500), work(8, 1_000), work(6, 2_000), work(4, 400)],
    );
    world.interrupts = vec![Nanos::from_ms(20_000)];
    let (watch, _) = watched(&mut world, "bias", &[], 1);
    // The first quantum is spent on measuring.
    assert!(watch.share(2) > 0.97, "{:?}", watch.on_big);
    // Two big cores: the two tasks with the lowest ratios.
    let mut world = self::world(
        2,
        2,
        vec![work(10, 500), work(8, 1_000), work(6, 2_000), work(4, 400)],
    );
    world.interrupts = vec![Nanos::from_ms(20_000)];
    let (watch, _) = watched(&mut world, "bias", &[], 1);
    assert!(
        watch.share(2) > 0.97 && watch.share(1) > 0.97,
        "{:?}",
        watch.on_big
    );
}

#[test]
fn big_fair_gives_everybody_the_same_share() {
    for (big, small, tasks) in [(1, 3, 4), (2, 2, 4), (2, 4, 7), (3, 1, 5)] {
        let work: Vec<Work> = (0..tasks)
            .map(|i| Work::ms(300_000).reads(i).ipc(400 + 100 * i))
            .collect();
        let mut world = world(big, small, work);
        world.interrupts = vec![Nanos::from_ms(42_100)];
        let (watch, _) = watched(&mut world, "big-fair", &[], 1);
        let counts: Vec<u32> = (0..tasks as u32).map(|task| watch.on_big[&task]).collect();
        let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(max - min <= 1, "{big} {small}: {counts:?}");
    }
}

#[test]
fn what_ends_on_the_big_cores_leaves_its_place_to_another() {
    for policy in HETEROGENEOUS {
        let mut world = world(
            1,
            3,
            (0..4).map(|i| Work::ms(1_500 + 10 * i).reads(i)).collect(),
        );
        let (watch, result) = watched(&mut world, policy, &[], 1);
        // Within a quantum after a task's end the big core has a task again; only then may it be idle.
        let idle = watch
            .sides
            .iter()
            .filter(|&&(big, small)| big == 0 && small > 0)
            .count();
        assert!(idle <= 4, "{policy}: {:?}", watch.sides);
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0)))
        );
        // 6 s of work in all, 1.75 big cores' worth of speed.
        assert!(
            result.turnaround < Nanos::from_ms(5_000),
            "{policy}: {:?}",
            result.turnaround
        );
    }
}

#[test]
fn masks_and_gangs_stay_where_they_can_run() {
    for policy in HETEROGENEOUS {
        let mut world = world(2, 3, (0..7).map(|i| Work::ms(4_000).reads(i)).collect());
        let mut specs = world.specs();
        specs[0].allowed = Some("1".parse().unwrap());
        specs[1].allowed = Some("3-4".parse().unwrap());
        specs[2].cpus = 3;
        specs[3].cpus = 2;
        specs[4].cpus = 5;
        specs[5].allowed = Some("1,2".parse().unwrap());
        let result = run_specs(
            &mut world,
            specs,
            policy,
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        assert_eq!(result.policy_faults, 0, "{policy}");
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{policy}"
        );
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.waited_max == Nanos::ZERO),
            "{policy}: nobody ever waits"
        );
        for (_, act) in &world.acts {
            match act {
                memory::Act::Move(0 | 1 | 2 | 4, cpus) => panic!("{policy} moves to {cpus}"),
                memory::Act::Move(5, cpus) => {
                    assert!(["1", "2"].contains(&cpus.as_str()), "{policy}: {cpus}")
                }
                memory::Act::Move(3, cpus) => {
                    assert!(["0-1", "2-4"].contains(&cpus.as_str()), "{policy}: {cpus}")
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_gang_changes_places_with_as_many_tasks_as_it_has_cpus() {
    let mut work = vec![Work::ms(10_000_000).reads(0); 3];
    work[0].threads = 2;
    let mut world = world(2, 2, work);
    // 20,000 draws.
    world.interrupts = vec![Nanos::from_ms(4_000_000)];
    let mut specs = world.specs();
    specs[0].cpus = 2;
    let mut watch = Watch::of(&world);
    let config = RunConfig::default();
    run_specs(&mut world, specs, "lucky", &POWERS, &config, &mut watch);
    // All have the same tickets, so the gang wins a third of the draws, and then nobody is beside it. A task that wins
    // from the gang, two draws of nine, is alone on the big cores until the next quantum.
    let shares = [3.0, 5.0, 5.0].map(|ninths| ninths / 9.0);
    for (task, expected) in (0..).zip(shares) {
        let share = watch.share(task);
        assert!((share - expected).abs() < 0.02, "task {task}: {share}");
    }
}

#[test]
fn one_type_of_core_is_a_shortfall_that_ends_the_run() {
    let mut capabilities = Capabilities::default();
    capabilities
        .missing
        .insert(Capability::CoreTypes, Absence::OneCoreType);
    for policy in HETEROGENEOUS {
        let entry = find_policy(policy).unwrap();
        let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
        let shortfalls = entry.shortfalls(&params, &capabilities);
        assert_eq!(shortfalls.len(), 1, "{policy}");
        assert_eq!(
            (shortfalls[0].capability, shortfalls[0].importance),
            (Capability::CoreTypes, Importance::Required)
        );
        assert!(
            entry
                .shortfalls(&params, &Capabilities::default())
                .is_empty()
        );
    }
}

#[test]
fn the_most_extreme_parameters_are_in_the_range_of_the_model() {
    let entry = find_policy("lucky").unwrap();
    let bound = |most: bool| -> Vec<(String, String)> {
        let value = |spec: &ParamSpec| match spec.kind {
            ParamKind::Number { min, max, .. } => (
                spec.name.to_owned(),
                if most { max } else { min }.to_string(),
            ),
            ParamKind::Choice(words) => (spec.name.to_owned(), words[0].to_owned()),
        };
        entry.params.iter().map(value).collect()
    };
    for most in [false, true] {
        let params = Params::resolve(entry.name, entry.params, &bound(most)).unwrap();
        (entry.build)(&params);
    }
    let power = [("big_busy_w", "1e6"), ("big_idle_w", "1e6")];
    let params = [
        ("quantum_s", "0.2"),
        power[0],
        power[1],
        ("to_big_alpha", "-5"),
        ("to_small_alpha", "1e6"),
    ];
    let mut world = world(1, 3, computing(5));
    let result = run_policy(&mut world, "lucky", &params, &RunConfig::default());
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

#[test]
fn rates_are_those_of_the_time_on_a_cpu() {
    struct Look;
    impl Recorder for Look {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact {
                for task in record
                    .snapshot
                    .tasks
                    .iter()
                    .filter(|task| task.estimates.executed > 1)
                {
                    // Three tasks share a CPU, each at solo speed while it is on the CPU: 1,000 MIPS and 6 reads a
                    // microsecond.
                    let instructions = task.estimates.cpu_instructions.value().unwrap() as f64;
                    let reads = task.estimates.cpu_mm_reads.value().unwrap().per_us();
                    assert!((instructions / 1e6 - 1.0).abs() < 0.01, "{instructions}");
                    assert!((reads - 6.0).abs() < 0.1, "{reads}");
                    assert!(task.estimates.mm_reads.value().unwrap().per_us() < 2.1);
                }
            }
        }
    }
    let mut world = Memory::new(
        Machine::uniform("one", 1, 1),
        vec![Work::ms(1_000).reads(6); 3],
    );
    let specs = world.specs();
    let mut events = Look;
    let result = run_specs(
        &mut world,
        specs,
        "linux",
        &[],
        &RunConfig::default(),
        &mut events,
    );
    assert!(result.overhead.decisions > 10);
}
