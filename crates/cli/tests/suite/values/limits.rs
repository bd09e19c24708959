//! Limits on the jobs that run at once: `--jobs`, `--halt`, `--load` and `--delay`.

use super::support::run;
use crate::common::{err, one_cpu, read};
use tempfile::tempdir;

#[test]
fn limits_in_the_forms_of_gnu_parallel() {
    let folder = tempdir().expect("a folder");
    let live = |jobs: &str| {
        let output = run(
            &folder,
            &[
                "--dry-run",
                "--format",
                "json",
                "--cpus",
                &one_cpu(),
                "-j",
                jobs,
                "--policy",
                "fifo",
                "true",
            ],
        );
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        plan["live_jobs"].as_u64()
    };
    assert_eq!(
        ["+2", "-5", "300%", "7"].map(live),
        [Some(3), Some(1), Some(3), Some(7)]
    );
    // One job ends before the second is started, which would let the third be left out.
    let output = run(
        &folder,
        &[
            "-j",
            "1",
            "--halt",
            "soon,done=2",
            "echo {} >> done; exit {}",
            ":::",
            "0",
            "1",
            "0",
            "0",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(&folder, "done"), "0\n1\n");
    // A load that is always there stops no batch: one job at a time is started anyway.
    let output = run(
        &folder,
        &[
            "--load", "0.000001", "--delay", "0.01", "true", ":::", "a", "b",
        ],
    );
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn any_number_of_jobs_at_once_is_their_number() {
    let folder = tempdir().expect("a folder");
    let output = run(
        &folder,
        &[
            "--dry-run",
            "--format",
            "json",
            "-j",
            "0",
            "true",
            ":::",
            "a",
            "b",
            "c",
        ],
    );
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(plan["live_jobs"], 3);
}

/// `-j 8` of eight sleepers means eight at once, as with GNU parallel.
#[test]
fn auto_lets_as_many_jobs_run_at_once_as_the_user_says() {
    let folder = tempdir().expect("a folder");
    let cpus = one_cpu();
    let policy = |words: &[&str]| {
        let words = [
            &["--dry-run", "--format", "json", "--cpus", &cpus],
            words,
            &["true", ":::", "a", "b"],
        ]
        .concat();
        let plan: serde_json::Value =
            serde_json::from_slice(&run(&folder, &words).stdout).expect("JSON");
        plan["policy"].as_str().expect("a policy").to_owned()
    };
    let usual = policy(&[]);
    assert_eq!(
        policy(&["-j", "2"]),
        if usual == "fifo" { "linux" } else { &usual }
    );
    assert_eq!(
        (
            policy(&["-j", "1"]),
            policy(&["-j", "2", "--policy", "fifo"])
        ),
        (usual, "fifo".to_owned())
    );
}
