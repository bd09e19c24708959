//! Prints the table on `place` in results/benchmarks.md: what it gains on four simulated nodes by what is known of the
//! jobs, against free slots alone. `cargo run --release -p cosched-sim --features examples --example place`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use cosched_sim::*;
use std::sync::Arc;

const NODES: u32 = 4;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
const WAYS: [&str; 3] = ["known", "known, window=0", "slots"];

/// Turnaround in s, and the mean and the greatest / least slowdown of the jobs while they ran.
type Figures = [f64; 3];

fn main() {
    println!("| nodes | jobs | by | turnaround | mean slowdown | unfairness |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, machine) in machines() {
        let each: Vec<Vec<String>> = (1..=13).map(programs).collect();
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

/// The programs of a mix of Perf&Fair.
fn programs(mix: usize) -> Vec<String> {
    let path = format!(
        "{}/../../mixes/perf-fair/mix{mix:02}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).expect(&path);
    let table: toml::Table = text.parse().expect("a mix");
    let mut programs = Vec::new();
    for job in table["job"].as_array().expect("jobs") {
        let copies = job
            .get("copies")
            .and_then(toml::Value::as_integer)
            .unwrap_or(1);
        let program = job["program"].as_str().expect("a program").to_owned();
        programs.extend(std::iter::repeat_n(program, copies as usize));
    }
    programs
}

fn report(nodes: &str, jobs: &str, machine: &MachineSpec, batches: &[Vec<String>]) {
    let machine = Arc::new(machine.clone());
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); WAYS.len()];
    for seed in SEEDS {
        for batch in batches {
            let alone = jobs_of(batch, seed);
            let config = SimConfig::new(machine.clone(), alone, seed);
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
        let cells: Vec<String> = (0..3).map(|ix| range(figures, &slots, ix)).collect();
        println!("| {nodes} | {jobs} | {way} | {} |", cells.join(" | "));
    }
}

/// The jobs in an order and with lengths of 4 to 20 s alone, both by the seed.
fn jobs_of(programs: &[String], seed: u64) -> Vec<SimJob> {
    let mut rng = Rng::new(seed);
    let mut jobs = Vec::new();
    for program in programs {
        let program = Arc::new(builtin_program(program).expect("built in"));
        let work = JobWork::SoloTime(Nanos::from_ms(4_000 + rng.below(16_000)));
        let job = SimJob {
            program,
            work,
            cpus: 1,
            nice: 0,
        };
        jobs.insert(rng.below(jobs.len() as u64 + 1) as usize, job);
    }
    jobs
}

fn figures_of(config: &SimConfig, solo: &[SoloRun], way: &str) -> Figures {
    let entry = find_policy("place").expect("a policy");
    let (by, window) = way.split_once(", window=").unwrap_or((way, "16"));
    let mut settings = config.machine.settings_for(entry);
    settings.extend(
        [("by", by), ("window", window)].map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let params = Params::resolve(entry.name, entry.params, &settings).expect("parameters");
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
        ..RunConfig::default()
    };
    let result = run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut NullRecorder,
        specs,
        &settings,
    );
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

/// Minimum, median and maximum of a figure relative to the baseline's in the same batch.
fn range(figures: &[Figures], base: &[Figures], ix: usize) -> String {
    let ratios = figures
        .iter()
        .zip(base)
        .map(|(one, base)| one[ix] / base[ix]);
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let [least, median, most] = [0, ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at]);
    format!("{least:.3}, {median:.3}, {most:.3}")
}
