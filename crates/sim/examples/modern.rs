//! Prints the tables of results/modern.md: the papers' policies on machines of today, beside `linux`.
//! `cargo run --release -p cosched-sim --features examples --example modern -- TABLE [WORD...]`; without a table it lists
//! them. Words choose machines, policies, kinds of mixes, jobs per CPU and, as `seeds=2`, how many seeds.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::{Fact, Nanos, NullRecorder, Recorder, Rng, Snapshot};
use cosched_sim::{
    FIT_LENGTH, MachineSpec, PROGRAMS, ProgramSpec, builtin_machine, builtin_program, fit, rates,
};
use shared::lab::JobScene;
use shared::{least_median_greatest, print_head};
use std::sync::{Arc, LazyLock};

/// Solo time of each job, in ms.
const SOLO_MS: u64 = 30_000;

const POLICIES: [&str; 8] = [
    "fifo",
    "round-robin",
    "bandwidth",
    "fair",
    "perf-fair",
    "efs",
    "even",
    "oracle",
];

/// The machines of the tables.
const MACHINES: [&str; 4] = ["epyc-7502", "xeon-8480", "epyc-7502-2s", "xeon-e5645"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&"batches", named)) => batches(named),
        Some((&"channels", named)) => fewer_channels(named),
        Some((&"cores", _)) => more_cores(),
        Some((&"copies", named)) => copies_on(named),
        Some((&"demand", named)) => demand(named),
        Some((&"rates", named)) => other_rates(named),
        Some((&"causes", _)) => causes(),
        Some((&"decisions", named)) => decisions(named),
        _ => eprintln!(
            "modern batches|channels|cores|copies|rates|causes|demand|decisions [WORD...]"
        ),
    }
}

/// Those of `all` that are named, or all if none is.
fn chosen<'a>(named: &[&str], all: &[&'a str]) -> Vec<&'a str> {
    let some: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| named.contains(name))
        .collect();
    if some.is_empty() { all.to_vec() } else { some }
}

fn scene_on(name: &str) -> JobScene {
    JobScene::on("i5-2500").change(|machine| *machine = spec_of(name))
}

/// A built-in machine; `epyc-7502` is one socket of one, with half of its power at rest and parameters of its own.
fn spec_of(name: &str) -> MachineSpec {
    if name != "epyc-7502" {
        return builtin_machine(name).expect("built in");
    }
    static ONE_SOCKET: LazyLock<MachineSpec> = LazyLock::new(|| {
        let mut machine = builtin_machine("epyc-7502-2s").expect("built in");
        machine.sockets = 1;
        machine.power.static_w /= 2.0;
        refit(&mut machine);
        machine
    });
    ONE_SOCKET.clone()
}

fn programs() -> Vec<&'static str> {
    let files = PROGRAMS
        .iter()
        .filter(|file| file.file.starts_with("programs/spec-cpu2006/"));
    files.map(|file| file.name).collect()
}

// Batches -------------------------------------------------------------------------------------------------------------

/// Which programs a mix is drawn from: shares of the 29, in order of the lines that they move alone.
const KINDS: [(&str, f64, f64); 3] = [
    ("light", 0.0, 0.5),
    ("middle", 0.0, 1.0),
    ("heavy", 0.6, 1.0),
];

/// Mixes of each kind.
const MIXES: u64 = 3;

/// The programs in order of the lines that they move alone on the machine, per us.
fn by_demand(machine: &MachineSpec) -> Vec<(f64, &'static str)> {
    let machine = Arc::new(machine.clone());
    let mut demands: Vec<(f64, &str)> = programs()
        .into_iter()
        .map(|name| (lines_per_us(&machine, &program(name), 1), name))
        .collect();
    demands.sort_by(|a, b| a.0.total_cmp(&b.0));
    demands
}

fn program(name: &str) -> Arc<ProgramSpec> {
    Arc::new(builtin_program(name).expect("built in"))
}

fn lines_per_us(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>, copies: usize) -> f64 {
    rates(machine, program, copies, Nanos::from_s(5.0)).lines_per_ns * 1e3
}

/// A mix of a kind: programs drawn with the same chances, in the order in which they come. The demand that all CPUs'
/// jobs would have if they ran alone, as a share of what the memory serves.
fn mix(
    name: &str,
    demands: &[(f64, &'static str)],
    kind: (f64, f64),
    (jobs, solo_ms): (usize, u64),
    number: u64,
) -> (JobScene, f64) {
    let [from, to] = [kind.0, kind.1].map(|share| (share * demands.len() as f64).round() as usize);
    let mut rng = Rng::new(number);
    let mut scene = scene_on(name);
    let mut lines = 0.0;
    for _ in 0..jobs {
        let (own, program) = demands[from..to][rng.below((to - from) as u64) as usize];
        lines += own;
        scene = scene.copies(1, program, solo_ms);
    }
    (scene, lines / jobs as f64)
}

/// Figures of a run: time in s, energy in kJ, unfairness, mean slowdown.
const FIGURES: [&str; 4] = ["turnaround_s", "energy_j", "unfairness", "antt"];

type Figures = [f64; 4];

fn figures(scene: &JobScene, policy: &str, seed: u64) -> Figures {
    let run = scene.run_with(policy, &[], seed, &mut NullRecorder);
    FIGURES.map(|metric| run.get(metric))
}

/// Runs each of the tasks, two at a time, and returns the results in order.
fn parallel<T: Send, R: Send>(tasks: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let queue = std::sync::Mutex::new(tasks.into_iter().enumerate().collect::<Vec<_>>());
    let done = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((at, task)) = queue.lock().unwrap().pop() else {
                        break;
                    };
                    let result = work(task);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// All policies in all kinds of mixes: time, energy and mean slowdown against `linux` mix by mix and seed by seed.
fn batches(named: &[&str]) {
    print_head(
        "machine | jobs per CPU | mix, demand | policy | time | energy | mean slowdown | unfairness",
    );
    for name in chosen(named, &MACHINES) {
        for jobs_per_cpu in chosen(named, &["2", "1", "0.5"]) {
            for kind in chosen_kinds(named) {
                let per_cpu: f64 = jobs_per_cpu.parse().expect("a number");
                let jobs = (per_cpu * scene_cpus(name) as f64) as usize;
                let head = format!("`{name}` | {jobs_per_cpu}");
                batch(
                    &head,
                    name,
                    kind,
                    (jobs, SOLO_MS),
                    (seeds(named), named),
                    |_| {},
                );
            }
        }
    }
}

/// The number after `seeds=`, else five.
fn seeds(named: &[&str]) -> u64 {
    let given = named.iter().find_map(|word| word.strip_prefix("seeds="));
    given.map_or(5, |number| number.parse().expect("a number of seeds"))
}

fn chosen_kinds(named: &[&str]) -> Vec<(&'static str, f64, f64)> {
    let names = chosen(named, &KINDS.map(|(kind, ..)| kind));
    KINDS
        .into_iter()
        .filter(|(kind, ..)| names.contains(kind))
        .collect()
}

fn scene_cpus(name: &str) -> usize {
    spec_of(name).machine().cpus.len()
}

fn batch(
    head: &str,
    name: &str,
    (kind, from, to): (&str, f64, f64),
    (jobs, solo_ms): (usize, u64),
    (seeds, named): (u64, &[&str]),
    edit: impl Fn(&mut MachineSpec) + Sync,
) {
    let mut machine = spec_of(name);
    edit(&mut machine);
    let demands = by_demand(&spec_of(name));
    let served = lines_per_us(
        &Arc::new(machine.clone()),
        &program("bus-100"),
        machine.machine().cores.len() / machine.sockets as usize,
    ) * f64::from(machine.sockets);
    let mut scenes = Vec::new();
    let mut demand = 0.0;
    for number in 1..=MIXES {
        let (scene, lines) = mix(name, &demands, (from, to), (jobs, solo_ms), number);
        demand += lines * jobs.min(machine.machine().cores.len()) as f64 / served / MIXES as f64;
        scenes.push(scene.change(&edit));
    }
    let each = |policy: &'static str| {
        let tasks = scenes
            .iter()
            .flat_map(|scene| (1..=seeds).map(move |seed| (scene, seed)));
        parallel(tasks.collect(), |(scene, seed): (&JobScene, u64)| {
            figures(scene, policy, seed)
        })
    };
    let linux = each("linux");
    let median = |ix: usize, scale: f64| {
        let values = linux.iter().map(|run| run[ix] * scale);
        spread(values.collect(), 2)
    };
    println!(
        "| {head} | {kind}, {demand:.2} | `linux` | {} s | {} kJ | {} | {} |",
        median(0, 1.0),
        median(1, 1e-3),
        median(3, 1.0),
        median(2, 1.0)
    );
    for policy in chosen(named, &POLICIES) {
        let runs = each(policy);
        let change = |ix: usize| {
            let ratios = runs
                .iter()
                .zip(&linux)
                .map(|(run, base)| 100.0 * (run[ix] / base[ix] - 1.0));
            signed(ratios.collect())
        };
        let unfairness = spread(runs.iter().map(|run| run[2]).collect(), 2);
        println!(
            "| | | | `{policy}` | {} | {} | {} | {unfairness} |",
            change(0),
            change(1),
            change(3)
        );
    }
}

fn spread(values: Vec<f64>, decimals: usize) -> String {
    let [least, median, most] = least_median_greatest(values);
    format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
}

fn signed(values: Vec<f64>) -> String {
    let [least, median, most] = least_median_greatest(values);
    format!("{median:+.1} % ({least:+.1} to {most:+.1})")
}

/// What the programs ask of the memory alone, and what it serves to all cores.
fn demand(named: &[&str]) {
    print_head(
        "machine | memory serves, lines/us | per core | each program alone: least, median, greatest",
    );
    for name in chosen(named, &MACHINES) {
        let machine = spec_of(name);
        let cores = machine.machine().cores.len() / machine.sockets as usize;
        let served = lines_per_us(&Arc::new(machine.clone()), &program("bus-100"), cores);
        let demands: Vec<f64> = by_demand(&machine)
            .into_iter()
            .map(|(lines, _)| lines)
            .collect();
        let [least, median, most] = least_median_greatest(demands);
        println!(
            "| `{name}` | {served:.0} | {:.0} | {least:.1}, {median:.1}, {most:.1} |",
            served / cores as f64
        );
    }
}

/// The heavy mixes with fewer channels: what makes the memory scarce.
fn fewer_channels(named: &[&str]) {
    print_head(
        "machine | channels | mix, demand | policy | time | energy | mean slowdown | unfairness",
    );
    for name in chosen(named, &["epyc-7502", "xeon-8480"]) {
        for channels in [4, 2] {
            let jobs = 2 * scene_cpus(name);
            let head = format!("`{name}` | {channels}");
            batch(
                &head,
                name,
                KINDS[2],
                (jobs, SOLO_MS),
                (2, named),
                move |machine| {
                    machine.memory.channels = channels;
                    refit(machine);
                },
            );
        }
    }
}

/// What changes the results of `fair`, `perf-fair` and `even` in heavy mixes, and of `efs` in light ones.
fn causes() {
    print_head(
        "machine | changed | mix, demand | policy | time | energy | mean slowdown | unfairness",
    );
    type Edit = fn(&mut MachineSpec);
    let steady: Edit = |machine| {
        machine.core_types[0].ghz = 3.0;
        machine.core_types[0].turbo.clear();
        refit(machine);
    };
    let split: Edit = |machine| {
        machine.llcs_per_socket = 8;
        machine.core_types[0].cores_per_llc = 7;
        machine.llc.mb /= 8.0;
        refit(machine);
    };
    let joined: Edit = |machine| {
        machine.core_types[0].cores_per_llc *= machine.llcs_per_socket;
        machine.llc.mb *= f64::from(machine.llcs_per_socket);
        machine.llcs_per_socket = 1;
        refit(machine);
    };
    let as_it_is: Edit = |_| {};
    let heavy: [(&str, &str, u64, Edit); 7] = [
        ("xeon-8480", "nothing", SOLO_MS, as_it_is),
        ("xeon-8480", "always 3 GHz", SOLO_MS, steady),
        ("xeon-8480", "eight caches of 13 MB", SOLO_MS, split),
        ("xeon-8480", "jobs of 100 s", 100_000, as_it_is),
        ("epyc-7502", "nothing", SOLO_MS, as_it_is),
        ("epyc-7502", "one cache of 128 MB", SOLO_MS, joined),
        ("epyc-7502", "jobs of 100 s", 100_000, as_it_is),
    ];
    let policies = ["round-robin", "fair", "perf-fair", "even"];
    for (name, what, solo_ms, edit) in heavy {
        let jobs = 2 * scene_cpus(name);
        let head = format!("`{name}` | {what}");
        batch(&head, name, KINDS[2], (jobs, solo_ms), (1, &policies), edit);
    }
    for (what, edit) in [("nothing", as_it_is), ("one cache of 128 MB", joined)] {
        let jobs = scene_cpus("epyc-7502") / 2;
        let head = format!("`epyc-7502`, 0.5 jobs per CPU | {what}");
        batch(
            &head,
            "epyc-7502",
            KINDS[0],
            (jobs, SOLO_MS),
            (1, &["efs", "round-robin"]),
            edit,
        );
    }
}

/// Sets the rate of the bus for `efs` to what copies of a triad reach, which read three of four lines.
fn rate_of_triads(machine: &mut MachineSpec) {
    let cores = machine.machine().cores.len();
    let rate = lines_per_us(
        &Arc::new(machine.clone()),
        &program("workload-stream"),
        cores,
    );
    let params = machine.params.iter_mut();
    for (_, value) in params.filter(|(name, _)| name == "mu_trans_per_us") {
        *value = rate.to_string();
    }
}

/// Fits the parameters of policies to a changed machine.
fn refit(machine: &mut MachineSpec) {
    let fitted = fit(&Arc::new(machine.clone()), FIT_LENGTH).expect("a fit");
    let params = fitted.params().into_iter();
    machine.params = params
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect();
}

// Time of decisions ---------------------------------------------------------------------------------------------------

/// Times from the end of a wait to a decision: reading samples, estimates, learning, the decision and its check.
#[derive(Default)]
struct Watch {
    since: Option<std::time::Instant>,
    ms: Vec<f64>,
}

impl Recorder for Watch {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(_) = fact
            && let Some(since) = self.since.take()
        {
            self.ms.push(since.elapsed().as_secs_f64() * 1e3);
        }
    }

    fn tick(&mut self, _snapshot: &Snapshot, _queued: usize) {
        self.since = Some(std::time::Instant::now());
    }
}

/// The time of a decision in middle mixes with two jobs per CPU, one at a time.
fn decisions(named: &[&str]) {
    print_head("machine | jobs on CPUs | policy | decisions | median, 99 of 100, greatest, ms");
    for name in chosen(named, &MACHINES) {
        let cpus = scene_cpus(name);
        let (scene, _) = mix(
            name,
            &by_demand(&spec_of(name)),
            (0.0, 1.0),
            (2 * cpus, SOLO_MS),
            1,
        );
        for policy in chosen(named, &POLICIES) {
            let mut watch = Watch::default();
            scene.watched(policy, 1, &mut watch);
            let mut ms = watch.ms;
            ms.sort_by(f64::total_cmp);
            let at = |share: f64| ms[((ms.len() - 1) as f64 * share) as usize];
            println!(
                "| `{name}` | {} on {cpus} | `{policy}` | {} | {:.2}, {:.2}, {:.2} |",
                2 * cpus,
                ms.len(),
                at(0.5),
                at(0.99),
                at(1.0)
            );
        }
    }
}

// Copies of a program under `efs` -------------------------------------------------------------------------------------

/// EFS's experiment, a copy of one program for each core, on its machine with more cores, cache and channels.
fn more_cores() {
    copies_head();
    let i5 = |cores: u32, channels: u32, mb: f64| {
        let plural = if channels == 1 { "" } else { "s" };
        let head = format!("`i5-2500` | {cores} cores, {channels} channel{plural}, {mb} MB");
        copies(&head, "i5-2500", move |machine| {
            machine.core_types[0].cores_per_llc = cores;
            machine.memory.channels = channels;
            machine.llc.mb = mb;
        });
    };
    for cores in [4, 8, 12] {
        i5(cores, 1, 6.0);
    }
    for cores in [8, 12] {
        i5(cores, 1, 1.5 * f64::from(cores));
    }
    for channels in [2, 3, 4, 8] {
        i5(12, channels, 6.0);
    }
    i5(8, 2, 12.0);
    i5(12, 3, 18.0);
    let head =
        "`i5-2500` | 12 cores, 3 channels, 18 MB, three times the power at rest and in common";
    copies(head, "i5-2500", |machine| {
        machine.core_types[0].cores_per_llc = 12;
        machine.memory.channels = 3;
        machine.llc.mb = 18.0;
        machine.power.static_w *= 3.0;
        machine.power.uncore_w *= 3.0;
    });
}

/// The same on machines of today, and with other powers.
fn copies_on(named: &[&str]) {
    copies_head();
    for name in chosen(named, &["i5-2500", "epyc-7502", "xeon-8480"]) {
        let with = |what: &str, edit: &(dyn Fn(&mut MachineSpec) + Sync)| {
            copies(&format!("`{name}` | {what}"), name, edit);
        };
        with("as it is", &|_| {});
        if name == "epyc-7502" {
            with("81 W for the first core", &|machine| {
                machine.power.uncore_w = 81.0
            });
        }
        with("no power but the cores'", &|machine| {
            (machine.power.static_w, machine.power.uncore_w) = (0.0, 0.0);
        });
        if name == "i5-2500" {
            continue;
        }
        with("2 channels", &|machine| machine.memory.channels = 2);
        with("2 channels, no power but the cores'", &|machine| {
            machine.memory.channels = 2;
            (machine.power.static_w, machine.power.uncore_w) = (0.0, 0.0);
        });
    }
}

/// The same on machines of today with a rate of the bus as programs reach it that write, too; and with fewer channels.
fn other_rates(named: &[&str]) {
    copies_head();
    let i5 = spec_of("i5-2500");
    for name in chosen(named, &["epyc-7502", "xeon-8480"]) {
        for channels in [8, 4, 2] {
            let fewer = move |machine: &mut MachineSpec| machine.memory.channels = channels;
            let head = format!("`{name}` | {channels} channels");
            copies(&head, name, fewer);
            copies_with(
                &format!("{head}, rate of triads"),
                name,
                fewer,
                rate_of_triads,
            );
        }
        let powers = |machine: &mut MachineSpec| {
            machine.memory.channels = 2;
            take_powers(machine, &i5);
        };
        let head = format!(
            "`{name}` | 2 channels, rate of triads, the i5-2500's powers for each four cores"
        );
        copies_with(&head, name, powers, rate_of_triads);
    }
}

/// Gives a machine the powers of another one, for each four cores.
fn take_powers(machine: &mut MachineSpec, from: &MachineSpec) {
    let fours = machine.machine().cores.len() as f64 / 4.0;
    machine.power.static_w = from.power.static_w * fours;
    machine.power.uncore_w = from.power.uncore_w * fours;
    machine.power.nj_per_line = from.power.nj_per_line;
    for kind in &mut machine.core_types {
        kind.idle_w = from.core_types[0].idle_w;
        kind.active_w = from.core_types[0].active_w;
        kind.nj_per_instruction = from.core_types[0].nj_per_instruction;
    }
}

fn copies_head() {
    print_head(
        "machine | changed | lines/us per core | energy, % (least, greatest seed) | time, % | programs that save 1 % | the five that save most, energy % / time % | of the energy saved: static, common, cores while they run, lines",
    );
}

/// Seeds of the copies.
const COPIES_SEEDS: u64 = 3;

/// A copy of each program on every core: `efs` against `linux`, means over the programs.
fn copies(head: &str, name: &str, edit: impl Fn(&mut MachineSpec) + Sync) {
    copies_with(head, name, edit, |_| {});
}

/// The same with other parameters than the fitted ones.
fn copies_with(
    head: &str,
    name: &str,
    edit: impl Fn(&mut MachineSpec) + Sync,
    set: impl Fn(&mut MachineSpec),
) {
    let mut machine = spec_of(name);
    edit(&mut machine);
    refit(&mut machine);
    set(&mut machine);
    let cores = machine.machine().cores.len();
    let served = lines_per_us(&Arc::new(machine.clone()), &program("bus-100"), cores);
    let params = machine.params.clone();
    let run =
        |program: &str, policy: &str, seed: u64, power: &(dyn Fn(&mut MachineSpec) + Sync)| {
            let scene = scene_on(name).change(|machine| {
                edit(machine);
                machine.params = params.clone();
                power(machine);
            });
            figures(&scene.copies(cores, program, SOLO_MS), policy, seed)
        };
    let tasks: Vec<(&str, u64)> = programs()
        .into_iter()
        .flat_map(|program| (1..=COPIES_SEEDS).map(move |seed| (program, seed)))
        .collect();
    // Energy and time of `efs` by those of `linux`, and the parts of what is saved with the first seed.
    let results = parallel(tasks.clone(), |(program, seed): (&str, u64)| {
        let [linux, efs] = ["linux", "efs"].map(|policy| run(program, policy, seed, &|_| {}));
        let change = [1, 0].map(|ix| efs[ix] / linux[ix] - 1.0);
        let mut parts = [0.0; 4];
        if seed == 1 {
            // The decisions depend on the parameters, not on the powers.
            let without: [&(dyn Fn(&mut MachineSpec) + Sync); 4] = [
                &|machine| machine.power.static_w = 0.0,
                &|machine| machine.power.uncore_w = 0.0,
                &|machine| machine.core_types[0].active_w = 0.0,
                &|machine| machine.power.nj_per_line = 0.0,
            ];
            parts = without.map(|power| {
                let [a, b] = ["linux", "efs"].map(|policy| run(program, policy, seed, power));
                ((linux[1] - a[1]) - (efs[1] - b[1])) / linux[1]
            });
        }
        (change, parts)
    });
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let by_seed = |ix: usize| {
        let means = (1..=COPIES_SEEDS).map(|seed| {
            let of_seed = tasks
                .iter()
                .zip(&results)
                .filter(|(task, _)| task.1 == seed);
            100.0 * mean(of_seed.map(|(_, (change, _))| change[ix]).collect())
        });
        let [least, median, most] = least_median_greatest(means.collect());
        format!("{median:+.1} ({least:+.1}, {most:+.1})")
    };
    let first: Vec<_> = tasks
        .iter()
        .zip(&results)
        .filter(|(task, _)| task.1 == 1)
        .collect();
    let mut best: Vec<(&str, [f64; 2])> = first
        .iter()
        .map(|(task, (change, _))| (task.0, *change))
        .collect();
    best.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
    let saving = best.iter().filter(|(_, change)| change[0] < -0.01).count();
    let five: Vec<String> = best[..5]
        .iter()
        .map(|(name, [energy, time])| {
            format!("{name} {:+.0} / {:+.0}", 100.0 * energy, 100.0 * time)
        })
        .collect();
    let parts = [0, 1, 2, 3].map(|ix| {
        let part = mean(first.iter().map(|(_, (_, parts))| parts[ix]).collect());
        format!("{:+.1}", 100.0 * part)
    });
    println!(
        "| {head} | {:.0} | {} | {} | {saving} of {} | {} | {} |",
        served / cores as f64,
        by_seed(0),
        by_seed(1),
        best.len(),
        five.join(", "),
        parts.join(", ")
    );
}
