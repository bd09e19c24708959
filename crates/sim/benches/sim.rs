//! How fast a simulation goes: a 24-job mix of 100 s of solo work each, the large server, and growth with the jobs.
//! `cargo bench -p cosched-sim`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[path = "../tests/suite/support/mod.rs"]
mod support;

use cosched_sim::*;
use divan::Bencher;
use std::sync::Arc;
use support::*;

fn main() {
    divan::main();
}

const PROGRAMS_IN_MIX: [&str; 12] = [
    "mcf",
    "libquantum",
    "gamess",
    "gcc",
    "lbm",
    "sphinx3",
    "hmmer",
    "milc",
    "bzip2",
    "astar",
    "povray",
    "tonto",
];

fn jobs(count: usize, solo_ms: u64) -> Vec<SimJob> {
    let programs = PROGRAMS_IN_MIX.map(|name| builtin_program(name).expect("built in"));
    (0..count)
        .map(|n| job(&programs[n % programs.len()], solo_ms))
        .collect()
}

fn on(machine: &str, jobs: Vec<SimJob>) -> SimConfig {
    let machine = Arc::new(builtin_machine(machine).expect("built in"));
    SimConfig::new(machine, jobs, 1)
}

/// 24 jobs of 100 s of solo work each on twelve CPUs, solo runs included.
#[divan::bench(args = ["fifo", "round-robin", "bandwidth", "fair", "perf-fair", "efs", "linux"], sample_count = 7)]
fn mix_of_24(bencher: Bencher<'_, '_>, policy: &str) {
    let config = on("xeon-e5645", jobs(24, 100_000));
    bencher.bench_local(|| run_on(&config, policy).0.turnaround);
}

/// 1,024 jobs of 2 s of solo work each on 256 CPUs; prints how much faster than real time that is.
#[divan::bench(args = ["perf-fair", "linux"], sample_count = 3)]
fn large_server(bencher: Bencher<'_, '_>, policy: &str) {
    let config = on("server-2x64", jobs(1_024, 2_000));
    let began = std::time::Instant::now();
    let simulated = run_on(&config, policy).0.turnaround.as_s();
    eprintln!(
        "{policy}: {simulated:.1} s simulated, {:.0} x real time",
        simulated / began.elapsed().as_secs_f64()
    );
    bencher.bench_local(|| run_on(&config, policy).0.turnaround);
}

/// Growth with the number of jobs, at the same CPUs and the same total of work.
#[divan::bench(args = [24, 96, 384, 1_536], sample_count = 3)]
fn jobs_on_twelve_cpus(bencher: Bencher<'_, '_>, count: usize) {
    let config = on("xeon-e5645", jobs(count, 480_000 / count as u64));
    bencher.bench_local(|| run_on(&config, "linux").0.turnaround);
}
