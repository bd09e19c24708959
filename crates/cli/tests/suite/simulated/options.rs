//! Options that hold in a simulation as on this machine.

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, json, out, write};

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

/// Jobs of one program that disturb each other: fewer at once end sooner. A given number is kept, and a short batch tells
/// nothing.
#[test]
fn a_long_batch_of_one_program_finds_how_many_are_best_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |copies: u32, options: &[&str]| {
        let job = "[[job]]\nprogram = \"sphinx3\"\nwork_instructions = 2_000_000_000\n";
        write(&folder, "mix.toml", &format!("{job}copies = {copies}\n"));
        let words = [
            "run", "mix.toml", "--on", "i5-2500", "--format", "json", "-q",
        ];
        let record = json(&cosched(&folder, &[&words[..], options].concat()));
        let time = record["metrics"]["turnaround_s"].as_f64();
        (time.expect("a time"), record["warnings"].to_string())
    };
    let (four, nothing_told) = run(400, &["--jobs", "4"]);
    let (fewer, told) = run(400, &[]);
    assert!(fewer < 0.95 * four, "{fewer} {four}");
    assert!(
        told.contains("at once end") && told.contains("sooner than 4"),
        "{told}"
    );
    assert_eq!((nothing_told, run(100, &[]).1), ("[]".into(), "[]".into()));
}
