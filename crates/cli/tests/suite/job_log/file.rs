//! The job log as a file: its fields, links, descriptors, and what others do to it.

use crate::common::{cosched, err, read, write};
use tempfile::tempdir;

#[test]
fn a_job_log_has_the_fields_of_gnu_parallel() {
    let folder = tempdir().expect("a folder");
    write(&folder, "list", "true\nexit 3\nkill -9 $$\n");
    cosched(
        &folder,
        &["run", "--jobs", "1", "--joblog", "log", "-f", "list"],
    );
    let log = read(&folder, "log");
    let rows: Vec<Vec<&str>> = log
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    let expected = [
        ["1", "0", "0", "true"],
        ["2", "3", "0", "exit 3"],
        ["3", "0", "9", "kill -9 $$"],
    ];
    assert_eq!(rows.len(), expected.len(), "{log}");
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row.len(), 9, "{log}");
        assert_eq!([row[0], row[6], row[7], row[8]], expected, "{log}");
        assert_eq!([row[1], row[4], row[5]], [":", "0", "0"], "{log}");
        for (time, decimals) in [(row[2], 3), (row[3].trim_start(), 3)] {
            assert!(
                time.parse::<f64>().is_ok_and(|seconds| seconds >= 0.0),
                "{log}"
            );
            assert_eq!(
                time.split_once('.').map(|(_, part)| part.len()),
                Some(decimals),
                "{log}"
            );
        }
        assert_eq!(row[3].len(), 10, "{log}");
    }
}

/// Who filters or edits a job log may leave its first line out.
#[test]
fn a_job_log_without_its_first_line_is_gone_on_with() {
    let folder = tempdir().expect("a folder");
    write(&folder, "J", "1\t:\t1.000\t1.000\t0\t0\t0\t0\techo a\n");
    let output = cosched(
        &folder,
        &[
            "run", "--joblog", "J", "--resume", "-q", "echo", ":::", "a", "b",
        ],
    );
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    assert!(read(&folder, "J").lines().count() == 2 && read(&folder, "J").ends_with("\techo b\n"));
}

#[test]
fn a_job_log_can_be_a_link() {
    use std::os::unix::fs::symlink;
    let folder = tempdir().expect("a folder");
    write(&folder, "real/J", "");
    symlink("real/J", folder.path().join("J")).expect("a link");
    symlink("real/new", folder.path().join("N")).expect("a link");
    for (name, file) in [("J", "real/J"), ("N", "real/new")] {
        let output = cosched(
            &folder,
            &["run", "-q", "--no-logs", "--joblog", name, "true"],
        );
        assert_eq!(output.status.code(), Some(0), "{name}: {}", err(&output));
        assert_eq!(read(&folder, file).lines().count(), 2, "{name}");
    }
}

/// A descriptor is the caller's: what is there stays, and what comes next follows.
#[test]
fn what_is_written_to_a_descriptor_comes_where_it_stands() {
    let folder = tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_cosched");
    for (option, first) in [("--joblog", "Seq\t"), ("--events", "{"), ("--record", "{")] {
        for (descriptor, more) in [("/dev/stdout", ""), ("/dev/fd/3", "3>&1")] {
            for to in ["> out", ">> out"] {
                write(&folder, "out", if to == "> out" { "old\n" } else { "" });
                let run = format!("{program} run -q --no-logs {option} {descriptor} true {more}");
                let line = format!("{{ echo before; {run}; {run}; echo after; }} {to}");
                let shell = std::process::Command::new("/bin/sh")
                    .env("COSCHED_HISTORY", "off")
                    .current_dir(folder.path())
                    .args(["-c", &line])
                    .status();
                assert!(shell.expect("it runs").success());
                let text = read(&folder, "out");
                let lines: Vec<&str> = text.lines().collect();
                assert!(
                    lines[0] == "before" && lines[lines.len() - 1] == "after",
                    "{line}: {text}"
                );
                assert!(lines[1].starts_with(first), "{line}: {text}");
                let whole = match option {
                    "--joblog" => lines.iter().filter(|line| line.ends_with("\ttrue")).count(),
                    "--events" => lines
                        .iter()
                        .filter(|line| line.contains("\"seq\":0"))
                        .count(),
                    _ => lines
                        .iter()
                        .filter(|line| line.contains("cosched.run/2"))
                        .count(),
                };
                assert_eq!(whole, 2, "{line}: {text}");
            }
        }
    }
    let line = format!("{program} run -q --no-logs --joblog /dev/fd/3 true 3< out");
    let refused = std::process::Command::new("/bin/sh")
        .current_dir(folder.path())
        .args(["-c", &line])
        .output();
    let refused = refused.expect("it runs");
    assert!(
        refused.status.code() == Some(2) && err(&refused).contains("not open for writing"),
        "{}",
        err(&refused)
    );
}

/// What it held is lost with it, or is in another place than the next run looks at.
#[test]
fn a_job_log_that_is_moved_or_removed_is_told() {
    let folder = tempdir().expect("a folder");
    for (job, code) in [
        ("mv J old", 0),
        ("rm J", 1),
        ("mv J x; cp x J; rm x", 1),
        ("cp J x; : > J", 1),
    ] {
        let run = cosched(&folder, &["run", "--no-logs", "--joblog", "J", job]);
        let told = if code == 0 {
            "was moved; --resume needs it"
        } else {
            "was removed or cut off, and its lines are lost"
        };
        assert!(
            run.status.code() == Some(code) && err(&run).contains(told),
            "{job}: {}",
            err(&run)
        );
    }
    assert!(read(&folder, "old").contains("mv J old"));
    let run = cosched(&folder, &["run", "--no-logs", "--joblog", "J", "true"]);
    assert!(
        run.status.success() && !err(&run).contains("the job log"),
        "{}",
        err(&run)
    );
}
