//! Prints how policies do on machines of two sockets, beside `linux`.
//! `cargo run --release -p cosched-sim --features examples --example sockets [POLICY...]`
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::NullRecorder;
use shared::lab::JobScene;
use shared::{print_head, server};

/// Machines with numbers of mixes of Perf&Fair, of 24 jobs each: fewer jobs than CPUs, more, and twice as many.
const WORLDS: [(&str, [usize; 3]); 2] =
    [("server-2x64", [8, 13, 22]), ("epyc-7502-2s", [4, 7, 11])];

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    print_head("machine | jobs | policy | turnaround | unfairness");
    for (machine, numbers) in WORLDS {
        for mixes in numbers {
            let scene = server(machine, mixes);
            let [linux, unfairness] = measure(&scene, "linux");
            let jobs = 24 * mixes;
            println!("| `{machine}` | {jobs} | `linux` | {linux:.1} s | {unfairness:.2} |");
            for policy in &named {
                let [time, unfairness] = measure(&scene, policy);
                let change = 100.0 * (time / linux - 1.0);
                println!("| | | `{policy}` | {change:+.1} % | {unfairness:.2} |");
            }
        }
    }
}

fn measure(scene: &JobScene, policy: &str) -> [f64; 2] {
    let run = scene.run_with(policy, &[], 1, &mut NullRecorder);
    ["turnaround_s", "unfairness"].map(|metric| run.get(metric))
}
