//! Prints how jobs fare that arrive one after the other, in 30 mixes: mean turnaround and unfairness.
//! `cargo run --release -p cosched-sim --features examples --example open -- POLICY[@PARAM=VALUE,...]...`
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::{Counter, Nanos, NullRecorder, Rng};
use shared::lab::JobScene;
use shared::{geometric_mean, print_head};

const MACHINE: &str = "xeon-e5645-2ch";
const CPUS: f64 = 12.0;
const JOBS: usize = 60;
const PROGRAMS: [&str; 12] = [
    "bzip2",
    "gamess",
    "mcf",
    "milc",
    "gromacs",
    "leslie3d",
    "gobmk",
    "soplex",
    "hmmer",
    "libquantum",
    "lbm",
    "omnetpp",
];

const LENGTHS: [(&str, Lengths); 3] = [
    ("alike", Lengths::Alike),
    ("octaves", Lengths::Octaves),
    ("two lengths", Lengths::Two),
];

/// How the lengths of the jobs are spread.
#[derive(Clone, Copy)]
enum Lengths {
    /// 8 s each.
    Alike,
    /// 2 to 32 s, each octave as often.
    Octaves,
    /// Four of five jobs 2 s, the others 32 s.
    Two,
}

struct World {
    title: String,
    scene: JobScene,
}

fn main() {
    let policies: Vec<String> = std::env::args().skip(1).collect();
    print_head(&format!("mix | {}", policies.join(" | ")));
    // Of each policy: mean turnarounds against those of the first policy, and unfairness.
    let mut ratios = vec![Vec::new(); policies.len()];
    let mut unfairness = vec![Vec::new(); policies.len()];
    for world in &worlds() {
        let all: Vec<[f64; 3]> = policies
            .iter()
            .map(|policy| figures(world, policy))
            .collect();
        let mut cells = Vec::new();
        for (at, [time_s, unfair, worst]) in all.iter().enumerate() {
            let ratio = time_s / all[0][0];
            ratios[at].push(ratio);
            unfairness[at].push(*unfair);
            let percent = 100.0 * (ratio - 1.0);
            cells.push(format!(
                "{percent:+.1} % ({time_s:.2} s), {unfair:.2}, {worst:.2}"
            ));
        }
        println!("| {} | {} |", world.title, cells.join(" | "));
    }
    let mut cells = Vec::new();
    for (ratios, unfairness) in ratios.iter().zip(&unfairness) {
        let worst = ratios.iter().copied().fold(f64::MIN, f64::max);
        let [mean, worst] = [geometric_mean(ratios), worst].map(|ratio| 100.0 * (ratio - 1.0));
        let unfair = geometric_mean(unfairness);
        cells.push(format!("{mean:+.1} %, worst {worst:+.1} %, {unfair:.2}"));
    }
    println!("| all | {} |", cells.join(" | "));
}

/// Mean turnaround in seconds, unfairness, and worst slowdown.
fn figures(world: &World, policy: &str) -> [f64; 3] {
    let (name, params) = policy.split_once('@').unwrap_or((policy, ""));
    let params: Vec<(&str, &str)> = params
        .split(',')
        .filter_map(|param| param.split_once('='))
        .collect();
    let run = world.scene.run_with(name, &params, 1, &mut NullRecorder);
    [
        run.mean_turnaround_s(),
        run.get("unfairness"),
        run.get("worst_slowdown"),
    ]
}

/// In the environment, `WITHHELD` names counts that are withheld, as in `MmReads,L1Accesses`; `VISIBLE` makes the progress of
/// jobs visible; `SEED` changes jobs and arrivals.
fn worlds() -> Vec<World> {
    let seed = std::env::var("SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let mut worlds = Vec::new();
    for (word, lengths) in LENGTHS {
        for (ix, load) in (1..).zip([0.35, 0.5, 0.65, 0.8, 1.2]) {
            for (is_known, known) in [(false, "unknown"), (true, "known")] {
                let title = format!("{word}, load {load}, {known}");
                let scene = scene(lengths, load, is_known, seed + ix);
                worlds.push(World { title, scene });
            }
        }
    }
    worlds
}

/// Jobs that arrive at random, so that they need this many times the CPUs.
fn scene(lengths: Lengths, load: f64, is_known: bool, seed: u64) -> JobScene {
    let mut rng = Rng::new(seed);
    let mut scene = JobScene::on(MACHINE);
    let mut work_s = 0.0;
    for _ in 0..JOBS {
        let s = length_s(lengths, unit(&mut rng));
        let program = PROGRAMS[rng.below(PROGRAMS.len() as u64) as usize];
        scene = scene.copies(1, program, (1e3 * s) as u64);
        work_s += s;
    }
    let gap_s = work_s / JOBS as f64 / (load * CPUS);
    let mut at_s = 0.0;
    let mut arrivals = Vec::new();
    for _ in 0..JOBS {
        arrivals.push(Nanos::from_s(at_s));
        at_s -= gap_s * (1.0 - unit(&mut rng)).ln();
    }
    let withheld = std::env::var("WITHHELD").unwrap_or_default();
    for counter in Counter::ALL {
        if withheld
            .split(',')
            .any(|name| name == format!("{counter:?}"))
        {
            scene = scene.change(|machine| machine.counters.counts[counter] = false);
        }
    }
    if std::env::var("VISIBLE").is_ok() {
        scene = scene.visible();
    }
    scene.open(arrivals, is_known)
}

/// A number from 0 to below 1.
fn unit(rng: &mut Rng) -> f64 {
    rng.below(1 << 32) as f64 / (1u64 << 32) as f64
}

fn length_s(lengths: Lengths, unit: f64) -> f64 {
    match lengths {
        Lengths::Alike => 8.0,
        Lengths::Octaves => 2.0 * 16f64.powf(unit),
        Lengths::Two => {
            if unit < 0.8 {
                2.0
            } else {
                32.0
            }
        }
    }
}
