//! What is shown at the end of a run and while it goes on.

use crate::common::looping::{LoopingRun, status, waiting};
use crate::common::{command, cosched, err, out, read, until, write};
use serde_json::Value;
use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::{TempDir, tempdir};

/// All lines that a run has shown.
fn lines(output: &Output) -> Vec<String> {
    let shown = out(output) + &err(output);
    shown.lines().map(str::to_owned).collect()
}

/// The only line with this part.
fn line_with(lines: &[String], part: &str) -> String {
    let found: Vec<&String> = lines.iter().filter(|line| line.contains(part)).collect();
    assert_eq!(found.len(), 1, "{part}: {lines:#?}");
    found[0].clone()
}

fn has(lines: &[String], begin: &str) -> bool {
    lines.iter().any(|line| line.starts_with(begin))
}

/// Whether a job of the run took so long that there is a table.
fn has_long_job(record: &Value) -> bool {
    let jobs = record["jobs"].as_array().expect("jobs");
    let mut times = jobs
        .iter()
        .filter_map(|job| Some(job["end_s"].as_f64()? - job["start_s"].as_f64()?));
    times.any(|time_s| time_s > 1.0)
}

#[test]
fn of_short_jobs_that_succeed_there_is_one_line() {
    let folder = tempdir().expect("a folder");
    let output = cosched(
        &folder,
        &["run", "--logs", "L", "true", ":::", "1", "2", "3"],
    );
    assert_eq!(output.status.code(), Some(0));
    let shown = lines(&output);
    let last = line_with(&shown, " succeeded");
    assert!(last.starts_with("3 succeeded in "), "{last}");
    let record: Value = serde_json::from_str(&read(&folder, "L/run.json")).expect("a record");
    assert_eq!(has(&shown, "JOB "), has_long_job(&record), "{shown:#?}");
    assert!(!has(&shown, "policy ") && !has(&shown, "turnaround "));
    let verbose = lines(&cosched(&folder, &["run", "-v", "true"]));
    for begin in ["JOB ", "policy ", "turnaround ", "1 succeeded in "] {
        assert!(has(&verbose, begin), "{begin}: {verbose:#?}");
    }
}

#[test]
fn failures_come_last() {
    let folder = tempdir().expect("a folder");
    let jobs = "[[job]]\nname = \"bad\"\ncommand = \"echo first >&2; echo 'no\\u001bspace' >&2; exit 3\"\n[[job]]\nname = \"long\"\ncommand = \"sleep 1.1\"\n";
    write(&folder, "jobs.toml", jobs);
    let output = cosched(&folder, &["run", "jobs.toml", "--output", "live"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = lines(&output);
    let titles = line_with(&shown, "JOB ");
    assert!(
        !titles.contains("WAITED") && !titles.contains("EXIT"),
        "{titles}"
    );
    let place = |begin: &str| {
        let place = shown.iter().rposition(|line| line.starts_with(begin));
        place.unwrap_or_else(|| panic!("{begin}: {shown:#?}"))
    };
    let failed = place("failed: bad (exit 3 after ");
    assert!(shown[failed].contains("): sh -c ") || shown[failed].contains("): echo first"));
    assert_eq!(place("1 succeeded, 1 failed in "), failed + 1);
    assert!(place("long ") < failed);
    assert!(
        !shown.iter().any(|line| line.starts_with("bad ")),
        "it has no row"
    );
}

/// Of jobs that Ctrl-C kept from starting there is only a number.
#[test]
fn jobs_that_were_not_started_are_counted() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--jobs",
        "1",
        "sh",
        "-c",
        "touch on; sleep 60",
        ":::",
        "1",
        "2",
        "3",
        "4",
    ];
    let run = command(folder.path(), &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    until("a job runs", || folder.path().join("on").exists());
    signal("-INT", &run.id().to_string());
    let output = run.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130));
    let last = line_with(&lines(&output), " not started");
    assert!(
        last.starts_with("0 succeeded, 1 interrupted, 3 not started in ")
            && last.ends_with("; SIGINT ended the run"),
        "{last}"
    );
}

#[test]
fn jobs_that_time_out_are_counted_apart() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["run", "--timeout", "0.2", "sleep", "60"]);
    assert_eq!(output.status.code(), Some(124));
    let shown = lines(&output);
    assert!(has(&shown, "0 succeeded, 1 timed out in "), "{shown:#?}");
    line_with(&shown, "(timed out with SIG");
}

#[test]
fn lines_about_jobs_begin_with_the_local_time() {
    let folder = tempdir().expect("a folder");
    let output = command(folder.path(), &["run", "-v", "true"])
        .env("TZ", "XYZ-5")
        .output()
        .expect("a run");
    let line = line_with(&lines(&output), "[1/1] true: exit 0 after ");
    let parts = line[..8].split(':').map(|part| part.parse::<u64>());
    let [hour, minute, second] = parts.collect::<Result<Vec<_>, _>>().expect(&line)[..] else {
        panic!("{line}");
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("now");
    let local = now.as_secs() + 5 * 3600;
    let told = hour * 3600 + minute * 60 + second;
    assert!((local + 86_400 - told) % 86_400 < 3600, "{line}");
    let simulated = "[[job]]\nprogram = \"mcf\"\nwork_instructions = 1e9\n";
    write(&folder, "mix.toml", simulated);
    let output = cosched(&folder, &["run", "-v", "mix.toml", "--on", "big1-small3"]);
    let shown = lines(&output);
    assert!(has(&shown, "[simulated] [1/1] mcf"), "{shown:#?}");
}

fn signal(what: &str, pid: &str) {
    let status = Command::new("kill").args([what, pid]).status();
    assert!(status.expect("kill").success());
}

/// Ctrl-Z freezes the jobs, and they are shown so.
#[test]
fn of_a_suspended_run_no_job_runs() {
    let run = LoopingRun::start(&[]);
    signal("-TSTP", &run.pid());
    until("the jobs are frozen", || {
        let now = status(&run.pid()).expect("a state");
        now["suspended"] == true && now["totals"]["running"] == 0
    });
    let now = status(&run.pid()).expect("a state");
    assert_eq!(waiting(&now).count() as u64, now["totals"]["waiting"]);
    let output = command(run.folder(), &["status", &run.pid()]).output();
    let output = output.expect("text");
    let pid = run.pid();
    let head = format!("(suspended; `fg` in its terminal, or `kill -CONT {pid}`, continues it)");
    line_with(&lines(&output), &head);
    line_with(&lines(&output), "CPUs: 0 idle");
    assert!(out(&output).contains("iB"), "memory in powers of 1,024");
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    let reported = command(run.folder(), &["report", &run.pid()]).output();
    let reported = reported.expect("a report");
    assert!(
        out(&reported).contains("the run goes on"),
        "{}",
        err(&reported)
    );
    signal("-CONT", &run.pid());
    until("it goes on", || {
        status(&run.pid()).is_some_and(|now| now["suspended"].is_null())
    });
    run.end();
}

#[test]
fn status_names_thaw_after_a_run_was_killed() {
    let run = LoopingRun::start(&[]);
    signal("-KILL", &run.pid());
    let folder = run.reap();
    let output = cosched(&folder, &["status"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    let text = out(&output);
    for told in [
        "`cosched thaw --kill` asks and ends them\n",
        "`cosched run --resume=cosched-logs/",
    ] {
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn thaw_refuses_what_is_no_run() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["thaw", "--run", "9999"]);
    assert_eq!(
        (output.status.code(), out(&output)),
        (Some(2), String::new())
    );
    assert!(
        err(&output).contains("no identity of a run"),
        "{}",
        err(&output)
    );
}

#[test]
fn one_metric_is_listed() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["list", "metrics", "antt"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    assert!(out(&output).starts_with("antt ") && out(&output).lines().count() == 2);
}

/// Runs one job of this name, with its logs in a folder of `cosched-logs`.
fn run_named(folder: &TempDir, name: &str, logs: &str) {
    let mix = format!("[[job]]\nname = \"{name}\"\ncopies = 2\ncommand = \"true\"\n");
    write(folder, "mix.toml", &mix);
    let logs = format!("cosched-logs/{logs}");
    let output = cosched(folder, &["run", "mix.toml", "--quiet", "--logs", &logs]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn why_takes_the_run_that_was_started_last_and_suggests_names() {
    let folder = tempdir().expect("a folder");
    run_named(&folder, "tar", "z");
    run_named(&folder, "gzip", "a");
    let series = File::options()
        .append(true)
        .open(folder.path().join("cosched-logs/z/series.jsonl"))
        .expect("a series");
    let later = SystemTime::now() + Duration::from_secs(60);
    series.set_modified(later).expect("a time");
    let output = cosched(&folder, &["why", "gzp"]);
    assert_eq!(
        (output.status.code(), out(&output)),
        (Some(2), String::new())
    );
    let error = err(&output);
    assert!(
        error.contains(
            "cosched-logs/a/series.jsonl: there is no job `gzp` in this run; there is gzip"
        ),
        "{error}"
    );
}

#[test]
fn runs_with_long_names_stay_different() {
    let folder = tempdir().expect("a folder");
    let name = "n".repeat(120);
    for end in ["1", "2"] {
        run_named(&folder, "tar", &format!("{name}{end}"));
    }
    let output = cosched(&folder, &["report", "cosched-logs"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
    for end in ["nnn1 ", "nnn2 "] {
        line_with(&lines(&output), end);
    }
}
