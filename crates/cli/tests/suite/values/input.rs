//! Where values come from: standard input and files.

use super::support::{run, run_with_input};
use crate::common::{err, out, read};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn standard_input_holds_values_or_belongs_to_the_job() {
    let folder = tempdir().expect("a folder");
    let shown = |words: &[&str]| {
        let words = [&["-q", "--output", "group", "--jobs", "1"], words].concat();
        let output = run_with_input(&folder, &words, b"a\nb c\n");
        assert!(output.status.success(), "{words:?}: {}", err(&output));
        out(&output)
    };
    assert_eq!(shown(&["echo", "<{}>"]), "<a>\n<b c>\n");
    assert_eq!(shown(&["echo \"<\"{/}\">\"; true"]), "<a>\n<b c>\n");
    assert_eq!(shown(&["-n", "2", "echo"]), "a b c\n");
    assert_eq!(shown(&["echo"]), "a\nb c\n");
    assert_eq!(shown(&["--", "echo", "{}"]), "a\nb c\n");
    assert_eq!(shown(&["--", "cat"]), "a\nb c\n");
    // What the job does not read is left to whoever comes next.
    assert_eq!(shown(&["echo", "{}", ":::", "x"]), "x\n");
    let words = "\"$0\" run -q -- true; cat";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", words, env!("CARGO_BIN_EXE_cosched")])
        .env("COSCHED_HISTORY", "off")
        .current_dir(folder.path());
    let mut child = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"left\n")
        .expect("it reads");
    assert_eq!(out(&child.wait_with_output().expect("it ends")), "left\n");
    let none = run_with_input(&folder, &["-r", "touch", "{}"], b"\n");
    assert!(
        none.status.success() && err(&none).contains("nothing to run"),
        "{}",
        err(&none)
    );
}

/// As with GNU parallel, an empty line is an empty value.
#[test]
fn an_empty_line_is_a_value() {
    let folder = tempdir().expect("a folder");
    for (input, expected) in [("\n", "[]\n"), ("\n\n", "[]\n[]\n"), ("a\n\n", "[a]\n[]\n")] {
        let output = run_with_input(
            &folder,
            &["-q", "-k", "--no-logs", "printf", "[%s]\\n", "{}"],
            input.as_bytes(),
        );
        assert_eq!(out(&output), expected, "{}", err(&output));
    }
}

#[test]
fn the_null_device_is_an_empty_list() {
    let folder = tempdir().expect("a folder");
    for words in [
        &["-r", "-q", "echo", "x", "::::", "/dev/null"][..],
        &["-r", "-q", "-a", "/dev/null", "echo", "x"],
    ] {
        let output = run(&folder, words);
        assert_eq!(
            (output.status.code(), out(&output).as_str()),
            (Some(0), ""),
            "{}",
            err(&output)
        );
    }
    assert_eq!(
        run(&folder, &["-r", "-q", "echo", "x", "::::", "/dev/zero"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn files_of_values_are_not_overwritten() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("names"), "a\nb\n").expect("a file");
    for words in [
        &["-a", "names", "--joblog", "names", "true", "{}"][..],
        &["--events", "names", "true", "{}", "::::", "names"],
        &[
            "--record", "names", "true", "{}", ":::", "x", "::::+", "names",
        ],
    ] {
        let output = run(&folder, words);
        assert!(
            output.status.code() == Some(2) && err(&output).contains("would be overwritten"),
            "{words:?}"
        );
        assert_eq!(read(&folder, "names"), "a\nb\n");
    }
}
