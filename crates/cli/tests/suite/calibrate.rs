//! `cosched calibrate`: the file of this machine, and who uses it. No figure is checked: a busy machine has none.

use crate::common::{self, err, json, out, write};
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

/// A call of cosched whose user keeps data in the folder.
fn cosched(folder: &TempDir, words: &[&str]) -> Output {
    let mut command = common::command(folder.path(), words);
    command.env("XDG_DATA_HOME", folder.path());
    command.output().expect("the binary runs")
}

const SIMULATE: &[&str] = &[
    "run",
    "a.toml",
    "--on",
    "mine",
    "--no-logs",
    "-q",
    "--format",
    "json",
];

/// A folder with a mix file, and the place of this machine's file, which does not exist.
fn not_measured() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "a.toml",
        "[[job]]\nprogram = 'lbm'\ncopies = 2\nwork_instructions = 1e8\n",
    );
    let refused = cosched(&folder, SIMULATE);
    assert_eq!(refused.status.code(), Some(2));
    let text = err(&refused);
    let (_, rest) = text.split_once("there is no ").expect("it names the file");
    let (file, rest) = rest.split_once(';').unwrap();
    assert!(rest.contains("`cosched calibrate`"), "{text}");
    assert!(file.starts_with(folder.path().join("cosched/machines").to_str().unwrap()));
    (folder, PathBuf::from(file))
}

#[test]
fn the_rate_of_memory_is_measured_or_refused() {
    let (folder, file) = not_measured();
    let check = cosched(&folder, &["calibrate", "--check"]);
    assert_eq!(check.status.code(), Some(2), "{}", err(&check));
    let calibrated = cosched(&folder, &["calibrate", "--quick"]);
    if calibrated.status.success() {
        assert!(out(&calibrated).contains("params.mu_trans_per_us"));
        let record = json(&cosched(&folder, SIMULATE));
        assert_eq!(record["jobs"].as_array().unwrap().len(), 2);
    } else {
        let why = err(&calibrated);
        let reasons = ["busy", "too little free memory", "may be used"];
        assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
        assert!(!file.exists());
    }
}

/// The origins of the parameters of a policy on this machine, as `--dry-run` plans them.
fn planned(folder: &TempDir, words: &[&str]) -> String {
    let plan = ["run", "--dry-run", "--format", "json", "-p"];
    let plan = json(&cosched(folder, &[&plan, words, &["--", "true"]].concat()));
    plan["param_origins"].to_string()
}

#[test]
fn the_file_of_this_machine_is_simulated_named_and_used() {
    let (folder, file) = not_measured();
    let efs = ["efs", "--param", "demand=given"];
    assert!(!planned(&folder, &efs).contains("mu_trans_per_us"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let machine = out(&cosched(&folder, &["list", "machines", "i5-2500"]));
    std::fs::write(&file, machine).unwrap();

    let record = json(&cosched(&folder, SIMULATE));
    assert_eq!(record["backend"], "sim");
    let origins = planned(&folder, &efs);
    assert!(
        origins.contains("\"mu_trans_per_us\":\"machine\""),
        "{origins}"
    );
    let doctor = json(&cosched(&folder, &["doctor", "--format", "json"]));
    let features = doctor["features"].as_array().unwrap();
    let named = features.iter().find(|one| one["feature"] == "machine file");
    let expected = format!("{}, 0 days old", file.display());
    assert_eq!(named.unwrap()["found"], expected.as_str());

    // A damaged file is no reason to refuse a run; doctor names it.
    std::fs::write(&file, "nothing").unwrap();
    assert!(!planned(&folder, &efs).contains("mu_trans_per_us"));
    let doctor = out(&cosched(&folder, &["doctor"]));
    assert!(doctor.contains("machine file"), "{doctor}");
}

#[test]
fn efs_is_refused_if_the_rate_of_memory_can_not_be_known() {
    let folder = tempfile::tempdir().unwrap();
    // Any event stands for reads of memory. The user has no folder for the file.
    let words = [
        "run",
        "-p",
        "efs",
        "--event",
        "mm=software/event=0/",
        "--",
        "touch",
        "started",
    ];
    let mut command = common::command(folder.path(), &words);
    command.env_remove("XDG_DATA_HOME").env("HOME", "relative");
    let refused = command.output().expect("the binary runs");
    let why = err(&refused);
    assert_eq!(refused.status.code(), Some(3), "{why}");
    let reasons = [
        "--param mu_trans_per_us=300; nothing was started",
        "this machine has none",
    ];
    assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
    assert!(!folder.path().join("started").exists());
}

#[test]
fn coefficients_are_not_taken_from_another_machine() {
    let (folder, file) = not_measured();
    let simulated = ["run", "a.toml", "--on", "i5-2500", "-q", "--logs", "logs"];
    assert!(cosched(&folder, &simulated).status.success());
    let refused = cosched(&folder, &["calibrate", "logs"]);
    assert!(!refused.status.success());
    let why = err(&refused);
    let reasons = ["no two types of core", "not on this machine", "may be used"];
    assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
    assert!(!file.exists());
}
