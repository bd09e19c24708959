//! Calls of `cosched compare`, and what they left.

use crate::common;
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) fn command(folder: &TempDir, words: &[&str]) -> Command {
    common::command(folder.path(), words)
}

pub(crate) fn compare(folder: &TempDir, words: &[&str]) -> Output {
    command(folder, &[&["compare"], words].concat())
        .output()
        .expect("the binary runs")
}

pub(crate) const SIMULATED: &str = "[[job]]\nprogram = 'gcc'\ncopies = 3\nwork_instructions = 1e9\n\n[[job]]\nprogram = 'lbm'\ncopies = 3\n\
                         work_instructions = 1e9\n";

/// How many runs have a record.
pub(crate) fn records(folder: &TempDir, name: &str) -> Vec<std::path::PathBuf> {
    fn walk(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.ends_with("run.json") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&folder.path().join(name).join("runs"), &mut found);
    found.sort();
    found
}

/// Writes another value in the place of one in a file of JSON.
pub(crate) fn change(folder: &TempDir, name: &str, key: &str, value: &str) {
    let file = folder.path().join(name);
    let mut object: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(object[key].is_string(), "{object}");
    object[key] = value.into();
    std::fs::write(file, object.to_string()).unwrap();
}
