//! Completion, asked for as the scripts of `cosched completions` do.

use crate::common::looping::LoopingRun;
use crate::common::{command, err, out};
use std::path::Path;
use tempfile::tempdir;

/// The words that are offered for the last one, in an empty home.
fn offered(folder: &Path, line: &[&str]) -> Vec<String> {
    let empty = tempdir().expect("a home");
    let words = [&["--", "cosched"], line].concat();
    let mut call = command(folder, &words);
    call.env("HOME", empty.path())
        .env("XDG_STATE_HOME", "/nonexistent");
    answer(call.env("_CLAP_COMPLETE_INDEX", line.len().to_string()))
}

/// What a call as a shell's answers.
pub(crate) fn answer(call: &mut std::process::Command) -> Vec<String> {
    let output = call
        .env("COSCHED_COMPLETE", "bash")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", err(&output));
    out(&output)
        .split(['\n', '\u{b}'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn values_are_completed() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("big.toml"), "").expect("a file");
    let run = folder.path().join("cosched-logs/1");
    std::fs::create_dir_all(&run).expect("a folder");
    std::fs::write(run.join("series.jsonl"), "{}").expect("a file");
    let check = |line: &str, expected: &[&str]| {
        let words: Vec<&str> = line.split(' ').collect();
        let offered = offered(folder.path(), &words);
        for word in expected {
            assert!(offered.iter().any(|one| one == word), "{line}: {offered:?}");
        }
        let limit = if expected.is_empty() { 0 } else { usize::MAX };
        assert!(offered.len() <= limit, "{line}: {offered:?}");
    };
    check("run -p f", &["fifo", "fair"]);
    check("compare -p linux,perf", &["linux,perf-fair"]);
    check("run --on b", &["big1-small3", "big.toml"]);
    // Bash divides `--policy=f`.
    check("run --policy = f", &["fifo"]);
    check("run --policy = fair sort b", &["big.toml"]);
    check("run sort --key = 1 b", &["big.toml"]);
    check("submit sort b", &["big.toml"]);
    check("run s", &["sort"]);
    check("run -p fair sort b", &["big.toml"]);
    check("run -p fair sort -", &[]);
    check("run --jo", &["--jobs", "--joblog"]);
    check("list programs m", &["mcf"]);
    check("help p", &["policies", "parallel"]);
    check("cancel 1", &[]);
    check("sta", &["status"]);
    check("report c", &["cosched-logs/1"]);
    check("run --resume=c", &["--resume=cosched-logs/1"]);
}

#[test]
fn live_runs_and_their_jobs_are_completed() {
    let run = LoopingRun::start(&[]);
    for verb in ["status", "top", "set"] {
        let runs = offered(run.folder(), &[verb, ""]);
        assert!(runs.contains(&run.pid()), "{verb}: {runs:?}");
    }
    let jobs = offered(run.folder(), &["why", "loop"]);
    assert_eq!(jobs, ["loop#2", "loop#3", "loop#4", "loop#5"]);
    assert!(offered(run.folder(), &["why", "loop#2", &run.pid()]).contains(&run.pid()));
    run.end();
}
