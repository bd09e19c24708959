//! Where each policy must win, where it must lose, and against which others, on built-in machines with built-in
//! programs. Each claim holds for five seeds, which vary the instances of the programs.

mod lab;

use cosched_core::*;
use cosched_sim::program::ProgramPhase;
use cosched_sim::*;
use lab::{JobScene, SEEDS, heavy, starving, walkers};
use std::collections::BTreeMap;

/// A scene and its runs, by policy and seed.
struct Shown {
    scene: JobScene,
    runs: BTreeMap<(&'static str, u64), lab::ScenarioRun>,
}

impl Shown {
    fn new(scene: JobScene) -> Shown {
        Shown {
            scene,
            runs: BTreeMap::new(),
        }
    }

    fn get(&mut self, policy: &'static str, seed: u64, metric: &str) -> f64 {
        self.runs
            .entry((policy, seed))
            .or_insert_with(|| self.scene.run(policy, seed))
            .get(metric)
    }

    /// Asserts that a policy has at most the share `most` of each other policy's value of this metric (less is better).
    fn wins(&mut self, metric: &str, policy: &'static str, most: f64, others: &[&'static str]) {
        for &other in others {
            let values: Vec<(f64, f64)> = SEEDS
                .map(|seed| {
                    (
                        self.get(policy, seed, metric),
                        self.get(other, seed, metric),
                    )
                })
                .collect();
            println!("{metric}: {policy} and {other} {values:.3?}");
            let worst = values
                .iter()
                .map(|(ours, theirs)| ours / theirs)
                .fold(0.0, f64::max);
            assert!(
                worst <= most,
                "{metric} of {policy} and {other}: {values:.3?}"
            );
        }
    }
}

/// Jobs that compute for 20 ms and sleep for 20 ms, in turns.
fn sleepers(count: usize) -> JobScene {
    let mut program = builtin_program("workload-compute").unwrap();
    let phase = ProgramPhase {
        instructions: 0.26e9,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 20.0,
        then_mb: Default::default(),
    };
    program.phases = vec![phase];
    JobScene::on("epyc-2cpu").custom(count, program, 1_000)
}

/// One core of 3.2 GHz and three of 0.8 GHz. Jobs that end start again until the last has ended once.
fn two_types(mix: &str) -> JobScene {
    // Each job has a tenth of its program's instructions to do.
    JobScene::on("big1-small3").mix(&format!("lucky/{mix}"), 0)
}

#[test]
fn linux_fills_cpus_whose_jobs_sleep_and_pays_for_each_switch() {
    // Each of them sleeps half of the time, and the kernel runs another at once. Quanta of 200 ms are too long for
    // that.
    let mut sleep = Shown::new(sleepers(8));
    for metric in ["turnaround_s", "antt"] {
        sleep.wins(
            metric,
            "linux",
            0.85,
            &["fifo", "round-robin", "bandwidth", "fair", "perf-fair"],
        );
    }
    sleep.wins("turnaround_s", "linux", 0.6, &["fifo"]);
    // Every few milliseconds a walker finds the cache filled by others.
    Shown::new(walkers()).wins("turnaround_s", "round-robin", 0.6, &["linux"]);
}

#[test]
fn a_job_that_sleeps_for_long_stops_nobody() {
    let mut program = builtin_program("workload-compute").unwrap();
    program.phases = vec![ProgramPhase {
        instructions: 3e7,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 2_000.0,
        then_mb: Default::default(),
    }];
    let scene = JobScene::on("i5-2500")
        .copies(11, "workload-compute", 2_000)
        .custom(1, program, 20_000);
    let mut sleep = Shown::new(scene);
    for metric in ["turnaround_s", "antt"] {
        sleep.wins(metric, "even", 1.1, &["round-robin"]);
    }
}

#[test]
fn fifo_switches_least_and_makes_the_last_wait_longest() {
    let mut walk = Shown::new(walkers());
    walk.wins(
        "turnaround_s",
        "fifo",
        0.97,
        &["linux", "round-robin", "efs"],
    );
    // These come close: where threads leave a cache to each other, a switch costs the newcomer alone.
    walk.wins(
        "turnaround_s",
        "fifo",
        0.99,
        &["fair", "perf-fair", "oracle"],
    );
    walk.wins("turnaround_s", "fifo", 1.02, &["bandwidth"]);
    walk.wins(
        "antt",
        "fifo",
        0.72,
        &[
            "linux",
            "round-robin",
            "bandwidth",
            "fair",
            "perf-fair",
            "oracle",
            "efs",
        ],
    );
    for other in [
        "round-robin",
        "bandwidth",
        "fair",
        "perf-fair",
        "oracle",
        "efs",
    ] {
        walk.wins("unfairness", other, 0.9, &["fifo"]);
    }
    walk.wins("unfairness", "linux", 0.98, &["fifo"]);
}

#[test]
fn round_robin_spares_the_caches_and_knows_nothing_of_memory() {
    let mut walk = Shown::new(walkers());
    walk.wins("turnaround_s", "round-robin", 0.6, &["linux"]);
    walk.wins("unfairness", "round-robin", 0.6, &["linux", "fifo"]);
    // It runs all that only miss together, and then all that compute.
    Shown::new(starving()).wins("turnaround_s", "bandwidth", 0.85, &["round-robin"]);
}

#[test]
fn bandwidth_is_fastest_where_memory_is_scarce_and_has_favourites() {
    let mut scarce = Shown::new(heavy());
    scarce.wins(
        "turnaround_s",
        "bandwidth",
        0.95,
        &["linux", "fifo", "round-robin", "fair", "perf-fair", "efs"],
    );
    scarce.wins("unfairness", "perf-fair", 0.6, &["bandwidth"]);
    scarce.wins("unfairness", "round-robin", 0.8, &["bandwidth"]);
    let mut starving = Shown::new(starving());
    starving.wins(
        "turnaround_s",
        "bandwidth",
        0.98,
        &["linux", "fifo", "round-robin", "fair", "efs"],
    );
    // Where memory suffices nothing is gained.
    let mut light = Shown::new(JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix01", 12_000));
    light.wins("turnaround_s", "round-robin", 1.0, &["bandwidth"]);
}

#[test]
fn fair_is_fair_and_pays_in_turnaround() {
    let mut scarce = Shown::new(heavy());
    scarce.wins(
        "unfairness",
        "fair",
        0.7,
        &["linux", "fifo", "round-robin", "bandwidth"],
    );
    scarce.wins("unfairness", "fair", 0.98, &["perf-fair", "efs"]);
    scarce.wins("turnaround_s", "bandwidth", 0.92, &["fair"]);
    scarce.wins("turnaround_s", "perf-fair", 0.98, &["fair"]);
    let mut walkers = Shown::new(walkers());
    walkers.wins("unfairness", "fair", 0.9, &["linux", "fifo", "efs"]);
    // All who walk hold as much of the cache in the end, so that taking turns is as fair.
    walkers.wins("unfairness", "fair", 1.0, &["round-robin"]);
    // The margin is smaller here: 1.02 against 1.03 with two of the seeds.
    walkers.wins("unfairness", "fair", 0.99, &["bandwidth"]);
}

#[test]
fn perf_fair_is_between_bandwidth_and_fair() {
    let mut scarce = Shown::new(heavy());
    // Alone for 100 ms in a cold cache, programs that live in the cache do less than they could: their progress is
    // overestimated.
    scarce.wins(
        "unfairness",
        "perf-fair",
        0.75,
        &["linux", "fifo", "round-robin", "bandwidth", "efs"],
    );
    scarce.wins("turnaround_s", "perf-fair", 0.95, &["fair"]);
    scarce.wins("turnaround_s", "perf-fair", 0.95, &["linux"]);
    scarce.wins("turnaround_s", "bandwidth", 0.96, &["perf-fair"]);
    let mut middle = Shown::new(JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix08", 12_000));
    middle.wins("turnaround_s", "perf-fair", 0.97, &["fair"]);
    // With less load its estimation quanta cost more than its selection gains.
    let mut light = Shown::new(JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix01", 12_000));
    light.wins("turnaround_s", "round-robin", 0.99, &["perf-fair"]);
    middle.wins(
        "unfairness",
        "perf-fair",
        0.9,
        &["linux", "round-robin", "bandwidth"],
    );
    middle.wins("unfairness", "perf-fair", 1.02, &["fair"]);
}

#[test]
fn oracle_is_the_fairest_and_slows_down_everybody_alike() {
    let mut scarce = Shown::new(heavy());
    scarce.wins(
        "unfairness",
        "oracle",
        0.63,
        &["linux", "fifo", "round-robin", "bandwidth"],
    );
    scarce.wins("unfairness", "oracle", 0.93, &["fair", "perf-fair", "efs"]);
    scarce.wins(
        "turnaround_s",
        "oracle",
        0.97,
        &["linux", "fair", "perf-fair"],
    );
    // No job ends early, so the mean slowdown is great.
    for other in [
        "linux",
        "fifo",
        "round-robin",
        "bandwidth",
        "perf-fair",
        "efs",
    ] {
        scarce.wins("antt", other, 1.0, &["oracle"]);
    }
    // It runs those that only miss together as long as their progress demands it.
    Shown::new(starving()).wins("turnaround_s", "bandwidth", 1.0, &["oracle"]);
}

/// How long each number of tasks ran at once.
#[derive(Default)]
struct AtOnce {
    since: Nanos,
    running: usize,
    spent: BTreeMap<usize, Nanos>,
    /// The tasks that ran alone, one after the other.
    alone: Vec<TaskId>,
}

impl Recorder for AtOnce {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let snap = record.snapshot;
            *self.spent.entry(self.running).or_default() += snap.now - self.since;
            self.since = snap.now;
            let stopped = |task: TaskId| record.decision.changes.contains(&Change::Stop { task });
            let placed = |task: TaskId| {
                record
                    .decision
                    .changes
                    .iter()
                    .any(|c| matches!(c, Change::Place { task: placed, .. } if *placed == task))
            };
            let runs =
                |task: &TaskView| (task.running.is_some() && !stopped(task.id)) || placed(task.id);
            let running: Vec<TaskId> = snap
                .tasks
                .iter()
                .filter(|task| runs(task))
                .map(|task| task.id)
                .collect();
            self.running = running.len();
            if let [task] = running[..]
                && self.alone.last() != Some(&task)
            {
                self.alone.push(task);
            }
        }
    }
}

/// EFS, Figure 7: four programs that only miss run one at a time, in turns.
#[test]
fn efs_saves_energy_where_four_programs_only_miss() {
    let four = || JobScene::on("i5-2500").mix("efs/figure-7", 4_000);
    for seed in SEEDS {
        let mut watch = AtOnce::default();
        let run = four().watched("efs", seed, &mut watch);
        let alone = watch.spent[&1].as_s() / run.get("turnaround_s");
        assert!(alone > 0.95, "{alone} {:?}", watch.spent);
        // Until the first ends, every task has its turn before any has a second.
        assert!(watch.alone.len() > 40);
        for turns in watch.alone[1..40].windows(4) {
            assert!(
                (0..4).all(|task| turns.contains(&TaskId(task))),
                "{turns:?}"
            );
        }
    }
    let mut figure = Shown::new(four());
    figure.wins(
        "energy_j",
        "efs",
        0.85,
        &[
            "linux",
            "fifo",
            "round-robin",
            "bandwidth",
            "fair",
            "perf-fair",
            "oracle",
        ],
    );
    // One alone fills the bus, and four take from each other what they could gain.
    figure.wins("turnaround_s", "efs", 1.01, &["linux"]);
    // Beside programs that compute, it takes the least energy of all.
    let mut mixed = Shown::new(starving());
    mixed.wins(
        "energy_j",
        "efs",
        0.93,
        &[
            "linux",
            "fifo",
            "round-robin",
            "fair",
            "perf-fair",
            "oracle",
        ],
    );
    mixed.wins("energy_j", "efs", 0.95, &["bandwidth"]);
    mixed.wins("turnaround_s", "bandwidth", 0.99, &["efs"]);
    mixed.wins("unfairness", "fair", 0.5, &["efs"]);
    // Four programs that also share a cache gain time too: fewer at once evict less of each other's contents.
    let mut cache = Shown::new(JobScene::on("i5-2500").mix("efs/four-sphinx3", 4_000));
    cache.wins("energy_j", "efs", 0.9, &["linux"]);
    cache.wins("turnaround_s", "efs", 0.97, &["linux"]);
}

#[test]
fn bias_suits_a_longest_job_that_misses_least_and_starves_the_others_of_the_big_core() {
    // The longest job has the big core all the time, or not at all.
    Shown::new(two_types("1ci-3mi")).wins("edp_js", "bias", 0.5, &["big-fair", "lucky", "linux"]);
    Shown::new(two_types("3ci-1mi")).wins("edp_js", "bias", 0.92, &["big-fair", "lucky", "linux"]);
    let mut half = Shown::new(two_types("2ci-2mi"));
    half.wins("edp_js", "big-fair", 0.7, &["bias"]);
    half.wins("edp_js", "lucky", 0.65, &["bias"]);
}

#[test]
fn big_fair_suits_programs_that_gain_alike() {
    Shown::new(two_types("4mi")).wins("edp_js", "big-fair", 0.98, &["lucky", "bias", "linux"]);
}

#[test]
fn lucky_suits_programs_that_gain_differently() {
    for mix in ["2ci-2mi", "1ci-3mi", "4r2"] {
        let mut shown = Shown::new(two_types(mix));
        shown.wins("edp_js", "lucky", 0.98, &["big-fair", "linux"]);
    }
    // Here a draw of the lottery can be unlucky: in one of five it is 4 % behind `linux`, in four ahead.
    Shown::new(two_types("4p")).wins("edp_js", "lucky", 0.95, &["big-fair"]);
    Shown::new(two_types("4p")).wins("edp_js", "lucky", 1.05, &["linux"]);
    for mix in ["4ci", "2ci-2mi", "4mi", "4r1", "4r2"] {
        Shown::new(two_types(mix)).wins("edp_js", "lucky", 0.95, &["bias"]);
    }
}

/// Programs of which four together ask for less than half of what EFS's machine serves, by their demand alone.
fn calm_programs() -> Vec<&'static str> {
    let asks = |name: &str| {
        let program = builtin_program(name).unwrap();
        let machine = std::sync::Arc::new(builtin_machine("i5-2500").unwrap());
        let work = JobWork::SoloTime(Nanos::from_ms(4_000));
        let memory = &program.memory;
        let writes = if memory.reads_per_ki > 0.0 {
            memory.writes_per_ki / memory.reads_per_ki
        } else {
            0.0
        };
        let job = SimJob {
            program: std::sync::Arc::new(program.clone()),
            work,
            cpus: 1,
            nice: 0,
        };
        let sim = Sim::new(SimConfig::new(machine, vec![job], 1)).unwrap();
        sim.solo_runs()[0].mm_reads.per_us() * (1.0 + writes) / 150.0
    };
    let spec = PROGRAMS
        .iter()
        .filter(|program| program.file.contains("spec-cpu2006"));
    spec.map(|program| program.name)
        .filter(|name| 4.0 * asks(name) < 0.5)
        .collect()
}

#[test]
fn efs_is_not_slower_than_linux_where_the_bus_is_not_stressed() {
    let calm = calm_programs();
    assert!(calm.len() >= 12, "{calm:?}");
    let mut worst = 0.0_f64;
    let mut compare = |scene: JobScene, what: &str, seed: u64| {
        let runs = ["efs", "linux"].map(|policy| scene.run(policy, seed));
        for metric in ["turnaround_s", "energy_j"] {
            let [efs, linux] = [&runs[0], &runs[1]].map(|run| run.get(metric));
            assert!(efs <= 1.01 * linux, "{what}: {metric} {efs} and {linux}");
            worst = worst.max(efs / linux);
        }
    };
    for name in &calm {
        for seed in 1..=2 {
            compare(JobScene::on("i5-2500").copies(4, name, 2_000), name, seed);
            compare(JobScene::on("i5-2500").copies(8, name, 2_000), name, seed);
        }
    }
    let mut rng = Rng::new(7);
    for jobs in [4, 4, 4, 4, 6, 6, 8, 8, 12] {
        let mix: Vec<&str> = (0..jobs)
            .map(|_| calm[(rng.next_u64() % calm.len() as u64) as usize])
            .collect();
        compare(JobScene::on("i5-2500").each(&mix, 2_000), &mix.join(" "), 1);
    }
    println!("at worst {worst:.4} of linux");
}

#[test]
fn efs_uses_both_cpus_of_a_core_and_all_cores() {
    // A light mix of 24 on six cores of two CPUs.
    let mut light = Shown::new(JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix01", 12_000));
    light.wins("turnaround_s", "efs", 1.0, &["linux"]);
    // With as many tasks as cores, each task has one.
    let scene = JobScene::on("xeon-e5645-1ch").copies(6, "gamess", 3_000);
    assert!(scene.run("efs", 1).get("turnaround_s") < 1.05 * 3.0);
}

#[test]
fn even_for_the_mean_runs_who_visibly_ends_soon() {
    let without_counts = |machine: &mut MachineSpec| {
        for counter in Counter::ALL {
            machine.counters.counts[counter] = false;
        }
    };
    let hidden = JobScene::on("epyc-2cpu")
        .change(without_counts)
        .copies(2, "workload-compute", 20_000)
        .copies(2, "workload-compute", 8_000)
        .open(vec![Nanos::ZERO; 4], false);
    let visible = hidden.clone().visible();
    for seed in SEEDS {
        let [hidden_s, visible_s] = [&hidden, &visible].map(|scene| {
            let mean = [("objective", "mean")];
            let run = scene.run_with("even", &mean, seed, &mut NullRecorder);
            run.mean_turnaround_s()
        });
        // At best 8, 8, 28 and 28 s.
        assert!(
            visible_s < 20.0 && visible_s < 0.95 * hidden_s,
            "{visible_s} {hidden_s}"
        );
    }
}
