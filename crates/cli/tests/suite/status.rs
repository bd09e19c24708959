//! Looking at runs that go on.

use crate::common::looping::{LoopingRun, status, waiting};
use crate::common::{command, cosched, ended, err, json, out, until};
use std::fs::File;
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn a_run_is_shown_with_its_jobs_by_any_of_its_names() {
    let run = LoopingRun::start(&["--logs", "L"]);
    let by_pid = status(&run.pid()).expect("a state");
    let id = by_pid["run"]["run_id"].as_str().expect("an identity");
    let folder = run.folder().join("L");
    for name in [id, &folder.display().to_string()] {
        let same = status(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(same["run"], by_pid["run"], "{name}");
    }
    assert_eq!(by_pid["schema"], "cosched.status/2");
    assert_eq!(
        (&by_pid["run"]["policy"], &by_pid["totals"]["jobs"]),
        (&"round-robin".into(), &5.into())
    );
    let waiting = waiting(&by_pid).next().expect("more jobs than CPUs");
    assert!(
        waiting["reason"]["text"]
            .as_str()
            .is_some_and(|text| text.ends_with('.')),
        "{waiting}"
    );
    let figures = &waiting["figures"];
    assert!(
        figures["latest_s"].as_f64() > figures["waiting_since_s"].as_f64(),
        "{figures}"
    );
    assert!(figures["resident_bytes"].as_f64() > Some(1e5), "{figures}");
    let text = out(&command(run.folder(), &["status", &run.pid()])
        .output()
        .expect("text"));
    for part in [
        "round-robin on CPUs",
        "of 5 jobs done",
        "loop#2",
        "exit 3",
        "waits",
        "at the latest",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    run.end();
}

#[test]
fn without_logs_and_in_a_solo_run_it_can_be_looked_at_too() {
    let run = LoopingRun::start(&["--no-logs"]);
    let told = status(&run.pid()).expect("a state");
    assert_eq!(told["run"]["folder_absent"], "--no-logs keeps none");
    run.end();
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("going"), "").expect("a file");
    let words = [
        "run",
        "--solo",
        "only",
        "--quiet",
        "--",
        "sh",
        "-c",
        "while [ -e going ]; do :; done",
    ];
    let mut solo = command(folder.path(), &words)
        .stdout(Stdio::null())
        .spawn()
        .expect("a run");
    let mut told = None;
    until("a state", || {
        told = status(&solo.id().to_string());
        told.is_some()
    });
    assert_eq!(told.expect("a state")["run"]["phase"], "alone");
    std::fs::remove_file(folder.path().join("going")).expect("a file");
    assert!(ended(&mut solo).success());
}

#[test]
fn what_does_not_go_on_is_an_error() {
    let folder = tempdir().expect("a folder");
    for name in ["no-such-run", "0", ".", ""] {
        let output = cosched(&folder, &["status", name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", out(&output));
        assert!(err(&output).contains("cosched status"), "{}", err(&output));
    }
    assert!(cosched(&folder, &["status"]).status.success());
    assert_eq!(
        json(&cosched(&folder, &["status", "--format", "json"]))["schema"],
        "cosched.runs-now/1"
    );
}

/// A run that stands still writes no state.
#[test]
fn a_suspended_run_is_told_to_be_so() {
    let run = LoopingRun::start(&[]);
    let stop = |what: &str| {
        assert!(
            Command::new("kill")
                .args([what, &run.pid()])
                .status()
                .expect("kill")
                .success()
        )
    };
    stop("-STOP");
    until("it is shown", || {
        let output = command(run.folder(), &["status", &run.pid()])
            .output()
            .expect("text");
        assert!(output.status.success());
        out(&output).contains("(suspended; `fg`")
    });
    stop("-CONT");
    until("there is a new state", || {
        let output = command(run.folder(), &["status", &run.pid()])
            .output()
            .expect("text");
        !out(&output).contains("(suspended; `fg`")
    });
    run.end();
}

/// The job reads another quarter of its input, prints and tells so, whenever the test says it.
#[test]
fn the_share_of_its_work_that_a_job_has_done_is_shown() {
    let folder = tempdir().expect("a folder");
    let file = |name: &str| File::create(folder.path().join(name)).expect("a file");
    file("input").set_len(4 << 20).expect("4 MiB");
    let job = "exec < input; while [ -e going ]; do if [ -e more ]; then rm more; \
        dd bs=1M count=1 of=/dev/null 2> /dev/null; echo 7%; fi; sleep 0.02; done";
    let told = job.replace("fi", "echo 3/5 >&$COSCHED_PROGRESS_FD; fi");
    let cases = [
        ("no", job, "input", [0.25, 0.5]),
        ("", job, "output", [0.07, 0.07]),
        ("", &told, "descriptor", [0.6, 0.6]),
    ];
    for (pattern, job, from, shares) in cases {
        drop(file("going"));
        let pattern = format!("{pattern}([0-9]+)%");
        let words = ["run", "--quiet", "--progress-to", "progress"];
        let mut run = command(folder.path(), &words)
            .args(["--progress-pattern", &pattern, "--", "sh", "-c", job])
            .stdout(Stdio::null())
            .spawn()
            .expect("a run");
        let pid = run.id().to_string();
        for share in shares {
            drop(file("more"));
            until("that much is done", || {
                let status = status(&pid).unwrap_or_default();
                let job = &status["jobs"][0];
                job["figures"]["share"] == share && job["share_from"] == from
            });
        }
        let percent = format!(" {:.0} %", 100.0 * shares[1]);
        let text = out(&cosched(&folder, &["status", &pid]));
        assert!(text.contains(&percent), "{text}");
        let line = format!("\"share\":{}", shares[1]);
        until("that is written", || {
            let lines = std::fs::read_to_string(folder.path().join("progress"));
            lines.unwrap_or_default().contains(&line)
        });
        std::fs::remove_file(folder.path().join("going")).expect("a file");
        assert!(ended(&mut run).success());
    }
}
