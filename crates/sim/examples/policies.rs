//! Prints the figures of docs/policies.md: every policy in the scenes of the tests, over their seeds. `cargo run --release
//! -p cosched-sim --features examples --example policies`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use shared::lab::{JobScene, SEEDS, ScenarioRun, heavy, starving, walkers};
use shared::{least_median_greatest, print_head};

/// Least and greatest value of a metric, as text.
fn range(runs: &[ScenarioRun], metric: &str, decimals: usize) -> String {
    let values = runs.iter().map(|run| run.get(metric)).collect();
    let [least, _, most] = least_median_greatest(values).map(|value| format!("{value:.decimals$}"));
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

fn main() {
    let middle = JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix08", 12_000);
    let light = JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix01", 12_000);
    let scenes = [walkers(), heavy(), middle, light, starving()];
    println!("turnaround [s], unfairness, mean slowdown");
    print_head(" | walkers | heavy | middle | light | starving");
    for policy in [
        "linux",
        "fifo",
        "round-robin",
        "bandwidth",
        "fair",
        "perf-fair",
        "oracle",
        "efs",
    ] {
        print!("| `{policy}` |");
        for scene in &scenes {
            let runs: Vec<ScenarioRun> = SEEDS.map(|seed| scene.run(policy, seed)).collect();
            print!(
                " {}, {}, {} |",
                range(&runs, "turnaround_s", 1),
                range(&runs, "unfairness", 2),
                range(&runs, "antt", 1)
            );
        }
        println!();
    }
}
