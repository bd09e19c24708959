//! A comparison that goes on after an interruption, as it was begun, and when it does not.

use crate::common::{err, json, until, write};
use crate::support::{SIMULATED, change, command, compare, records};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_comparison_goes_on_as_it_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'here'\ncommand = 'pwd >> places'\ncopies = 2\n",
    );
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo,linux",
        "--candidate",
        "by hand=pwd >> places; env >> variables",
    ];
    let more = ["-r", "1", "--warmup", "1", "--solo-runs", "0", "--out", "c"];
    let first = command(&folder, &[&words[..], &more].concat())
        .env("COSCHED_JOBS", "1")
        .output()
        .unwrap();
    assert!(first.status.success(), "{}", err(&first));
    let lines = |name: &str| {
        std::fs::read_to_string(folder.path().join(name))
            .unwrap_or_default()
            .lines()
            .count()
    };
    // The warm-up is not kept.
    assert_eq!((lines("places"), records(&folder, "c").len()), (10, 3));
    // From another folder, and with other variables.
    write(&folder, "other/empty", "");
    let other = |words: &[&str]| {
        let mut command = command(&folder, words);
        command
            .current_dir(folder.path().join("other"))
            .env("COSCHED_JOBS", "2")
            .env("COSCHED_MAX_PAUSE", "9s");
        command.output().unwrap()
    };
    let second = other(&["compare", "--resume", "../c", "-r", "2"]);
    assert!(second.status.success(), "{}", err(&second));
    assert_eq!(
        (lines("places"), records(&folder, "c").len()),
        (20, 6),
        "warmed up again, since runs were made"
    );
    assert_eq!(folder.path().join("other").read_dir().unwrap().count(), 1);
    let record = |block: u32| {
        let text = std::fs::read(
            folder
                .path()
                .join(format!("c/runs/{block:04}/jobs/fifo/run.json")),
        )
        .unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    assert_eq!(
        record(1)["setting"]["options"],
        record(2)["setting"]["options"]
    );
    assert_eq!(record(2)["setting"]["options"]["jobs_at_once"], 1);
    let variables = std::fs::read_to_string(folder.path().join("variables")).unwrap();
    assert!(
        variables.contains("COSCHED_JOBS=1") && !variables.contains("COSCHED_JOBS=2"),
        "{variables}"
    );
    assert!(!variables.contains("COSCHED_MAX_PAUSE"), "{variables}");
    // Nothing is left to do: nothing is warmed up.
    let third = other(&["compare", "--resume", "../c"]);
    assert!(
        third.status.success() && lines("places") == 20,
        "{}",
        err(&third)
    );
    // A run without its record is made again.
    std::fs::remove_file(folder.path().join("c/runs/0002/jobs/fifo/run.json")).unwrap();
    let fourth = other(&["compare", "--resume", "../c", "--warmup", "0"]);
    assert!(
        fourth.status.success() && lines("places") == 22,
        "{}",
        err(&fourth)
    );
    assert_eq!(record(2)["finished_by"], "completion");
}

#[test]
fn what_runs_read_must_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(from);
        std::fs::copy(from, folder.path().join(to)).unwrap();
    };
    copy("machines/epyc-2cpu.toml", "machine.toml");
    copy("programs/spec-cpu2006/gcc.toml", "gcc.toml");
    write(
        &folder,
        "a.toml",
        &SIMULATED.replace("'gcc'", "'./gcc.toml'"),
    );
    let words = [
        "a.toml",
        "--on",
        "./machine.toml",
        "-p",
        "linux,even",
        "-r",
        "1",
        "--out",
        "c",
    ];
    let begun = compare(&folder, &words);
    assert!(begun.status.success(), "{}", err(&begun));
    write(&folder, "other/empty", "");
    let mut elsewhere = command(
        &folder,
        &["compare", "--resume", "../c", "-r", "2", "--format", "json"],
    );
    let elsewhere = elsewhere
        .current_dir(folder.path().join("other"))
        .output()
        .unwrap();
    assert_eq!(json(&elsewhere)["blocks"], 2, "{}", err(&elsewhere));
    for file in ["machine.toml", "gcc.toml"] {
        let before = std::fs::read_to_string(folder.path().join(file)).unwrap();
        write(&folder, file, &format!("{before}\n# another\n"));
        let changed = compare(&folder, &["--resume", "c"]);
        assert!(changed.status.code() == Some(2), "{}", err(&changed));
        assert!(
            err(&changed).contains(&format!("{file}: it was changed since")),
            "{}",
            err(&changed)
        );
        write(&folder, file, &before);
    }
    assert!(compare(&folder, &["--resume", "c"]).status.success());
    let moved = compare(&folder, &["--resume", "c", "--on", "epyc-2cpu"]);
    assert!(
        moved.status.code() == Some(2) && err(&moved).contains("goes on as it was begun"),
        "{}",
        err(&moved)
    );
    // So does the program of a job.
    write(&folder, "work.sh", "exit 0\n");
    write(
        &folder,
        "real.toml",
        "[[job]]\nname = 'work'\ncommand = 'sh work.sh'\n",
    );
    let words = [
        "real.toml",
        "-p",
        "fifo,linux",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "d",
    ];
    assert!(compare(&folder, &words).status.success());
    write(&folder, "work.sh", "sleep 0.01; exit 0\n");
    let changed = compare(&folder, &["--resume", "d"]);
    assert!(changed.status.code() == Some(2), "{}", err(&changed));
    assert!(
        err(&changed).contains("a program of its jobs was changed"),
        "{}",
        err(&changed)
    );
}

#[test]
fn one_comparison_works_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'wait'\ncommand = 'echo run >> count; while [ ! -e go ]; do sleep 0.05; done'\n",
    );
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo,linux",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "c",
    ];
    let first = command(&folder, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("a run has begun", || folder.path().join("count").exists());
    for words in [&words[..], &["compare", "--resume", "c"]] {
        let second = command(&folder, words).output().unwrap();
        assert_eq!(second.status.code(), Some(2), "{}", err(&second));
        assert!(
            err(&second).contains("another `cosched compare` makes runs in this folder"),
            "{}",
            err(&second)
        );
    }
    write(&folder, "go", "");
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", err(&first));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("count"))
            .unwrap()
            .lines()
            .count(),
        2
    );
}

#[test]
fn commands_hear_the_variables_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'nap'\ncommand = 'true'\n",
    );
    let words = [
        "jobs.toml",
        "-p",
        "fifo",
        "--candidate",
        "heard=echo $COSCHED_POLICY $COSCHED_JOBS >> heard",
        "-r",
    ];
    let begin = ["1", "--solo-runs", "0", "--out", "c"];
    let mut first = command(&folder, &[&["compare"], &words[..], &begin].concat());
    let first = first
        .env("COSCHED_POLICY", "fair")
        .env("COSCHED_JOBS", "1")
        .output()
        .unwrap();
    assert!(first.status.success(), "{}", err(&first));
    let mut more = command(&folder, &["compare", "--resume", "c", "-r", "2"]);
    assert!(
        more.env("COSCHED_POLICY", "efs")
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("heard")).unwrap(),
        "fair 1\nfair 1\n"
    );
}

#[test]
fn an_interrupted_comparison_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'nap'\ncommand = 'echo run >> count; sleep 0.5'\n",
    );
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo,linux",
        "-r",
        "2",
        "--solo-runs",
        "0",
        "--out",
        "c",
    ];
    let count = || {
        std::fs::read_to_string(folder.path().join("count"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let before = count();
        let child = command(&folder, &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("a run has begun", || count() > before);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(128 + signal.as_raw()),
            "{}",
            err(&output)
        );
        assert!(err(&output).contains("--resume"), "{}", err(&output));
    }
    // A comparison that is killed takes its run with it.
    let before = count();
    let mut child = command(&folder, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a run has begun", || count() > before);
    child.kill().unwrap();
    child.wait().unwrap();
    let made = records(&folder, "c").len();
    let output = compare(&folder, &["--resume", "c", "--format", "json"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(
        (
            json(&output)["blocks"].as_u64(),
            records(&folder, "c").len()
        ),
        (Some(2), 4)
    );
    assert!(made < 4);
}

#[test]
fn a_comparison_goes_on_only_where_it_began() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "sim.toml", SIMULATED);
    write(
        &folder,
        "real.toml",
        "[[job]]\nname = 'nap'\ncommand = 'true'\n",
    );
    let simulated = [
        "sim.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,fair",
        "-r",
        "1",
        "--out",
        "sim",
    ];
    let real = [
        "real.toml",
        "-p",
        "fifo,linux",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "real",
    ];
    for (words, out) in [(&simulated[..], "sim"), (&real[..], "real")] {
        assert!(compare(&folder, words).status.success());
        let again = compare(&folder, words);
        assert!(again.status.success(), "{}", err(&again));
        change(
            &folder,
            &format!("{out}/compare.json"),
            "machine",
            "the other one",
        );
        for words in [words, &["--resume", out]] {
            let output = compare(&folder, words);
            assert_eq!(output.status.code(), Some(2), "{}", err(&output));
            for told in [
                "this comparison began on the machine `the other one`, and this is `",
                "with another --out",
            ] {
                assert!(err(&output).contains(told), "{}", err(&output));
            }
        }
    }
}

#[test]
fn a_comparison_that_could_write_nothing_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    let words = [
        "compare",
        "a.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,fair",
        "-r",
        "1",
        "--out",
        "c",
    ];
    // No file may hold a byte, as on a full disk;
    // and in the second case no more than 8 KiB.
    write(
        &folder,
        "long.toml",
        &format!("{SIMULATED}# {}\n", "long ".repeat(5000)),
    );
    let limited = |words: &[&str], blocks: &str| {
        let mut shell = Command::new("/bin/sh");
        crate::common::without_settings(&mut shell);
        shell
            .args([
                "-c",
                "ulimit -f \"$0\"; exec \"$@\"",
                blocks,
                env!("CARGO_BIN_EXE_cosched"),
            ])
            .args(words);
        shell
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let full = limited(&words, "0");
    assert_eq!(full.status.code(), Some(1), "{}", err(&full));
    assert!(
        err(&full).contains("can't write ") && err(&full).contains("compare.json"),
        "{}",
        err(&full)
    );
    assert!(command(&folder, &words).output().unwrap().status.success());
    let long = [
        "compare",
        "long.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,fair",
        "-r",
        "1",
        "--out",
        "d",
    ];
    let full = limited(&long, "16");
    assert!(
        full.status.code() == Some(1) && err(&full).contains("mixes/long.toml"),
        "{}",
        err(&full)
    );
    assert!(command(&folder, &long).output().unwrap().status.success());
}

#[test]
fn a_folder_that_can_not_be_written_is_told() {
    if rustix::process::geteuid().is_root() {
        return eprintln!("skipped, because root may write anywhere");
    }
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", SIMULATED);
    assert!(
        compare(
            &folder,
            &[
                "a.toml",
                "--on",
                "epyc-2cpu",
                "-p",
                "linux,fair",
                "-r",
                "1",
                "--out",
                "c"
            ]
        )
        .status
        .success()
    );
    let allow = |mode: u32, name: &str| {
        std::fs::set_permissions(
            folder.path().join(name),
            std::fs::Permissions::from_mode(mode),
        )
        .unwrap();
    };
    allow(0o444, "c/.lock");
    allow(0o555, "c");
    let output = compare(&folder, &["--resume", "c"]);
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert!(
        err(&output).contains("this folder can't be written, so no runs can be made in it"),
        "{}",
        err(&output)
    );
    assert!(
        crate::common::cosched(&folder, &["report", "c"])
            .status
            .success()
    );
    allow(0o755, "c");
}
