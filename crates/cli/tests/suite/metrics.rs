//! `run --metrics`.

use crate::common::looping::LoopingRun;
use crate::common::{cosched, err, until};
use std::path::Path;
use tempfile::tempdir;

#[test]
fn metrics_are_written_while_the_run_is_live_and_at_its_end() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("cosched.prom");
    let run = LoopingRun::start(&["--metrics", &path.display().to_string()]);
    let read = || std::fs::read_to_string(&path).expect("a file");
    let text = read();
    assert!(
        text.contains("# TYPE cosched_jobs gauge\ncosched_jobs{state=\"running\"} "),
        "{text}"
    );
    assert!(
        text.contains("cosched_info{") && !text.contains("loop#2"),
        "{text}"
    );
    until("they are written again", || read() != text);
    run.end();
    let text = read();
    for line in [
        "cosched_jobs{state=\"running\"} 0",
        "cosched_jobs{state=\"failed\"} 1",
        "cosched_jobs_ended_total 5",
    ] {
        assert!(text.lines().any(|has| has == line), "{line}: {text}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
}

#[test]
fn a_file_that_can_not_be_written_is_an_error_before_anything_starts() {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("taken")).expect("a folder");
    for file in ["/no/such/folder/m", "taken", "/dev/null", "/dev/stdout"] {
        let output = cosched(
            &folder,
            &["run", "--metrics", file, "--", "touch", "started"],
        );
        assert_eq!(output.status.code(), Some(2), "{file}: {}", err(&output));
        assert!(err(&output).contains("--metrics"), "{}", err(&output));
        assert!(
            !folder.path().join("started").exists() && !folder.path().join("cosched-logs").exists()
        );
    }
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn a_file_that_the_run_reads_or_writes_otherwise_is_refused() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("list"), "touch started\n").expect("a file");
    for words in [
        &["run", "-f", "list", "--metrics", "list"][..],
        &["run", "-f", "list", "--metrics", "x", "--record", "x"],
    ] {
        let output = cosched(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(
            err(&output).contains("nothing was started"),
            "{}",
            err(&output)
        );
        assert!(!folder.path().join("started").exists());
    }
}
