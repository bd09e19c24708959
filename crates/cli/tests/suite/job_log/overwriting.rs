//! No file of a run is written over another, or over what the jobs read.

use crate::common::{cosched, err, read, write};
use tempfile::tempdir;

/// By whichever name, and whatever reads them.
#[test]
fn what_the_jobs_read_is_not_written_over() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().expect("a folder");
    let machine = cosched(&folder, &["list", "machines", "i5-2500"]);
    assert_eq!(machine.status.code(), Some(0), "{}", err(&machine));
    let program = |name: &str| std::path::Path::new("../..").join(name);
    for (from, to) in [
        ("machines/i5-2500.toml", "on.toml"),
        ("programs/synthetic/bus-10.toml", "program.toml"),
    ] {
        std::fs::copy(program(from), folder.path().join(to)).expect("a file of this repository");
    }
    write(&folder, "in", "important\n");
    write(
        &folder,
        "mix.toml",
        "[[job]]\ncommand = \"cat\"\nstdin = \"in\"\n",
    );
    write(
        &folder,
        "sim.toml",
        "[[job]]\nprogram = \"./program.toml\"\nwork_instructions = 1_000\n",
    );
    write(&folder, "list", "true\n");
    write(&folder, "script", "#!/bin/sh\n");
    let script = folder.path().join("script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    std::fs::hard_link(folder.path().join("list"), folder.path().join("hard")).expect("a link");
    for (file, words) in [
        ("in", &["mix.toml"][..]),
        ("on.toml", &["sim.toml", "--on", "./on.toml"]),
        ("program.toml", &["sim.toml", "--on", "i5-2500"]),
        ("script", &["./script"]),
        ("hard", &["-f", "list"]),
    ] {
        let before = read(&folder, file);
        for option in ["--joblog", "--events", "--record"] {
            let output = cosched(
                &folder,
                &[&["run", "-q", "--no-logs", option, file], words].concat(),
            );
            assert_eq!(
                output.status.code(),
                Some(2),
                "{option} {file}: {}",
                err(&output)
            );
            assert!(
                err(&output).contains("would be overwritten"),
                "{option} {file}: {}",
                err(&output)
            );
            assert_eq!(read(&folder, file), before, "{option} {file}");
        }
    }
}

#[test]
fn outputs_of_jobs_are_no_place_for_other_files() {
    let folder = tempdir().expect("a folder");
    for option in ["--joblog", "--record", "--events"] {
        let output = cosched(
            &folder,
            &[
                "run",
                "-q",
                "--logs",
                "L",
                option,
                "L/echo.out",
                "echo",
                "{}",
                ":::",
                "1",
            ],
        );
        assert_eq!(output.status.code(), Some(2), "{option}: {}", err(&output));
        assert!(
            err(&output).contains("the run writes echo.out in its log folder, too"),
            "{}",
            err(&output)
        );
        assert!(!folder.path().join("L").exists());
    }
}

/// One would be written over the other.
#[test]
fn files_that_are_one_are_refused() {
    let folder = tempdir().expect("a folder");
    write(&folder, "real", "kept");
    std::os::unix::fs::symlink("real", folder.path().join("link")).expect("a link");
    let cases = [
        &["--joblog", "x", "--record", "x"][..],
        &["--joblog", "link", "--record", "real"],
        &["--joblog", "J", "--events", "J.runs"],
        &["--events", "r.series.jsonl", "--record", "r.json"],
        &["--joblog", "L/run.json", "--results", "L"],
        &["--joblog", "L/series.jsonl", "--logs", "L"],
    ];
    for words in cases {
        let run = cosched(&folder, &[&["run"], words, &["touch ran"]].concat());
        let told = ["is the same file", "in its log folder, too"]
            .iter()
            .any(|part| err(&run).contains(part));
        assert!(
            run.status.code() == Some(2) && told,
            "{words:?}: {}",
            err(&run)
        );
    }
    assert!(!folder.path().join("ran").exists() && read(&folder, "real") == "kept");
    let apart = [
        "run",
        "--joblog",
        "L/J",
        "--logs",
        "L",
        "--record",
        "/dev/null",
        "--events",
        "/dev/null",
        "true",
    ];
    assert!(cosched(&folder, &apart).status.success());
}
