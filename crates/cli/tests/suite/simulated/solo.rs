//! Solo runs and solo times.

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{command, cosched, ended, err, json, out, write};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

#[test]
fn jobs_have_their_solo_times_and_slowdowns() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json", "-q"];
    let record = json(&cosched(&folder, &words));
    assert_eq!(record["totals"]["succeeded"], 10, "{record}");
    for job in record["jobs"].as_array().expect("jobs") {
        assert_eq!(job["solo_source"], "simulated");
        let number = |key: &str| job[key].as_f64().unwrap_or_else(|| panic!("{key}: {job}"));
        // Instances differ a little, and a job may run beside a favourable phase of another job.
        assert!(number("slowdown") > 0.9, "{job}");
        let turnaround = number("end_s") - number("arrival_s");
        assert!(
            (number("slowdown") - turnaround / number("solo_s")).abs() < 1e-9,
            "{job}"
        );
    }
    assert!(
        record["metrics"]["unfairness"]
            .as_f64()
            .is_some_and(|unfairness| unfairness >= 1.0),
        "{record}"
    );
    // Missing counters don't matter for solo runs: these are always there.
    let codes: Vec<&Value> = record["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|missing| &missing["capability"])
        .collect();
    assert!(!codes.contains(&&"solo-bandwidth".into()), "{codes:?}");
    let measured = json(&cosched(
        &folder,
        &[&words[..], &["--solo", "measure"]].concat(),
    ));
    assert_eq!(measured, record);
}

#[test]
fn a_file_of_solo_times_goes_before_simulated_ones() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json"];
    let mut record = json(&cosched(&folder, &words));
    record["jobs"][0]["solo_s"] = 4.25.into();
    // A slowdown that contradicts its times would be an error.
    record["jobs"][0]["slowdown"] = serde_json::Value::Null;
    record["jobs"][1]["name"] = "another".into();
    write(&folder, "solo.json", &record.to_string());
    let output = cosched(&folder, &[&words[..], &["--solo", "solo.json"]].concat());
    let record = json(&output);
    let solo = |ix: usize| {
        (
            record["jobs"][ix]["solo_s"].as_f64(),
            record["jobs"][ix]["solo_source"].as_str(),
        )
    };
    assert_eq!(solo(0), (Some(4.25), Some("record")));
    assert_eq!(solo(1).1, Some("simulated"));
    assert!(
        err(&output).contains("no solo time for job memory#2; its simulated solo time is used"),
        "{}",
        err(&output)
    );
    let file = &record["setting"]["files"][0];
    assert_eq!(
        (file["kind"].as_str(), file["name"].as_str()),
        (Some("solo"), Some("solo.json")),
        "{record}"
    );
    assert!(
        file["sha256"].as_str().is_some_and(|hash| hash.len() == 64),
        "{file}"
    );
    assert!(
        !err(&output).contains("the --solo file is from"),
        "{}",
        err(&output)
    );
    let elsewhere = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--format",
        "json",
        "--solo",
        "solo.json",
    ];
    let record = json(&cosched(&folder, &elsewhere));
    let warnings = record["warnings"].as_array().expect("warnings");
    assert!(
        warnings
            .iter()
            .any(|warning| warning["code"] == "solo-other-machine"),
        "{warnings:?}"
    );
}

#[test]
fn the_oracle_has_its_traces_from_simulated_solo_runs() {
    let folder = with_mix();
    let words = [
        "run", "mix.toml", "--on", MACHINE, "-q", "--policy", "oracle", "--format", "json",
    ];
    let record = json(&cosched(&folder, &words));
    for job in record["jobs"].as_array().expect("jobs") {
        assert_eq!(job["progress_basis"].as_str(), Some("trace"), "{job}");
        // The job's solo time is the same, up to the noise of counters and the cost of switches.
        let number = |key: &str| job[key].as_f64().expect("a number");
        let alone = number("progress") * record["quantum_s"].as_f64().expect("a quantum");
        assert!((alone / number("solo_s") - 1.0).abs() < 0.05, "{job}");
    }
    assert_eq!(
        record["warnings"].as_array().map(Vec::len),
        Some(0),
        "{record}"
    );
}

/// A program with so many phases that its solo run takes very long to simulate.
const RESTLESS: &str = include_str!("../../../../../programs/workloads/workload-chase.toml");

/// A folder with a mix whose job runs for days alone, in phases of microseconds.
fn with_restless_mix() -> TempDir {
    let folder = tempdir().expect("a folder");
    let parts = "[phases]\nassumed = \"to take long\"\nparts = [{ instructions = 1000 }, { instructions = 1000, cpi = 2 }]\n";
    write(&folder, "restless.toml", &format!("{RESTLESS}\n{parts}"));
    write(
        &folder,
        "mix.toml",
        "[[job]]\nprogram = \"./restless.toml\"\nwork_instructions = 1e14\n",
    );
    folder
}

/// If it simulated the job alone, this would not end today.
#[test]
fn a_dry_run_simulates_no_job_alone() {
    let folder = with_restless_mix();
    let mut run = command(
        folder.path(),
        &["run", "mix.toml", "--on", MACHINE, "--dry-run"],
    );
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let status = ended(&mut run);
    let output = run.wait_with_output().expect("an output");
    assert_eq!(status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).contains("100000000000000 instructions")
            && out(&output).contains("nothing was started")
    );
}

#[test]
fn solo_runs_can_be_interrupted() {
    let folder = with_restless_mix();
    let mut run = command(
        folder.path(),
        &["run", "mix.toml", "--on", MACHINE, "-q", "--logs", "L"],
    );
    let child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // Until the signals are held back, one of them would end the program at once.
    let status = format!("/proc/{}/status", child.id());
    let held = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & 0b10 != 0)
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while !held() {
        assert!(Instant::now() < patience, "the signals are not held back");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let expected = "interrupted while the jobs were simulated alone; nothing was run";
    assert!(
        err(&output).contains(expected) && output.stdout.is_empty(),
        "{}",
        err(&output)
    );
    assert!(!folder.path().join("L").exists());
}
