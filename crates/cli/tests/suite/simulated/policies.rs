//! Policies, plans, and the same bytes for the same seed.

use super::{SLEEPER, SLEEPERS};
use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, json, out, read, write};
use cosched_core::POLICIES;
use serde_json::Value;
use tempfile::tempdir;

/// Whoever asks another policy gets the answer that a run on the same machine would get.
#[test]
fn decisions_by_other_policies_respect_the_machine() {
    let folder = with_mix();
    let words = [
        "run",
        "mix.toml",
        "--on",
        MACHINE,
        "-q",
        "--policy",
        "round-robin",
        "--events",
        "events",
    ];
    assert_eq!(cosched(&folder, &words).status.code(), Some(0));
    let asked = json(&cosched(
        &folder,
        &["decide", "events", "--policy", "efs", "--format", "json"],
    ));
    assert_eq!(
        cosched(
            &folder,
            &[
                "run", "mix.toml", "--on", MACHINE, "-q", "--policy", "efs", "--record", "r"
            ]
        )
        .status
        .code(),
        Some(0)
    );
    let record: Value = serde_json::from_str(&read(&folder, "r")).expect("a record");
    let params = record["setting"]["params"].as_array().expect("parameters");
    assert!(
        params.iter().any(|param| param["origin"] == "machine"),
        "{params:?}"
    );
    for param in params {
        let name = param["name"].as_str().expect("a name");
        assert_eq!(asked["params"][name], param["value"], "{name}");
    }
    let oracle = cosched(&folder, &["decide", "events", "--policy", "oracle"]);
    assert!(
        oracle.status.code() == Some(3) && err(&oracle).contains("solo trace"),
        "{}",
        err(&oracle)
    );
    let refused = cosched(&folder, &["decide", "events", "--policy", "lucky"]);
    assert_eq!(refused.status.code(), Some(3), "{}", out(&refused));
    let told = err(&refused);
    assert!(
        told.contains("needs cores of two types") && told.contains("events"),
        "{told}"
    );
}

#[test]
fn the_seed_decides_every_byte() {
    let folder = with_mix();
    let run = |seed: &str, logs: &str, policy: &str| {
        let words = [
            "run", "mix.toml", "--on", MACHINE, "--policy", policy, "--format", "json", "-q",
        ];
        let output = cosched(
            &folder,
            &[&words[..], &["--seed", seed, "--logs", logs]].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{policy}: {}", err(&output));
        (out(&output), read(&folder, &format!("{logs}/series.jsonl")))
    };
    for policy in ["auto", "linux", "fifo"] {
        assert_eq!(run("3", "a", policy), run("3", "b", policy), "{policy}");
        let others = ["4", "5", "6"].map(|seed| run(seed, "c", policy));
        let times = |text: &str| {
            serde_json::from_str::<Value>(text).expect("JSON")["metrics"]["turnaround_s"].clone()
        };
        let same = times(&run("3", "a", policy).0);
        assert!(
            others.iter().any(|(record, _)| times(record) != same),
            "{policy}: the seed changes nothing"
        );
    }
}

#[test]
fn every_policy_ends_its_batch_and_its_decisions_replay() {
    let folder = with_mix();
    for name in POLICIES.iter().map(|entry| entry.name) {
        let words = [
            "run", "mix.toml", "--on", MACHINE, "-q", "--policy", name, "--events", "events",
        ];
        let output = cosched(&folder, &words);
        if output.status.code() == Some(3) {
            println!("{name} skipped, because {}", err(&output));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
        let events = read(&folder, "events").lines().count();
        for seq in [0, events / 2, events - 1] {
            let words = [
                "decide",
                "events",
                "--format",
                "json",
                "--seq",
                &seq.to_string(),
            ];
            let object = json(&cosched(&folder, &words));
            let text = out(&cosched(&folder, &[&words[..2], &words[4..]].concat()));
            assert!(
                text.starts_with(&format!("SIMULATED on {MACHINE}: ")),
                "{text}"
            );
            assert_eq!(
                (&object["same_as_recorded"], &object["backend"]),
                (&true.into(), &"sim".into()),
                "{name} {seq}"
            );
        }
    }
}

#[test]
fn plans_give_the_cpus_of_sleeping_jobs_to_others() {
    let folder = tempdir().expect("a folder");
    write(&folder, "sleeper.toml", SLEEPER);
    write(&folder, "mix.toml", SLEEPERS);
    let words = [
        "run", "mix.toml", "--on", MACHINE, "--cpus", "0,2", "--policy", "fair",
    ];
    let record = |how: &str| {
        let output = cosched(
            &folder,
            &[&words[..], &["--format", "json", "-q", "--actuation", how]].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        json(&output)
    };
    let (decisions, plans) = (record("decisions"), record("plans"));
    let turnaround = |record: &Value| {
        record["metrics"]["turnaround_s"]
            .as_f64()
            .expect("a turnaround")
    };
    let (slow, fast) = (turnaround(&decisions), turnaround(&plans));
    assert!(
        fast < 0.8 * slow,
        "{fast} s by plans, {slow} s by decisions"
    );
    assert_eq!(
        decisions["plans_absent"],
        "decisions were carried out one by one"
    );
    let counts = &plans["plans"];
    assert!(
        counts["installed"]
            .as_u64()
            .is_some_and(|installed| installed > 0),
        "{counts}"
    );
    assert_eq!(
        (&counts["adopted"], &counts["given_up_s"]),
        (&counts["installed"], &Value::Null)
    );
    let summary = out(&cosched(
        &folder,
        &[&words[..], &["--actuation", "plans", "-v"]].concat(),
    ));
    assert!(summary.contains("\ncarried out as plans: "), "{summary}");
    let dry = out(&cosched(
        &folder,
        &[&words[..], &["--actuation", "plans", "--dry-run"]].concat(),
    ));
    assert!(dry.contains("\nactuation plans: "), "{dry}");
}
