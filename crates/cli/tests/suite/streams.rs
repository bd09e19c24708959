//! Jobs that come while the run goes on.

use crate::common::looping::status;
use crate::common::schema::Schemas;
use crate::common::{command, err, out, until};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

const RUN: [&str; 5] = ["run", "--logs", "logs", "--output", "live"];

/// A run whose input is held open.
struct Fed {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Fed {
    fn start(folder: &TempDir, words: &[&str]) -> Fed {
        let mut child = command(folder.path(), &[&RUN[..], words].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let input = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Fed {
            child,
            input,
            lines,
        }
    }

    fn feed(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it reads");
    }

    /// The next line that a job prints.
    fn printed(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    fn end(self) -> Output {
        drop(self.input);
        self.child.wait_with_output().expect("it ends")
    }
}

fn record(folder: &TempDir) -> Value {
    let text = std::fs::read(folder.path().join("logs/run.json")).expect("a record");
    serde_json::from_slice(&text).expect("JSON")
}

/// Each line is given only when the job before it has answered.
#[test]
fn a_job_runs_while_its_list_goes_on() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-"]);
    for word in ["a", "b", "c"] {
        run.feed(&format!("echo {word}"));
        assert_eq!(run.printed(), word);
    }
    let output = run.end();
    assert!(output.status.success(), "{}", err(&output));
    let record = record(&folder);
    let names: Vec<&str> = record["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["echo#1", "echo#2", "echo#3"]);
    assert_eq!(record["totals"]["succeeded"], 3);
    let log = std::fs::read_to_string(folder.path().join("logs/joblog")).expect("a job log");
    assert_eq!(log.lines().count(), 4);
}

#[test]
fn values_come_as_well_and_the_last_may_be_fewer() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-n", "2", "echo"]);
    run.feed("a");
    run.feed("b c");
    assert_eq!(run.printed(), "a b c");
    run.feed("d");
    drop(run.input);
    assert_eq!(run.lines.next().expect("a line").expect("text"), "d");
    assert!(run.child.wait().expect("it ends").success());
}

#[test]
fn a_run_that_waits_for_jobs_shows_none_as_running() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-"]);
    run.feed("echo a");
    assert_eq!(run.printed(), "a");
    let pid = run.child.id().to_string();
    let all_ended = |status: Value| {
        let jobs = status["jobs"].as_array();
        let mut states = jobs.into_iter().flatten().map(|job| &job["state"]);
        status["totals"]["done"] == 1 && states.all(|state| state == "ended")
    };
    until("its job is shown as ended", || {
        status(&pid).is_some_and(all_ended)
    });
    assert!(run.end().status.success());
}

#[test]
fn a_named_pipe_is_read_as_it_is_written() {
    let folder = tempdir().expect("a folder");
    let made = Command::new("mkfifo")
        .arg(folder.path().join("jobs"))
        .status();
    assert!(made.expect("mkfifo runs").success());
    let mut run = Fed::start(&folder, &["-f", "jobs"]);
    let mut pipe = std::fs::File::create(folder.path().join("jobs")).expect("the pipe opens");
    for word in ["a", "b"] {
        writeln!(pipe, "echo {word}").expect("it reads");
        assert_eq!(run.printed(), word);
    }
    drop(pipe);
    assert!(run.end().status.success());
}

#[test]
fn starts_and_ends_are_told_to_another_program() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-", "--progress-to", "told"]);
    run.feed(r#"{"id": "7", "command": "echo a; exit 3"}"#);
    assert_eq!(run.printed(), "a");
    assert_eq!(run.end().status.code(), Some(1));
    let schemas = Schemas::read();
    let told = std::fs::read_to_string(folder.path().join("told")).expect("lines");
    let mut events = Vec::new();
    for line in told.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        schemas.check("progress-line.json", &line);
        if line["event"] != "progress" {
            let id = line["id"].as_str().expect("an id").to_owned();
            events.push((line["event"].as_str().expect("an event").to_owned(), id));
        }
    }
    let seven = |event: &str| (event.to_owned(), "7".to_owned());
    assert_eq!(events, [seven("start"), seven("end")]);
}

/// A line that is no job fails for itself, with its number; the others run.
#[test]
fn a_bad_line_fails_alone() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-", "--progress-to", "told"]);
    for line in [
        r#"{"argv": ["no-such-program"]}"#,
        r#"{"id": "bad", "command": "echo x", "cpu": 1}"#,
        "",
        r#"{"id": "7", "argv": ["echo", "a b"], "name": "mine", "expected_s": 2, "mem": 1000}"#,
    ] {
        run.feed(line);
    }
    assert_eq!(run.printed(), "a b");
    let output = run.end();
    assert_eq!(output.status.code(), Some(1));
    let told = err(&output);
    assert!(
        told.contains("there is no program `no-such-program`"),
        "{told}"
    );
    let record = record(&folder);
    let jobs = record["jobs"].as_array().expect("jobs");
    let why = jobs[1]["exit_text"].as_str().expect("a reason");
    assert!(why.contains("-:2: unknown field `cpu`"), "{why}");
    let told = std::fs::read_to_string(folder.path().join("told")).expect("lines");
    assert!(
        told.contains(r#""event":"end","job":2,"id":"bad""#),
        "{told}"
    );
    assert_eq!(
        (&jobs[2]["name"], &jobs[2]["exit"]),
        (&"mine#3".into(), &0.into())
    );
    assert_eq!(jobs[2]["expected"]["from"], "told");
}

#[test]
fn an_interrupt_ends_a_run_that_waits_for_jobs() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-"]);
    run.feed("echo a");
    assert_eq!(run.printed(), "a");
    let pid = run.child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    // The input stays open.
    assert_eq!(run.child.wait().expect("it ends").code(), Some(130));
    assert_eq!(record(&folder)["totals"]["succeeded"], 1);
}

/// What a series has of jobs that came later is read as of any other.
#[test]
fn reports_know_all_jobs() {
    let folder = tempdir().expect("a folder");
    let mut run = Fed::start(&folder, &["-f", "-"]);
    run.feed("echo a");
    assert_eq!(run.printed(), "a");
    run.feed("echo b");
    assert_eq!(run.printed(), "b");
    assert!(run.end().status.success());
    let call = |words: &[&str]| -> String {
        let output = command(folder.path(), words).output().expect("it runs");
        assert!(output.status.success(), "{}", err(&output));
        out(&output)
    };
    assert!(call(&["why", "echo#2", "logs"]).contains("ended"));
    let rows = call(&["report", "logs", "--format", "csv", "--table", "samples"]);
    assert!(rows.lines().any(|row| row.contains("echo#2")), "{rows}");
    std::fs::remove_file(Path::new(&folder.path().join("logs/run.json"))).expect("removed");
    assert!(call(&["report", "logs"]).contains("2 succeeded"));
}
