//! Prints what `--jobs auto` gains and costs in the simulation, against `fifo` at full width, as `results/benchmarks.md` has it.
//! Nothing is counted on these machines. `cargo run --release -p cosched-sim --example at_once`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use cosched_sim::*;
use std::sync::Arc;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// Jobs on a machine.
struct Scene {
    name: String,
    machine: &'static str,
    /// Programs, with the number of jobs and the time of each alone in milliseconds.
    jobs: Vec<(String, usize, u64)>,
}

fn of(machine: &'static str, program: &str, jobs: usize, solo_ms: u64) -> Scene {
    Scene {
        name: format!("{jobs} {program}"),
        machine,
        jobs: vec![(program.to_owned(), jobs, solo_ms)],
    }
}

/// A mix of Perf&Fair, each program so many times, one after another.
fn mix(number: u32, copies: usize) -> Scene {
    let path = format!(
        "{}/../../mixes/perf-fair/mix{number:02}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).expect("a mix");
    let table: toml::Table = text.parse().expect("TOML");
    let mut once = Vec::new();
    for job in table["job"].as_array().expect("jobs") {
        let program = job["program"].as_str().expect("a program");
        let here = job.get("copies").and_then(toml::Value::as_integer);
        for _ in 0..here.unwrap_or(1) {
            once.push((program.to_owned(), 1, 12_000));
        }
    }
    Scene {
        name: format!("mix{number:02} x {copies}"),
        machine: "xeon-e5645-1ch",
        jobs: vec![once; copies].concat(),
    }
}

/// The last number at once that was found.
#[derive(Default)]
struct Found(Option<u32>);

impl Recorder for Found {
    fn warn(&mut self, _: Nanos, warning: &Warning) {
        if let Warning::AtOnce(found) = warning {
            self.0 = Some(found.best.jobs);
        }
    }
}

/// Turnaround, energy, CPU time of the jobs.
type Figures = [f64; 3];

impl Scene {
    fn config(&self, seed: u64) -> SimConfig {
        let mut machine = builtin_machine(self.machine).expect("built in");
        machine.counters.counts = PerCounter::from_fn(|_| false);
        machine.counters.traffic = false;
        machine.counters.energy = false;
        let mut jobs = Vec::new();
        for (program, count, solo_ms) in &self.jobs {
            let job = SimJob {
                program: Arc::new(builtin_program(program).expect("built in")),
                work: Work::SoloTime(Nanos::from_ms(*solo_ms)),
                cpus: 1,
                nice: 0,
            };
            jobs.extend(std::iter::repeat_n(job, *count));
        }
        SimConfig::new(Arc::new(machine), jobs, seed)
    }

    fn run(&self, seed: u64, at_once: Option<Vec<RateAt>>) -> (Figures, Found, Vec<RateAt>) {
        let entry = find_policy("fifo").expect("a policy");
        let config = self.config(seed);
        let params = Params::resolve(entry.name, entry.params, &[]).expect("defaults");
        let mut specs = Vec::new();
        for (id, job) in (0..).zip(&config.jobs) {
            let mut spec = TaskSpec::new(id, &format!("job-{id}"));
            spec.program = Some(job.program.name.as_str().into());
            specs.push(spec);
        }
        let mut sim = Sim::new(config).expect("a simulation");
        let settings = RunConfig {
            jobs: sim.machine().cpus.len(),
            at_once,
            seed,
            ..RunConfig::default()
        };
        let policy = &mut *(entry.build)(&params);
        let mut found = Found::default();
        let result = run(&mut sim, policy, &mut found, specs, &settings).expect("a run");
        let cpu = |task: &TaskResult| task.cpu_time.value().map_or(0.0, Nanos::as_s);
        let energy = result.energy_j.value().expect("modelled");
        let figures = [
            result.turnaround.as_s(),
            energy,
            result.tasks.iter().map(cpu).sum(),
        ];
        (figures, found, result.rates)
    }

    /// Prints a row: this scene, and with `next` that scene by the history of this one.
    fn row(&self, next: Option<&Scene>) {
        let (mut ratios, mut best) = (Vec::new(), Vec::new());
        for seed in SEEDS {
            let (scene, seed, known) = match next {
                None => (self, seed, Vec::new()),
                Some(next) => (next, seed + 100, self.run(seed, Some(Vec::new())).2),
            };
            let (base, ..) = scene.run(seed, None);
            let (figures, found, _) = scene.run(seed, Some(known));
            ratios.push([0, 1, 2].map(|ix| figures[ix] / base[ix]));
            best.push(found.0.map_or("all".to_owned(), |jobs| jobs.to_string()));
        }
        let history = next.map_or(String::new(), |next| format!(", then {}", next.name));
        let ranges = [0, 1, 2].map(|ix| range(&ratios, ix));
        println!(
            "| {}, {}{history} | {} | {} |",
            self.machine,
            self.name,
            best.join(" "),
            ranges.join(" | ")
        );
    }
}

/// Minimum, median and maximum of a figure.
fn range(ratios: &[Figures], ix: usize) -> String {
    let mut ratios: Vec<f64> = ratios.iter().map(|one| one[ix]).collect();
    ratios.sort_by(f64::total_cmp);
    let [least, median, most] = [0, ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at]);
    format!("{least:.3}, {median:.3}, {most:.3}")
}

fn main() {
    println!("| scene | at once | turnaround | energy | CPU time |");
    println!("| --- | --- | --- | --- | --- |");
    for program in ["sphinx3", "soplex", "bus-100", "gamess"] {
        let many = of("i5-2500", program, 400, 2_000);
        many.row(None);
        many.row(Some(&of("i5-2500", program, 4, 4_000)));
    }
    for program in ["workload-stream", "workload-compute"] {
        of("server-2x64", program, 500, 500).row(None);
        of("server-2x64", program, 10_000, 500).row(None);
    }
    for number in 1..=13 {
        mix(number, 1).row(None);
    }
    for number in 1..=13 {
        mix(number, 10).row(None);
    }
}
