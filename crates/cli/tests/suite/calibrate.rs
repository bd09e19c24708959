//! `cosched calibrate`: the file that it writes, and who uses it. No figure is checked: a busy machine has none.

use crate::common::{self, err, json, out, read, write};
use std::process::Output;
use tempfile::TempDir;

/// A call of cosched whose user keeps data in the folder.
fn cosched(folder: &TempDir, words: &[&str]) -> Output {
    let mut command = common::command(folder.path(), words);
    command.env("XDG_DATA_HOME", folder.path());
    command.output().expect("the binary runs")
}

const MIX: &str = "[[job]]\nprogram = 'lbm'\ncopies = 2\nwork_instructions = 1e8\n";

#[test]
fn a_calibrated_machine_is_simulated_and_named() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", MIX);
    let simulate = [
        "run",
        "a.toml",
        "--on",
        "mine",
        "--no-logs",
        "-q",
        "--format",
        "json",
    ];
    let refused = cosched(&folder, &simulate);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("`cosched calibrate`"),
        "{}",
        err(&refused)
    );
    let check = cosched(&folder, &["calibrate", "--check"]);
    assert_eq!(check.status.code(), Some(2), "{}", err(&check));

    // Disturbed measurements are refused with 1, and the file is written without them.
    let calibrated = cosched(&folder, &["calibrate", "--only", "cores"]);
    let code = calibrated.status.code();
    assert!(code == Some(0) || code == Some(1), "{}", err(&calibrated));
    let text = out(&calibrated);
    assert!(text.contains("a switch on a CPU"), "{text}");
    let path = text.lines().last().unwrap();
    let place = folder.path().join("cosched/machines");
    assert!(path.starts_with(place.to_str().unwrap()), "{path}");

    let record = json(&cosched(&folder, &simulate));
    assert_eq!(record["backend"], "sim");
    assert_eq!(record["jobs"].as_array().unwrap().len(), 2);
    let doctor = json(&cosched(&folder, &["doctor", "--format", "json"]));
    let features = doctor["features"].as_array().unwrap();
    let named = features.iter().find(|one| one["feature"] == "machine file");
    let found = named.unwrap()["found"].as_str().unwrap();
    assert_eq!(found, format!("{path}, of today"));
}

/// The parameters of a policy on this machine, as `--dry-run` plans them.
fn planned(folder: &TempDir, words: &[&str]) -> String {
    let plan = ["run", "--dry-run", "--format", "json", "-p"];
    let plan = json(&cosched(folder, &[&plan, words, &["--", "true"]].concat()));
    plan["param_origins"].to_string()
}

#[test]
fn policies_use_the_figures_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let efs = ["efs", "--param", "demand=given"];
    assert!(!planned(&folder, &efs).contains("mu_trans_per_us"));
    let calibrated = cosched(&folder, &["calibrate", "--only", "cores"]);
    let file = out(&calibrated).lines().last().unwrap().to_owned();
    let name = file.strip_prefix(folder.path().to_str().unwrap()).unwrap();
    let text = read(&folder, &name[1..]) + "\n[params]\nsource = 'us'\nmu_trans_per_us = 310.5\n";
    std::fs::write(&file, text).unwrap();
    let origins = planned(&folder, &efs);
    assert!(
        origins.contains("\"mu_trans_per_us\":\"machine\""),
        "{origins}"
    );
    // A damaged file is no reason to refuse a run; doctor names it.
    std::fs::write(&file, "nothing").unwrap();
    assert!(!planned(&folder, &efs).contains("mu_trans_per_us"));
    let doctor = out(&cosched(&folder, &["doctor"]));
    assert!(doctor.contains("machine file"), "{doctor}");
}
