//! What a run shows, and where: the jobs' output, lines about jobs, and the summary.

use crate::common::{command, cosched, ended, err, json, out, read, write};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use tempfile::{TempDir, tempdir};

const BOTH: &str = "echo out {}; echo err {} >&2; exit {}";

/// Runs one job that succeeds and one that fails, one after the other.
fn two_jobs(folder: &TempDir, options: &[&str]) -> Output {
    let words = [&["run", "-j1"], options, &[BOTH, ":::", "0", "3"]].concat();
    cosched(folder, &words)
}

#[test]
fn standard_output_holds_what_the_jobs_write_and_nothing_else() {
    let folder = tempdir().expect("a folder");
    write(&folder, "a.txt", "1\n2\n");
    write(&folder, "b.txt", "1\n");
    let words = ["run", "-j1", "wc", "-l", "{}", ":::", "a.txt", "b.txt"];
    let run = cosched(&folder, &words);
    assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    assert_eq!(out(&run), "2 a.txt\n1 b.txt\n");
    // No line tells of a job that succeeded.
    let told = err(&run);
    assert!(told.starts_with("2 succeeded in "), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_failed_job_has_a_line_below_its_output_and_its_folder_is_named() {
    let folder = tempdir().expect("a folder");
    let run = two_jobs(&folder, &[]);
    assert_eq!(run.status.code(), Some(1), "{}", err(&run));
    assert_eq!(out(&run), "out 0\nout 3\n");
    let told = err(&run);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 6, "{told}");
    assert_eq!(lines[..2], ["err 0", "err 3"]);
    assert!(lines[2].contains(" [2/2] echo#2: exit 3 after "));
    assert!(lines[3].starts_with("failed: echo#2 (exit 3 after "));
    assert!(lines[4].starts_with("1 succeeded, 1 failed in "));
    let logs = lines[5]
        .strip_prefix("output of all jobs: ")
        .expect("the log folder");
    assert!(logs.starts_with("cosched-logs/") && folder.path().join(logs).is_dir());
    let verbose = two_jobs(&folder, &["-v"]);
    assert!(err(&verbose).contains("[1/2] "), "{}", err(&verbose));
}

/// Its command and its last line, wherever they are shown.
#[test]
fn what_a_failed_job_says_stands_once() {
    let folder = tempdir().expect("a folder");
    for options in [
        &[][..],
        &["--output", "none"],
        &["--output", "live"],
        &["--tag"],
        &["-k"],
        &["--format", "csv"],
    ] {
        let told = err(&two_jobs(&folder, options));
        let count = |text: &str| told.matches(text).count();
        let found = (count("echo err 3"), count("err 3"));
        assert_eq!(
            found,
            (1, 2),
            "the command has the line, too: {options:?}: {told}"
        );
    }
}

#[test]
fn quiet_hides_all_but_the_jobs_output() {
    let folder = tempdir().expect("a folder");
    let run = two_jobs(&folder, &["-q"]);
    let shown = (run.status.code(), out(&run), err(&run));
    let expected = (Some(1), "out 0\nout 3\n".into(), "err 0\nerr 3\n".into());
    assert_eq!(shown, expected);
    let silent = two_jobs(&folder, &["-q", "--output", "none"]);
    let shown = (silent.status.code(), out(&silent), err(&silent));
    assert_eq!(shown, (Some(1), String::new(), String::new()));
}

#[test]
fn the_last_error_is_shown_where_the_output_is_not() {
    let folder = tempdir().expect("a folder");
    let run = two_jobs(&folder, &["--output", "none"]);
    assert_eq!((run.status.code(), out(&run).as_str()), (Some(1), ""));
    let told = err(&run);
    let mut lines = told.lines();
    let first = lines.next().expect("a line");
    assert!(first.contains(" [2/2] ") && first.contains(": exit 3 after "));
    assert_eq!(lines.next(), Some("    err 3"));
    assert!(!told.contains("err 0"), "{told}");
}

#[test]
fn the_record_is_alone_on_standard_output() {
    let folder = tempdir().expect("a folder");
    for (options, errors) in [
        (&["-q"][..], ""),
        (&["-q", "--output", "group"], "out 0\nerr 0\nout 3\nerr 3\n"),
    ] {
        let options = [&["--format", "json"], options].concat();
        let run = two_jobs(&folder, &options);
        assert_eq!((run.status.code(), err(&run).as_str()), (Some(1), errors));
        assert_eq!(json(&run)["totals"]["failed"], 1);
    }
}

#[test]
fn the_table_of_the_jobs_is_alone_on_standard_output() {
    let folder = tempdir().expect("a folder");
    let run = two_jobs(&folder, &["-q", "--format", "csv", "--logs", "L"]);
    assert_eq!((run.status.code(), err(&run).as_str()), (Some(1), ""));
    let report = cosched(&folder, &["report", "L", "--format", "csv"]);
    let (table, report) = (out(&run), out(&report));
    assert_eq!(table.lines().count(), 3, "{table}");
    // A report says first which run a job is of.
    for (row, with_run) in table.lines().zip(report.lines()) {
        assert!(with_run.ends_with(&format!(",{row}")), "{report}");
    }
}

#[test]
fn a_single_job_is_shown_while_it_runs() {
    let folder = tempdir().expect("a folder");
    let line = "echo first; until [ -e go ]; do sleep 0.01; done; echo last";
    let mut run = command(folder.path(), &["run", "-q", "--", line]);
    let mut run = run.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut shown = BufReader::new(run.stdout.take().expect("a pipe"));
    let mut first = String::new();
    shown.read_line(&mut first).expect("a line");
    assert_eq!(first, "first\n");
    write(&folder, "go", "");
    let mut rest = String::new();
    shown.read_to_string(&mut rest).expect("text");
    assert_eq!((rest.as_str(), ended(&mut run).code()), ("last\n", Some(0)));
}

#[test]
fn solo_runs_show_no_output() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--solo", "measure", "echo", ":::", "a"];
    let run = cosched(&folder, &words);
    let shown = (run.status.code(), out(&run), err(&run));
    assert_eq!(shown, (Some(0), "a\n".into(), String::new()));
}

/// A new terminal: the end that shows, and the end that programs write to.
fn terminal() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let shown = openpt(flags).expect("a terminal");
    grantpt(&shown).expect("a terminal");
    unlockpt(&shown).expect("a terminal");
    let name = ptsname(&shown, Vec::new()).expect("its name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let written = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("its other end");
    (File::from(shown), written)
}

/// The progress line is drawn over the line that the cursor is in.
#[test]
fn the_progress_line_leaves_unfinished_lines_alone() {
    let folder = tempdir().expect("a folder");
    let (mut shown, written) = terminal();
    let line = "printf 'unfinished %s' {}; sleep 0.3";
    let mut run = command(folder.path(), &["run", "-j1", line, ":::", "1", "2"]);
    run.stdout(written.try_clone().expect("a terminal"));
    let mut child = run.stderr(written).spawn().expect("it runs");
    drop(run);
    let mut text = Vec::new();
    // At its end a terminal gives an error.
    let _ = shown.read_to_end(&mut text);
    assert_eq!(ended(&mut child).code(), Some(0));
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("0/2 done"), "a progress line: {text:?}");
    for line in ["unfinished 1\r\n", "unfinished 2\r\n"] {
        assert!(text.contains(line), "{text:?}");
    }
}

/// The access to every file and folder below one.
fn check_private(folder: &Path) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let meta = path.metadata().expect("a file");
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(meta.permissions().mode() & 0o777, expected, "{path:?}");
        if meta.is_dir() {
            check_private(&path);
        }
    }
}

#[test]
fn nobody_else_reads_the_log_folder() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--solo", "measure", "--logs", "all/L"];
    for _ in 0..2 {
        let run = cosched(&folder, &[&words[..], &["echo", ":::", "a", "b"]].concat());
        assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    }
    check_private(folder.path());
    assert!(read(&folder, "all/L/earlier-1/joblog").contains("echo a"));
    assert!(read(&folder, "all/L/solo.json").contains("echo a"));
}
