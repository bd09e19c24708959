//! `cosched report`: what is told of runs that ended, were killed, were resumed, or whose files are damaged; and of comparisons.

mod one_run;
mod pages;
mod several_runs;

use crate::common::{self, cosched, ended, err, json, out, read, until, write};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const SIMULATED: &str = "[[job]]\nprogram = 'gcc'\ncopies = 3\nwork_instructions = 1e9\n\n[[job]]\nprogram = 'lbm'\ncopies = 3\n\
                         work_instructions = 1e9\n";

fn report(folder: &TempDir, words: &[&str]) -> Output {
    cosched(folder, &[&["report"], words].concat())
}

/// Simulates the mix under a policy and leaves its files in a folder.
fn simulate(folder: &TempDir, policy: &str, logs: &str) -> Output {
    write(folder, "mix.toml", SIMULATED);
    let words = [
        "run",
        "mix.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        policy,
        "--logs",
        logs,
        "-v",
    ];
    let output = cosched(folder, &words);
    assert!(output.status.success(), "{}", err(&output));
    output
}

/// Compares policies on the mix of the folder, into the folder `c`.
fn compare(folder: &TempDir, policies: &str, blocks: &str) -> Output {
    let on = ["compare", "mix.toml", "--on", "epyc-2cpu", "-p", policies];
    let more = ["-r", blocks, "--out", "c", "--format", "json", "-q"];
    let output = cosched(folder, &[&on[..], &more].concat());
    assert!(output.status.success(), "{}", err(&output));
    output
}

fn error(folder: &TempDir, words: &[&str]) -> String {
    let output = report(folder, words);
    assert_eq!(
        (output.status.code(), out(&output)),
        (Some(2), String::new()),
        "{words:?}"
    );
    err(&output)
}

/// The rows of a CSV file without quoted fields, by the names of their columns.
fn rows(csv: &str) -> Vec<std::collections::BTreeMap<&str, &str>> {
    let names: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    csv.lines()
        .skip(1)
        .map(|line| names.iter().copied().zip(line.split(',')).collect())
        .collect()
}
