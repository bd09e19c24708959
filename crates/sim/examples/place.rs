//! Prints the table on `place` in results/benchmarks.md: what it gains on four simulated nodes by what is known of the
//! jobs, against free slots alone. `cargo run --release -p cosched-sim --features examples --example place`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::*;
use cosched_sim::*;
use shared::lab::{JobScene, mix_programs, policy_on};
use shared::{print_head, range};

const NODES: u32 = 4;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
const WAYS: [&str; 3] = ["known", "known, window=0", "slots"];

/// Turnaround in s, and the mean and the greatest / least slowdown of the jobs while they ran.
type Figures = [f64; 3];

fn main() {
    print_head("nodes | jobs | by | turnaround | mean slowdown | unfairness");
    for (name, machine) in machines() {
        let each: Vec<Vec<String>> = (1..=13)
            .map(|mix| mix_programs(&format!("perf-fair/mix{mix:02}")))
            .collect();
        let four: Vec<Vec<String>> = each
            .iter()
            .map(|mix| vec![mix.clone(); 4].concat())
            .collect();
        report(name, "each mix, four times", &machine, &four);
        report(name, "all mixes", &machine, &[each.concat()]);
    }
}

/// Four of the paper's machines, with three channels and with one; and four quarters of a socket of a server, whose two
/// caches share two of eight channels.
fn machines() -> [(&'static str, MachineSpec); 3] {
    let paper = |name| builtin_machine(name).expect("built in");
    let mut server = paper("server-2x64");
    (
        server.sockets,
        server.llcs_per_socket,
        server.memory.channels,
    ) = (1, 2, 2);
    [
        ("xeon-e5645", paper("xeon-e5645")),
        ("xeon-e5645-1ch", paper("xeon-e5645-1ch")),
        ("a quarter of a server", server),
    ]
    .map(|(name, machine)| {
        (
            name,
            MachineSpec {
                nodes: NODES,
                ..machine
            },
        )
    })
}

fn report(nodes: &str, jobs: &str, machine: &MachineSpec, batches: &[Vec<String>]) {
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); WAYS.len()];
    for seed in SEEDS {
        for batch in batches {
            let config = scene(machine, batch, seed).config(seed);
            let solo = Sim::new(config.clone())
                .expect("a simulation")
                .solo_runs()
                .to_vec();
            for (way, figures) in WAYS.iter().zip(&mut all) {
                figures.push(figures_of(&config, &solo, way));
            }
        }
    }
    // A batch takes several times another, so each figure is relative to `slots` in the same batch.
    let slots = all[2].clone();
    for (way, figures) in WAYS.iter().zip(&all) {
        let cells = [0, 1, 2].map(|ix| {
            let ratios = figures.iter().zip(&slots);
            let ratios = ratios.map(|(one, base)| one[ix] / base[ix]);
            range(ratios.collect(), 3, ", ")
        });
        println!("| {nodes} | {jobs} | {way} | {} |", cells.join(" | "));
    }
}

/// The jobs in an order and with lengths of 4 to 20 s alone, both by the seed.
fn scene(machine: &MachineSpec, programs: &[String], seed: u64) -> JobScene {
    let mut rng = Rng::new(seed);
    let mut jobs = Vec::new();
    for program in programs {
        let job = (program.clone(), 4_000 + rng.below(16_000));
        jobs.insert(rng.below(jobs.len() as u64 + 1) as usize, job);
    }
    let scene = JobScene::on("xeon-e5645").change(|spec| *spec = machine.clone());
    scene.programs(&jobs)
}

fn figures_of(config: &SimConfig, solo: &[SoloRun], way: &str) -> Figures {
    let (by, window) = way.split_once(", window=").unwrap_or((way, "16"));
    let params = [("by", by), ("window", window)];
    let (mut policy, settings) = policy_on(&config.machine, "place", &params);
    let mut sim = Sim::with_solo_runs(config.clone(), solo).expect("a simulation");
    let mut specs = Vec::new();
    for (id, solo) in (0..).zip(solo) {
        let mut spec = TaskSpec::new(id, &format!("job-{id}"));
        spec.solo.time = Some(solo.time);
        spec.solo.mm_reads = Some(solo.mm_reads);
        specs.push(spec);
    }
    let settings = RunConfig {
        jobs: 2 * sim.machine().cpus.len(),
        seed: config.seed,
        ..settings
    };
    let result = run(&mut sim, &mut *policy, &mut NullRecorder, specs, &settings);
    let result = result.expect("a run");
    assert_eq!(result.policy_faults, 0);
    let slowdown = |task: &TaskResult| {
        let solo = task.spec.solo.time.expect("known");
        task.ran.as_s() / solo.as_s()
    };
    let slowdowns: Vec<f64> = result.tasks.iter().map(slowdown).collect();
    let least = slowdowns.iter().copied().fold(f64::INFINITY, f64::min);
    let most = slowdowns.iter().copied().fold(0.0, f64::max);
    let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
    [result.turnaround.as_s(), mean, most / least]
}
