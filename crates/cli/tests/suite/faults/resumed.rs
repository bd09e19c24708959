//! `--resume` after a run was killed: its jobs may still run, and none is started a second time beside them.

use super::support::{MixBuilder, TestRun, cosched, freezers, one_cpu, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// `slow` runs until there is a file `go`. It notes when it begins and ends, and when it runs beside itself.
const SLOW: &str = "mkdir alone || echo twice >> twice; echo begun >> begun; until test -e go; do sleep 0.01; done; \
                    echo ended >> ended; rmdir alone; true";

fn mix() -> MixBuilder {
    MixBuilder::default()
        .shell("quick", "echo quick >> quick")
        .shell("slow", SLOW)
        .shell("more", SLOW_TOO)
}

/// Another such job, so that there is something to freeze.
const SLOW_TOO: &str = "touch there; until test -e go; do sleep 0.01; done; echo ended >> more";

/// A run that was killed while `slow` and `more` ran; with its guardian, so that one of them can stay frozen.
fn killed(freeze: &str, more: &[&str]) -> TestRun {
    let mut run = TestRun::start(
        mix(),
        freeze,
        &[&["--joblog", "J", "--jobs", "3"], more].concat(),
    );
    until("the jobs begin", || {
        run.file("begun").lines().count() == 1 && run.dir.path().join("there").exists()
    });
    until("the series has them all", || {
        run.file("logs/series.jsonl").matches("[\"b\",").count() == 3
    });
    until("the quick job is logged", || {
        run.file("J").contains("quick")
    });
    run.send(Signal::STOP);
    if let Some(guardian) = run.guardian() {
        signal(guardian, Signal::KILL);
    }
    run.send(Signal::KILL);
    run.code();
    run
}

fn resume(dir: &Path, freeze: &str, more: &[&str]) -> Command {
    let mut command = cosched();
    command.args([
        "run", "mix.toml", "--logs", "logs", "--joblog", "J", "--resume", "--freeze", freeze,
        "--jobs", "3",
    ]);
    command.args(more).current_dir(dir).stdin(Stdio::null());
    command
}

fn in_background(run: &TestRun, freeze: &str, more: &[&str]) -> Child {
    let file = |name: &str| File::create(run.dir.path().join(name)).unwrap();
    resume(run.dir.path(), freeze, more)
        .stdout(file("out2"))
        .stderr(file("err2"))
        .spawn()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The names of the jobs in a list of a record, for which a condition holds.
fn names(list: &Value, holds: impl Fn(&Value) -> bool) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter(|job| holds(job))
        .map(|job| job["name"].as_str().unwrap())
        .collect()
}

fn go(run: &TestRun) {
    File::create(run.dir.path().join("go")).unwrap();
}

#[test]
fn jobs_of_a_killed_run_are_not_started_twice() {
    for freeze in freezers() {
        let run = killed(freeze, &[]);
        let refused = resume(run.dir.path(), freeze, &[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        for part in [
            "slow of run ",
            &run.token,
            "--orphans",
            "`kill`",
            "nothing was started",
        ] {
            assert!(text(&refused).contains(part), "{part}: {}", text(&refused));
        }
        assert!(
            !run.dir.path().join("logs/run.json").exists(),
            "nothing is written"
        );
        let looked = resume(run.dir.path(), freeze, &["--dry-run"])
            .output()
            .unwrap();
        assert!(
            looked.status.success() && text(&looked).contains("still run"),
            "{}",
            text(&looked)
        );
        go(&run);
        run.all_ended();
        let resumed = resume(run.dir.path(), freeze, &["--format", "json"])
            .output()
            .unwrap();
        assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
        assert_eq!(
            (
                run.file("begun").lines().count(),
                run.file("quick").lines().count()
            ),
            (2, 1)
        );
        assert_eq!(run.file("twice"), "");
        let record = json(&run.dir.path().join("logs/run.json"));
        assert_eq!(names(&record["jobs"], |_| true), ["slow", "more"]);
        assert_eq!(record["metrics_over"], "this-run");
        let earlier = &record["earlier_jobs"][0];
        let first = run
            .dir
            .path()
            .canonicalize()
            .unwrap()
            .join("logs/earlier-1/run.json");
        assert_eq!(
            (earlier["name"].as_str(), earlier["run_id"].as_str()),
            (Some("quick"), Some(run.token.as_str()))
        );
        assert_eq!(
            Path::new(earlier["record"].as_str().unwrap())
                .canonicalize()
                .unwrap(),
            first
        );
        assert_eq!(
            (earlier["exit"].as_i64(), earlier["job"]["exit"].as_i64()),
            (Some(0), Some(0))
        );
        assert!(
            Path::new(earlier["job"]["log"].as_str().unwrap()).exists(),
            "{earlier}"
        );
        let first = json(&first);
        assert_eq!(
            (first["finished_by"].as_str(), first["rebuilt"].is_null()),
            (Some("killed"), false)
        );
        assert_eq!(
            names(&first["jobs"], |job| job["lost"] == true),
            ["slow", "more"]
        );
        assert_eq!(names(&first["jobs"], |job| job["exit"] == 0), ["quick"]);
        assert_eq!(first["setting"]["input"]["kind"], "mix");
        run.nothing_left_to_thaw();
    }
}

#[test]
fn frozen_orphans_go_on_whatever_is_chosen() {
    for freeze in freezers() {
        // On one CPU one of the two is frozen at any time.
        let run = killed(freeze, &["--cpus", &one_cpu()]);
        let refused = resume(run.dir.path(), freeze, &[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        go(&run);
        run.all_ended();
        assert_eq!(
            (
                run.file("ended").lines().count(),
                run.file("more").lines().count()
            ),
            (1, 1)
        );
        run.nothing_left_to_thaw();
    }
}

#[test]
fn orphans_are_waited_for() {
    for freeze in freezers() {
        let run = killed(freeze, &[]);
        let mut resumed = in_background(&run, freeze, &["--orphans", "wait"]);
        until("it waits", || {
            run.file("err2")
                .contains("waiting for jobs of a killed run")
        });
        assert_eq!(run.file("begun").lines().count(), 1);
        go(&run);
        assert!(resumed.wait().unwrap().success(), "{}", run.file("err2"));
        assert_eq!(
            (
                run.file("begun").lines().count(),
                run.file("ended").lines().count()
            ),
            (2, 2)
        );
        assert_eq!(
            (run.file("twice"), run.file("quick").lines().count()),
            (String::new(), 1)
        );
        run.nothing_left_to_thaw();
    }
}

/// That the record of a killed run was written for it does not mean that its jobs have ended.
#[test]
fn orphans_that_were_left_alone_are_seen_later() {
    for freeze in freezers() {
        let run = killed(freeze, &[]);
        let mut resumed = in_background(&run, freeze, &["--orphans", "ignore"]);
        until("it runs again", || run.file("begun").lines().count() == 2);
        resumed.kill().unwrap();
        resumed.wait().unwrap();
        let refused = resume(run.dir.path(), freeze, &[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert_eq!(
            text(&refused).matches("slow of run ").count(),
            2,
            "{}",
            text(&refused)
        );
        go(&run);
        run.all_ended();
        run.nothing_left_to_thaw();
    }
}

/// Nor does it matter that the job log was removed, or that the user forgets to resume.
#[test]
fn no_job_runs_twice_because_of_a_job_log_begun_anew() {
    for freeze in freezers() {
        let run = killed(freeze, &[]);
        let words = ["run", "mix.toml", "--joblog", "J", "--freeze", freeze];
        let anew = cosched()
            .args(words)
            .current_dir(run.dir.path())
            .output()
            .unwrap();
        assert_eq!(anew.status.code(), Some(2), "{}", text(&anew));
        assert!(
            text(&anew).contains("still run") && text(&anew).contains("--resume"),
            "{}",
            text(&anew)
        );
        // Not even by a simulation.
        std::fs::write(
            run.dir.path().join("sim.toml"),
            "[[job]]\nprogram = 'gcc'\nwork_instructions = 1000000\n",
        )
        .unwrap();
        let words = [
            "run",
            "sim.toml",
            "--no-logs",
            "--joblog",
            "J",
            "--on",
            "epyc-2cpu",
        ];
        let simulated = cosched()
            .args(words)
            .current_dir(run.dir.path())
            .output()
            .unwrap();
        assert!(
            simulated.status.code() == Some(2) && text(&simulated).contains("still run"),
            "{}",
            text(&simulated)
        );
        assert!(run.file("J").contains("quick"));
        std::fs::remove_file(run.dir.path().join("J")).unwrap();
        let refused = resume(run.dir.path(), freeze, &[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(
            text(&refused).contains("slow of run "),
            "{}",
            text(&refused)
        );
        assert_eq!(run.file("begun").lines().count(), 1);
        go(&run);
        run.all_ended();
        run.nothing_left_to_thaw();
    }
}

#[test]
fn orphans_are_ended() {
    for freeze in freezers() {
        let run = killed(freeze, &[]);
        let mut resumed = in_background(&run, freeze, &["--orphans", "kill"]);
        until("it runs again", || run.file("begun").lines().count() == 2);
        assert_eq!(run.file("ended"), "");
        go(&run);
        assert!(resumed.wait().unwrap().success(), "{}", run.file("err2"));
        // Only the second copy came to its end.
        assert_eq!(
            (
                run.file("ended").lines().count(),
                run.file("more").lines().count()
            ),
            (1, 1)
        );
        run.nothing_left_to_thaw();
    }
}

/// The guardian of the killed run lives as long as its jobs, and must not keep others from the log folder.
#[test]
fn orphans_are_left_alone_where_the_user_wants_it() {
    for freeze in freezers() {
        let mut run = TestRun::start(mix(), freeze, &["--joblog", "J", "--jobs", "3"]);
        until("the job begins", || {
            run.file("begun").lines().count() == 1 && run.file("J").contains("quick")
        });
        run.send(Signal::KILL);
        run.code();
        let mut resumed = in_background(&run, freeze, &["--orphans", "ignore"]);
        until("it runs again", || run.file("begun").lines().count() == 2);
        go(&run);
        assert!(resumed.wait().unwrap().success(), "{}", run.file("err2"));
        assert!(
            run.file("err2").contains("are left alone"),
            "{}",
            run.file("err2")
        );
        assert_eq!(run.file("twice"), "twice\n");
        run.all_ended();
        run.nothing_left_to_thaw();
    }
}

#[test]
fn a_run_that_goes_on_is_not_resumed() {
    let mut run = TestRun::start(mix(), "signals", &["--joblog", "J", "--jobs", "3"]);
    until("the job begins", || run.file("begun").lines().count() == 1);
    for orphans in ["refuse", "ignore"] {
        let refused = resume(run.dir.path(), "signals", &["--orphans", orphans])
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(
            text(&refused).contains("still goes on"),
            "{}",
            text(&refused)
        );
    }
    go(&run);
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert_eq!(run.file("begun").lines().count(), 1);
    run.nothing_left();
}

#[test]
fn runs_of_other_hosts_are_not_taken_for_dead() {
    let run = killed("signals", &[]);
    go(&run);
    run.all_ended();
    let runs = run.dir.path().join("J.runs");
    let file = run.file("J.runs");
    let line = file
        .lines()
        .find(|line| line.contains("cosched.runs/"))
        .unwrap();
    let mut line: Value = serde_json::from_str(line).unwrap();
    line["host"] = "elsewhere".into();
    std::fs::write(&runs, format!("{line}\n")).unwrap();
    let refused = resume(run.dir.path(), "signals", &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("on elsewhere left no record"),
        "{}",
        text(&refused)
    );
    let ignored = resume(run.dir.path(), "signals", &["--orphans", "ignore"])
        .output()
        .unwrap();
    assert_eq!(ignored.status.code(), Some(0), "{}", text(&ignored));
    assert_eq!(run.file("begun").lines().count(), 2);
    // The host was started anew since: whatever its numbers say, nothing of that run is left.
    let mut line: Value = serde_json::from_str(&line.to_string()).unwrap();
    line["host"] = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .into();
    line["boot"] = "another".into();
    line["run_id"] = format!("{}-1-1", std::process::id()).into();
    std::fs::write(&runs, format!("{line}\n")).unwrap();
    std::fs::remove_file(run.dir.path().join("J")).unwrap();
    File::create(run.dir.path().join("J")).unwrap();
    let resumed = resume(run.dir.path(), "signals", &[]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    run.nothing_left_to_thaw();
}
