//! `cosched reproduce`: the same bytes with any number of threads, files, refusals, and the end by a signal.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn cosched(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cosched"))
        .args(words)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The smallest experiment.
fn small(seeds: &str, more: &[&str]) -> Output {
    let words = ["reproduce", "bandwidth", "--quick", "--seeds", seeds];
    let output = cosched(&[&words, more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    output
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let one = small("1", &["-j", "1"]);
    assert_eq!(text(&one.stdout), text(&small("1", &["-j", "3"]).stdout));
    assert_ne!(one.stdout, small("1", &["--seed", "7"]).stdout);
    assert!(text(&one.stderr).is_empty(), "{}", text(&one.stderr));
    let shown = text(&one.stdout);
    assert!(
        shown.contains("Verdicts") && shown.contains("within a"),
        "{shown}"
    );
}

#[test]
fn a_folder_gets_the_document_and_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let printed = text(&small("2", &["--out", out.to_str().unwrap()]).stdout);
    let read = |path: &Path| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    assert!(
        printed.contains("## Bandwidth-aware") && printed.contains('±'),
        "{printed}"
    );
    // Each figure that the document shows is there.
    let document = read(&out.join("reproduction.md"));
    let mut figures = 0;
    for line in document.lines().filter(|line| line.starts_with("![")) {
        let path = line.rsplit_once('(').unwrap().1.trim_end_matches(')');
        assert!(read(&out.join(path)).starts_with("<svg "), "{path}");
        figures += 1;
    }
    assert_eq!(figures, 2);
}

#[test]
fn wrong_words_are_told_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("out");
    for (words, told) in [
        (&["reproduce", "nosuch"][..], "perf-fair"),
        (&["reproduce", "--seeds", "0"], "--seeds"),
        (&["reproduce", "--out", below.to_str().unwrap()], "--out"),
    ] {
        let output = cosched(words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(told),
            "{words:?}: {}",
            text(&output.stderr)
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_document_of_the_user_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("reproduction.md");
    std::fs::write(&mine, "mine").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cosched"))
        .args(["reproduce", "bandwidth", "--quick", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains("stays as it is"), "{told}");
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn a_signal_ends_it_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_cosched"))
        .args(["reproduce", "--quick", "--out", out.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Signals are held before the folder is made; then minutes of work lie ahead in a test build.
    while !out.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Not SIGINT: who starts the tests in the background may have it ignored.
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stderr),
        "cosched: this takes about 70 s of CPU time\ncosched: interrupted; nothing was written\n"
    );
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    assert!(output.stdout.is_empty());
}
