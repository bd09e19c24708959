//! Options that hold in a simulation as on this machine.

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, json, out};

/// Simulated jobs write nothing, so standard output is for the summary.
#[test]
fn without_a_log_folder_the_summary_is_where_it_always_is() {
    let folder = with_mix();
    let output = cosched(&folder, &["run", "mix.toml", "--on", MACHINE, "--no-logs"]);
    assert!(out(&output).contains("10 jobs"), "{}", out(&output));
}

#[test]
fn limits_hold_as_on_the_host() {
    let folder = with_mix();
    let words = ["run", "mix.toml", "--on", MACHINE, "--format", "json", "-q"];
    let late = cosched(&folder, &[&words[..], &["--timeout", "0.1"]].concat());
    assert_eq!(late.status.code(), Some(124), "{}", err(&late));
    assert_eq!(json(&late)["totals"]["timed_out"], 10);
    let halted = cosched(
        &folder,
        &[&words[..], &["--jobs", "2", "--halt", "soon,success=1"]].concat(),
    );
    assert_eq!(
        (halted.status.code(), json(&halted)["finished_by"].clone()),
        (Some(0), "halt".into())
    );
    let halted = cosched(
        &folder,
        &[
            &words[..],
            &["--policy", "linux", "--halt", "now,success=1"],
        ]
        .concat(),
    );
    let record = json(&halted);
    let exits: Vec<_> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["exit_text"].as_str())
        .collect();
    assert!(exits.contains(&Some("SIGTERM")), "{exits:?}");
    assert_eq!(halted.status.code(), Some(0), "{}", err(&halted));
    let halted = cosched(
        &folder,
        &[&words[..], &["--timeout", "0.1", "--halt", "now,fail=1"]].concat(),
    );
    assert_eq!(halted.status.code(), Some(124), "{}", err(&halted));
    let few = json(&cosched(
        &folder,
        &[&words[..], &["--cpus", "0-1"]].concat(),
    ));
    assert_eq!(
        (&few["machine_details"]["cpus"], &few["totals"]["succeeded"]),
        (&2.into(), &10.into())
    );
}

#[test]
fn a_dry_run_says_where_and_simulates_nothing() {
    let folder = with_mix();
    let output = cosched(&folder, &["run", "mix.toml", "--on", MACHINE, "--dry-run"]);
    let text = out(&output);
    assert!(
        text.starts_with(&format!("SIMULATED on {MACHINE}")),
        "{text}"
    );
    for part in [
        "program lbm, 2000000000 instructions",
        "freezing  simulated",
        "nothing was started",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let object = json(&cosched(
        &folder,
        &[
            "run",
            "mix.toml",
            "--on",
            MACHINE,
            "--dry-run",
            "--format",
            "json",
        ],
    ));
    assert_eq!(
        (&object["backend"], &object["jobs"][0]["program"]),
        (&"sim".into(), &"mcf".into())
    );
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        1,
        "only the mix file"
    );
}
