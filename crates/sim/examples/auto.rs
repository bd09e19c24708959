//! Prints the tables of results/auto-measured.md: the candidates of `auto` in several worlds, with events withheld.
//! `cargo run --release -p cosched-sim --example auto [WORLD]`, where WORLD is a part of a title.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
#[path = "../tests/suite/scenarios/lab.rs"]
mod lab;

use cosched_core::{Capability, Counter, NullRecorder, Params, find_policy};
use lab::{Scene, starving, walkers};
use std::collections::BTreeMap;

/// A policy with its parameters.
type Candidate = (&'static str, &'static [(&'static str, &'static str)]);

const SECOND: &[(&str, &str)] = &[("quantum_s", "1")];
const HALF: &[(&str, &str)] = &[("quantum_s", "0.5")];
const CANDIDATES: [Candidate; 9] = [
    ("fifo", &[]),
    ("linux", &[]),
    ("round-robin", &[]),
    ("round-robin", SECOND),
    ("bandwidth", &[]),
    ("fair", &[]),
    ("perf-fair", &[]),
    ("even", &[]),
    ("even", HALF),
];

use Counter::{Cycles, Instructions, L1Accesses, LlcAccesses, MmReads};

/// The withheld events.
const WITHOUT: [&[Counter]; 9] = [
    &[],
    &[L1Accesses],
    &[LlcAccesses],
    &[MmReads],
    &[L1Accesses, LlcAccesses],
    &[L1Accesses, MmReads],
    &[LlcAccesses, MmReads],
    &[L1Accesses, LlcAccesses, MmReads],
    &[Cycles, Instructions, L1Accesses, LlcAccesses, MmReads],
];

/// Turnaround against `fifo`, and unfairness: geometric means over the scenes of a world.
type Figures = [f64; 2];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (world, scenes) in worlds() {
        if !world.contains(&wanted) {
            continue;
        }
        let mut known = BTreeMap::new();
        let mut of = |candidate: Candidate, without: &[Counter]| {
            let seen = used(candidate, without);
            *known
                .entry((candidate, seen.clone()))
                .or_insert_with(|| figures(&scenes, candidate, &seen))
        };
        println!("\n## {world}\n");
        println!("| withheld | {} |", CANDIDATES.map(name).join(" | "));
        println!("| --- |{}", " --- |".repeat(CANDIDATES.len()));
        for without in WITHOUT {
            let [base, _] = of(CANDIDATES[0], without);
            let cells = CANDIDATES.map(|candidate| {
                let [time, unfairness] = of(candidate, without);
                format!("{:+.1}, {unfairness:.2}", 100.0 * (time / base - 1.0))
            });
            println!("| {} | {} |", withheld(without), cells.join(" | "));
        }
    }
}

fn name((policy, params): Candidate) -> String {
    let params = params.iter();
    let params: String = params
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    format!("`{policy}{params}`")
}

fn withheld(without: &[Counter]) -> String {
    let names: Vec<&str> = without.iter().map(|counter| counter.name()).collect();
    match names[..] {
        [] => "nothing".to_owned(),
        _ => names.join(", "),
    }
}

/// The withheld events that the policy would use.
fn used((policy, _): Candidate, without: &[Counter]) -> Vec<Counter> {
    let entry = find_policy(policy).expect("in the table");
    let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
    let needs = (entry.needs)(&params);
    let is_used = |counter: &Counter| {
        let wanted = Capability::of(*counter);
        needs.iter().any(|need| need.capability == wanted)
    };
    without.iter().copied().filter(is_used).collect()
}

fn figures(scenes: &[Scene], (policy, params): Candidate, without: &[Counter]) -> Figures {
    let mut logs = [0.0; 2];
    for scene in scenes {
        let scene = scene.clone().change(|machine| {
            for &counter in without {
                machine.counters.counts[counter] = false;
            }
        });
        let run = scene.run_with(policy, params, 1, &mut NullRecorder);
        for (log, metric) in logs.iter_mut().zip(["turnaround_s", "unfairness"]) {
            *log += run.get(metric).ln() / scenes.len() as f64;
        }
    }
    logs.map(f64::exp)
}

fn worlds() -> Vec<(&'static str, Vec<Scene>)> {
    let all = |machine| mixes(machine, "perf-fair/mix", 1..=13, 100_000);
    let some = |solo_ms| {
        mixes(
            "xeon-e5645-2ch",
            "perf-fair/mix",
            (1..=13).step_by(2),
            solo_ms,
        )
    };
    let noisy = |scene: Scene| scene.change(|machine| machine.counters.noise = 0.2);
    let server = (1..=13).fold(Scene::on("server-2x64"), |scene, mix| {
        scene.mix(&format!("perf-fair/mix{mix:02}"), 100_000)
    });
    vec![
        ("three channels: xeon-e5645", all("xeon-e5645")),
        ("two channels: xeon-e5645-2ch", all("xeon-e5645-2ch")),
        ("one channel: xeon-e5645-1ch", all("xeon-e5645-1ch")),
        (
            "noise: counts off by up to 20 %",
            some(100_000).into_iter().map(noisy).collect(),
        ),
        ("short: jobs of 12 s", some(12_000)),
        (
            "uneven: jobs of 20 and 100 s",
            some(20_000).into_iter().map(Scene::uneven).collect(),
        ),
        (
            "poster: ten mixes of the poster",
            mixes("xeon-e5645-2ch", "bandwidth/mix", 1..=10, 100_000),
        ),
        ("efs: eight mixes on i5-2500", (1..=8).map(efs).collect()),
        ("server: 312 jobs on server-2x64", vec![server]),
        ("walkers", vec![walkers()]),
        ("starving", vec![starving()]),
    ]
}

fn efs(number: usize) -> Scene {
    Scene::on("i5-2500").mix(&format!("efs/high-{number}"), 100_000)
}

/// The mixes of a folder on a machine.
fn mixes(
    machine: &'static str,
    path: &str,
    numbers: impl Iterator<Item = usize>,
    solo_ms: u64,
) -> Vec<Scene> {
    let mix = |number| Scene::on(machine).mix(&format!("{path}{number:02}"), solo_ms);
    numbers.map(mix).collect()
}
