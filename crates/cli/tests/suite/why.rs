//! `cosched why`: why a job runs or waits.

use crate::common::{self, cosched, ended, err, json, out, until, write};
use serde_json::Value;
use std::process::Stdio;
use tempfile::TempDir;

const MIX: &str = "[[job]]\nprogram = 'gcc'\ncopies = 3\nwork_instructions = 3e9\n\n[[job]]\nprogram = 'lbm'\ncopies = 3\n\
                   work_instructions = 3e9\n";

/// A simulated run of six jobs on two CPUs.
fn simulated() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "mix.toml", MIX);
    let words = ["run", "mix.toml", "--on", "epyc-2cpu", "-p", "fair", "-q"];
    let run = cosched(&folder, &words);
    assert!(run.status.success(), "{}", err(&run));
    folder
}

/// Of every job at several times: the states are those of the series, read in the simplest way.
#[test]
fn every_state_is_that_of_the_series() {
    let folder = simulated();
    let logs = folder
        .path()
        .join("cosched-logs")
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let series = std::fs::read_to_string(logs.join("series.jsonl")).unwrap();
    let rows: Vec<Value> = series
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let header: Value = serde_json::from_str(series.lines().next().unwrap()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for ms in [0, 350, 777, 1_500, 4_000] {
        for (task, job) in header["tasks"].as_array().unwrap().iter().enumerate() {
            let mut expected = "queued";
            for row in rows
                .iter()
                .filter(|row| row[1].as_u64().unwrap() <= ms * 1_000_000 && row[2] == task)
            {
                expected = match row[0].as_str().unwrap() {
                    "p" => "runs",
                    "x" => "waits",
                    "b" if expected == "queued" => "waits",
                    "e" => "ended",
                    _ => expected,
                };
            }
            let name = job["name"].as_str().unwrap();
            let at = format!("{ms}ms");
            let answer = json(&cosched(
                &folder,
                &["why", name, "--at", &at, "--format", "json"],
            ));
            assert_eq!(answer["state"], expected, "{name} at {at}");
            let is_waiting = ["waits", "queued"].contains(&expected);
            assert_eq!(answer["latest"].is_null(), !is_waiting, "{name} at {at}");
            seen.insert(expected);
            let text = out(&cosched(
                &folder,
                &["why", name, logs.to_str().unwrap(), "--at", &at],
            ));
            assert!(
                text.starts_with(&format!("{name} at {:.3} s: ", ms as f64 / 1e3)),
                "{text}"
            );
            assert_eq!(text.contains("  latest: "), is_waiting, "{text}");
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn what_can_not_be_answered_is_told() {
    let folder = simulated();
    let error = |words: &[&str]| {
        let output = cosched(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        err(&output)
    };
    assert!(error(&["why", "gcc"]).contains("it could be gcc#1, gcc#2, gcc#3"));
    assert!(error(&["why", "gvc#1"]).contains("is it gcc#1?"));
    assert!(error(&["why", "gcc#1", "nowhere"]).contains("no such file and no such live run"));
    assert!(error(&["why", "gcc#1", "mix.toml"]).contains("expected a series"));
    write(
        &folder,
        "jobs.log",
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n",
    );
    assert!(error(&["why", "gcc#1", "jobs.log"]).contains("jobs.log: expected a series"));
    // Which run is meant here depends on which runs go on meanwhile; none has such a job.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(
        cosched(&empty, &["why", "no such job"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_run_that_goes_on_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "going", "");
    let cpu = common::one_cpu();
    let job = "while test -e going; do :; done; : {}";
    let words = [
        "run",
        "-q",
        "--cpus",
        &cpu,
        "-j2",
        "-p",
        "round-robin",
        job,
        ":::",
        "a",
        "b",
    ];
    let mut run = common::command(folder.path(), &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = || out(&cosched(&folder, &["why", "test#1"]));
    let is_told = |word: &str| {
        told()
            .lines()
            .next()
            .is_some_and(|line| line.contains(word))
    };
    until("a runs and waits in turn", || is_told("runs on CPU"));
    // Its state can come after its series.
    until("it is found by its process", || {
        let by_process = cosched(&folder, &["why", "test#1", &run.id().to_string()]);
        by_process.status.success()
    });
    let logs = cosched(&folder, &["why", "test#1", "cosched-logs"]);
    assert!(
        err(&logs).contains("the last of the runs in it is cosched-logs/"),
        "{}",
        err(&logs)
    );
    until("a waits", || {
        let text = told();
        text.contains(": waits,")
            && text.contains("instead: test#2 on CPU")
            && text.contains("latest: ")
    });
    std::fs::remove_file(folder.path().join("going")).unwrap();
    assert!(ended(&mut run).success());
    assert!(
        told().contains("test#1 at ") && told().contains("ended at"),
        "{}",
        told()
    );
}
