//! How many threads programs are told to start, and the advice where they start too many.

use crate::common::{self, ended, err, json, out, until, write};
use crate::width;
use cosched_core::CpuSet;
use serde_json::Value;
use std::process::{Command, Stdio};
use tempfile::{TempDir, tempdir};

/// Prints what a job is told.
const SHOW: &str = "echo $COSCHED_THREADS,$OMP_NUM_THREADS,$RAYON_NUM_THREADS,$GOMAXPROCS";

/// A call of `cosched run` for jobs of whom the caller has told nothing.
fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = common::command(folder.path(), &[&["run"], words].concat());
    for name in ["OMP_NUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS"] {
        command.env_remove(name);
    }
    command
}

/// What a job with so many CPUs is told: nothing but the number if these are all of the machine.
fn told(cpus: usize) -> String {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("a list");
    let online: CpuSet = online.trim().parse().expect("a list of CPUs");
    if cpus < online.len() {
        format!("{cpus},{cpus},{cpus},{cpus}")
    } else {
        format!("{cpus},,,")
    }
}

#[test]
fn programs_are_told_the_cpus_of_their_job() {
    let Some((_, [one, other])) = width::cpus() else {
        return;
    };
    let cpus = format!("{one},{other}");
    let folder = tempdir().expect("a folder");
    let job = |more: &str| format!("[[job]]\ncommand = '{SHOW}'\n{more}\n");
    write(&folder, "last.toml", &(job("cpus = 2") + &job("")));
    write(&folder, "cpus.toml", &(job("cpus = 1")));
    write(
        &folder,
        "own.toml",
        &job("env = { GOMAXPROCS = '9' }").repeat(2),
    );
    let line = format!("{SHOW}; : {{}}");
    let two = [&*line, ":::", "a", "b"];
    let shown = |options: &[&str], jobs: &[&str]| {
        let words = ["--quiet", "--no-logs", "--cpus", &cpus, "--order", "given"];
        let mut command = command(&folder, &[&words[..], options, jobs].concat());
        let output = command.env("RAYON_NUM_THREADS", "7").output();
        let output = output.expect("cosched runs");
        assert!(output.status.success(), "{}", err(&output));
        let lines = out(&output);
        let lines = lines.lines().map(|line| line.replacen(",7,", ",R,", 1));
        lines.collect::<Vec<_>>()
    };
    // The user's own variable stays.
    let [one, both] = [1, 2].map(|cpus| {
        let told = told(cpus);
        let mut values: Vec<&str> = told.split(',').collect();
        values[2] = "R";
        values.join(",")
    });
    let both = &*both;
    for policy in ["fifo", "linux", "round-robin"] {
        let policy = ["--policy", policy];
        assert_eq!(shown(&policy, &["--", "sh", "-c", SHOW]), [both]);
        assert_eq!(shown(&policy, &two), [&*one, &*one], "each has one");
        assert_eq!(
            shown(&[&policy[..], &["-j", "1"]].concat(), &two),
            [both, both],
            "one is live at once"
        );
    }
    assert_eq!(shown(&[], &["cpus.toml"]), [&*one]);
    assert_eq!(shown(&["--cpus-per-job", "2"], &two), [both, both]);
    assert_eq!(shown(&["-p", "fifo"], &["last.toml"]), [both, both]);
    let own = one
        .rsplit_once(',')
        .map(|(before, _)| format!("{before},9"));
    let own = own.expect("four values");
    assert_eq!(shown(&[], &["own.toml"]), [&*own, &*own]);
    assert_eq!(shown(&["--threads-env", "off"], &two), [",,R,", ",,R,"]);
    let nodes = ["--nodes", "local:1"];
    assert_eq!(shown(&nodes, &two), [&*one, &*one]);
    let nodes = ["--nodes", "local:1", "--threads-env", "off"];
    assert_eq!(shown(&nodes, &two), [",,R,", ",,R,"]);
    let plan = [&["--dry-run", "--cpus", &cpus][..], &two].concat();
    let plan = command(&folder, &plan).output().expect("cosched runs");
    assert!(out(&plan).contains("threads   1 for the first job (--threads-env)"));
}

/// A process with four threads. What it does does not matter.
const THREADS: &str = concat!(
    "ulimit -t 60; while :; do ",
    env!("CARGO_BIN_EXE_cosched"),
    " reproduce bandwidth --quick --quiet --jobs 4 > threads.out; done"
);

/// Four processes, as of a build.
const PROCESSES: &str = "ulimit -t 60; for i in 1 2 3 4; do (while :; do :; done) & done; wait";

/// The warnings about threads in a series, by their tasks.
fn warned(folder: &TempDir) -> Vec<(u64, String)> {
    let series = std::fs::read_to_string(folder.path().join("logs/series.jsonl"));
    let mut found = Vec::new();
    for line in series.unwrap_or_default().lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_default();
        if row[0] == "!" && row[2] == "few-cpus" {
            let text = row[3].as_str().expect("a text").to_owned();
            found.push((row[4].as_u64().expect("a task"), text));
        }
    }
    found.sort();
    found
}

#[test]
fn advice_is_given_where_the_threads_of_a_process_outnumber_its_cpus() {
    for policy in ["fifo", "linux"] {
        let folder = tempdir().expect("a folder");
        let jobs = match policy {
            "fifo" => THREADS.to_owned(),
            _ => [PROCESSES, THREADS, THREADS].join("\n"),
        };
        write(&folder, "jobs", &jobs);
        let one = common::one_cpu();
        let words = ["--logs", "logs", "--cpus", &one, "-j", "3", "-f", "jobs"];
        let quanta = ["--policy", policy, "--param", "quantum_s=0.01", "--quiet"];
        let mut run = command(&folder, &[&words[..], &quanta].concat());
        let mut run = run.stderr(Stdio::null()).spawn().expect("cosched runs");
        let should = if policy == "fifo" {
            vec![0]
        } else {
            vec![1, 2]
        };
        until("each is told", || warned(&folder).len() >= should.len());
        let warned = warned(&folder);
        let tasks: Vec<u64> = warned.iter().map(|(task, _)| *task).collect();
        assert_eq!(tasks, should, "{policy}: {warned:?}");
        let (_, text) = &warned[0];
        let name = text.split(' ').next().expect("a name");
        assert!(text.contains(" threads that want to run, and 1 CPU: "));
        let why = common::cosched(&folder, &["why", name, "logs", "--format", "json"]);
        assert_eq!(json(&why)["warnings"], Value::from([&**text].to_vec()));
        let pid = run.id().to_string();
        let term = Command::new("kill").arg(pid).status();
        assert!(term.expect("kill runs").success());
        assert_eq!(ended(&mut run).code(), Some(143));
        let record: Value =
            serde_json::from_str(&common::read(&folder, "logs/run.json")).expect("a record");
        let warnings = record["warnings"].as_array().expect("a list").iter();
        let told = warnings.filter(|warning| warning["code"] == "few-cpus");
        assert_eq!(told.count(), 1, "{policy}: {}", record["warnings"]);
        assert_eq!(record["setting"]["options"]["threads_env"], "auto");
    }
}
