//! The cost of cosched itself on this machine: a quantum with 24 real processes, resident memory with 24 and with 1,000
//! live jobs, and start-up. Prints a table; figures are minimum, median and maximum over several runs.
//!
//!     cargo bench -p cosched --bench host

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const COSCHED: &str = env!("CARGO_BIN_EXE_cosched");
const RUNS: usize = 3;

fn main() {
    // `cargo test --benches` runs this too; it measures only under `cargo bench`.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    println!("{:<58}{:>12}{:>12}{:>12}", "", "min", "median", "max");
    for policy in ["linux", "round-robin", "perf-fair"] {
        for freeze in ["cgroup", "signals"] {
            quantum(policy, freeze);
        }
    }
    for (jobs, policy) in [(24, "round-robin"), (1_000, "round-robin")] {
        memory(jobs, policy);
    }
    let mut help: Vec<f64> = (0..20)
        .map(|_| timed(Command::new(COSCHED).arg("--help")))
        .collect();
    row("start-up of cosched --help [ms]", &mut help);
}

fn row(what: &str, values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
    let Some(max) = values.last() else {
        println!("{what:<58}{:>12}", "absent");
        return;
    };
    println!(
        "{what:<58}{:>12.3}{:>12.3}{max:>12.3}",
        values[0],
        values[values.len() / 2]
    );
}

fn timed(command: &mut Command) -> f64 {
    let start = Instant::now();
    command
        .stdout(Stdio::null())
        .status()
        .expect("cosched starts");
    start.elapsed().as_secs_f64() * 1e3
}

/// Medians of observe + decide + apply over the quanta of one run, and CPU time of cosched per quantum. The jobs last
/// for some twenty quanta of 20 ms, so that the cost of starting them does not hide the rest.
fn quantum(policy: &str, freeze: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let list = "exec \"$COSCHED\" workload compute --work 300M\n".repeat(24);
    std::fs::write(dir.path().join("jobs"), list).expect("written");
    let (mut parts, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let done = Command::new(COSCHED)
            .args([
                "run", "-f", "jobs", "--policy", policy, "--freeze", freeze, "--jobs", "24",
            ])
            .args(["--param", "quantum_s=0.02", "--format", "json", "--quiet"])
            .env("COSCHED", COSCHED)
            .env("COSCHED_HISTORY", "off")
            .current_dir(dir.path())
            .output()
            .expect("cosched starts");
        if !done.status.success() {
            continue;
        }
        let record: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a record");
        let overhead = &record["overhead"];
        let p50 = |what: &str| overhead[what]["p50"].as_f64();
        if let (Some(a), Some(b), Some(c)) = (p50("observe_us"), p50("decide_us"), p50("apply_us"))
        {
            parts.push((a + b + c) / 1e3);
        }
        if let (Some(share), Some(turnaround), Some(quanta)) = (
            overhead["cpu_share"].as_f64(),
            record["metrics"]["turnaround_s"].as_f64(),
            overhead["quanta"].as_f64().filter(|quanta| *quanta > 0.0),
        ) {
            cpu.push(share * turnaround / quanta * 1e3);
        }
    }
    row(
        &format!("observe + decide + apply, 24 jobs, {policy}, {freeze} [ms]"),
        &mut parts,
    );
    row(
        "CPU of cosched per quantum, starting jobs included [ms]",
        &mut cpu,
    );
}

/// Highest resident memory with `jobs` jobs live at once.
fn memory(jobs: usize, policy: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("jobs"), "exec sleep 60\n".repeat(jobs)).expect("written");
    let mut peaks = Vec::new();
    for _ in 0..3 {
        let mut run = Command::new(COSCHED)
            .args([
                "run",
                "-f",
                "jobs",
                "--policy",
                policy,
                "--jobs",
                &jobs.to_string(),
                "--quiet",
            ])
            .args(["--param", "quantum_s=0.01"])
            .env("COSCHED_HISTORY", "off")
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("cosched starts");
        let start = Instant::now();
        let status = format!("/proc/{}/status", run.id());
        // All jobs are started once every job has had its quantum.
        while start.elapsed() < Duration::from_millis(2_000 + 8 * jobs as u64) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let text = std::fs::read_to_string(Path::new(&status)).unwrap_or_default();
        let kib = text.lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        });
        peaks.extend(kib.map(|kib: f64| kib / 1024.0));
        let pid = run.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = run.wait();
    }
    row(
        &format!("resident memory, {jobs} live jobs [MiB]"),
        &mut peaks,
    );
}
