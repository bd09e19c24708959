//! Prints how policies do on two sockets of 64 cores, beside `linux`.
//! `cargo run --release -p cosched-sim --example sockets [POLICY...]`
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
#[path = "../tests/suite/scenarios/lab.rs"]
mod lab;

use cosched_core::NullRecorder;
use lab::Scene;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    println!("| jobs | policy | turnaround | unfairness |\n| --- | --- | --- | --- |");
    for mixes in [8, 13, 22] {
        let scene = server(mixes);
        let linux = measure(&scene, "linux");
        for policy in &named {
            let [time, unfairness] = measure(&scene, policy);
            let change = 100.0 * (time / linux[0] - 1.0);
            println!(
                "| {} | {policy} | {time:.1} s, {change:+.1} % | {unfairness:.2} |",
                24 * mixes
            );
        }
    }
}

fn measure(scene: &Scene, policy: &str) -> [f64; 2] {
    let run = scene.run_with(policy, &[], 1, &mut NullRecorder);
    ["turnaround_s", "unfairness"].map(|metric| run.get(metric))
}

/// The programs of this many mixes.
fn server(mixes: usize) -> Scene {
    (0..mixes).fold(Scene::on("server-2x64"), |scene, at| {
        scene.mix(&format!("perf-fair/mix{:02}", 1 + at % 13), 30_000)
    })
}
