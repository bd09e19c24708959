//! Names of jobs, from values and commands.

use super::support::run;
use crate::common::{cosched, err, out, read};
use tempfile::tempdir;

#[test]
fn names_come_from_programs() {
    let folder = tempdir().expect("a folder");
    let names = |words: &[&str]| {
        let output = run(
            &folder,
            &[&["--dry-run", "--format", "json"], words].concat(),
        );
        let plan: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
        let jobs = plan["jobs"].as_array().expect("jobs").clone();
        jobs.iter()
            .map(|job| job["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["gzip", "-k", "{}", ":::", "d/a.txt", "b c"]),
        ["gzip#1", "gzip#2"]
    );
    assert_eq!(
        names(&["for i in 1 2; do echo $i {}; done", ":::", "x", "x"]),
        ["echo#1", "echo#2"]
    );
    std::fs::write(
        folder.path().join("list"),
        "sort a\nsort b\nfor i in 1; do wc $i; done\n",
    )
    .expect("a file");
    assert_eq!(names(&["-f", "list"]), ["sort#1", "sort#2", "wc"]);
}

#[test]
fn names_keep_the_letters_of_all_languages() {
    let folder = tempdir().expect("a folder");
    let long = "ü".repeat(60);
    let list = format!("Übung; :\n日本; :\n{long}; :\n");
    std::fs::write(folder.path().join("list"), list).expect("a file");
    run(&folder, &["-q", "--logs", "L", "-f", "list"]);
    for name in ["Übung", "日本", &"ü".repeat(48)] {
        assert!(
            folder.path().join(format!("L/{name}.out")).exists(),
            "{name}"
        );
    }
}

/// The number sign stands in names of files, in the job log's neighbours and on the page.
#[test]
fn numbered_names_are_shown_everywhere() {
    let folder = tempdir().expect("a folder");
    let words = ["-q", "--joblog", "log", "--logs", "L", "-j", "1"];
    let words = [&words[..], &["echo", ":::", "a", "b"]].concat();
    let output = run(&folder, &words);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(read(&folder, "L/echo#2.out"), "b\n");
    assert!(read(&folder, "log").ends_with("\techo b\n"));
    let why = cosched(&folder, &["why", "echo#2", "L"]);
    assert_eq!(why.status.code(), Some(0), "{}", err(&why));
    assert!(out(&why).starts_with("echo#2 at "), "{}", out(&why));
    let page = cosched(&folder, &["report", "L", "--html", "page.html"]);
    assert!(page.status.success(), "{}", err(&page));
    assert!(read(&folder, "page.html").contains("echo#2"));
    let trace = cosched(&folder, &["trace", "L", "--perfetto", "trace"]);
    assert!(trace.status.success(), "{}", err(&trace));
}

#[test]
fn failures_name_the_command_and_the_value() {
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["-v", "ls {} > /dev/null", ":::", "no such file"]);
    assert!(
        err(&output).contains("started ls (ls 'no such file' > /dev/null)"),
        "{}",
        err(&output)
    );
    assert!(
        err(&output).contains("): ls 'no such file' > /dev/null\n"),
        "{}",
        err(&output)
    );
}
