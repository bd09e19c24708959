//! How a run ends: its exit codes, and what is told where it could not begin.

use crate::common::{self, command, cosched, err, json, out, read, write};
use std::process::{Command, Stdio};
use tempfile::tempdir;

#[test]
fn failures_time_outs_and_halt() {
    let folder = tempdir().expect("a folder");
    let failed = cosched(&folder, &["run", "echo broken disk >&2; exit 3"]);
    assert_eq!(failed.status.code(), Some(3));
    assert!(
        err(&failed).contains("broken disk") && err(&failed).contains("exit 3"),
        "{}",
        err(&failed)
    );
    let late = cosched(&folder, &["run", "--timeout", "0.2", "sleep", "600"]);
    assert_eq!(late.status.code(), Some(124), "{}", err(&late));
    for rule in ["now,fail=1", "soon,fail=1"] {
        write(&folder, "list", "false\ntouch started\n");
        let halted = cosched(
            &folder,
            &["run", "--jobs", "1", "--halt", rule, "-f", "list"],
        );
        assert_eq!(halted.status.code(), Some(1), "{rule}: {}", err(&halted));
        assert!(!folder.path().join("started").exists(), "{rule}");
    }
    let dry = cosched(&folder, &["run", "--dry-run", "touch", "started"]);
    assert!(
        dry.status.success() && out(&dry).contains("nothing was started"),
        "{}",
        out(&dry)
    );
    assert!(!folder.path().join("started").exists());
    let quiet = cosched(&folder, &["run", "-q", "true"]);
    assert!(
        quiet.status.success() && out(&quiet).is_empty() && err(&quiet).is_empty(),
        "{}",
        err(&quiet)
    );
}

#[test]
fn nobody_left_to_read_is_no_failure() {
    let folder = tempdir().expect("a folder");
    for words in [
        &["list", "policies"][..],
        // A reader of the jobs' output who goes while they run ends the run.
        &["run", "-q", "--output", "none", "true"],
        &["run", "--dry-run", "true"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(folder.path(), words)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("it runs");
        assert!(
            output.status.success() && !err(&output).contains("panicked"),
            "{words:?}: {}",
            err(&output)
        );
    }
}

#[test]
fn a_reader_who_has_gone_changes_no_exit_code() {
    let folder = tempdir().expect("a folder");
    for format in ["text", "json"] {
        let words = [
            "run", "--format", format, "--logs", format, "--output", "none", "sh", "-c", "exit {}",
            ":::", "1", "2",
        ];
        // A reader of the jobs' output who goes while they run ends the run.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = command(folder.path(), &words).stdout(writer).status();
        assert_eq!(run.expect("it runs").code(), Some(1), "{format}");
        assert!(folder.path().join(format).join("run.json").exists());
    }
}

#[test]
fn a_standard_error_that_takes_nothing_changes_no_exit_code() {
    let folder = tempdir().expect("a folder");
    write(&folder, "none", "");
    let cases: [(&[&str], i32); 9] = [
        (&["decide", "/nofile"], 2),
        (&["run", "--no-such-option"], 2),
        (&["run", "--pipe", "true"], 2),
        (&["run", "--no-such\u{1b}option"], 2),
        (&["run", "-r", "-a", "none", "echo"], 0),
        (&["run", "exit 3"], 3),
        (&["run", "--output", "live", "exit 3"], 3),
        (&["workload", "chase", "--working-set", "1000000GiB"], 2),
        (&["list", "no-such-list"], 2),
    ];
    for (words, code) in cases {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let (reader, unread) = std::io::pipe().expect("a pipe");
        drop(reader);
        for stderr in [Stdio::from(full), Stdio::from(unread)] {
            let ended = command(folder.path(), words)
                .stdout(Stdio::null())
                .stderr(stderr)
                .status()
                .expect("it runs");
            assert_eq!(ended.code(), Some(code), "{words:?}");
        }
        // These are the codes that a standard error that takes everything gets.
        let output = cosched(&folder, words);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{words:?}: {}",
            err(&output)
        );
        assert!(!err(&output).is_empty(), "{words:?} says nothing");
    }
}

#[test]
fn with_one_job_the_exit_code_is_the_job_s() {
    let folder = tempdir().expect("a folder");
    write(&folder, "plain", "text");
    write(&folder, "folder/file", "text");
    let cases: [(&[&str], i32); 11] = [
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["true"], 0),
        (&["no-such-program-anywhere"], 127),
        (&["./plain"], 126),
        (&["./folder"], 126),
        (&["./plain/x"], 126),
        (&["./none"], 127),
        // Several jobs have no code in common.
        (&["sh", "-c", "exit {}", ":::", "7", "8"], 1),
        (&["sh", "-c", "exit {}", ":::", "7"], 7),
        (&["no-such-program-anywhere", ":::", "a", "b"], 2),
    ];
    for (words, code) in cases {
        let run = cosched(&folder, &[&["run", "-q", "--"], words].concat());
        assert_eq!(run.status.code(), Some(code), "{words:?}: {}", err(&run));
    }
    assert!(err(&cosched(&folder, &["run", "--", "./plain"])).contains(
        "./plain is not executable (`-f ./plain` runs its lines; chmod +x makes it a program)"
    ));
    let late = cosched(
        &folder,
        &["run", "-q", "--timeout", "0.1", "--", "sleep", "60"],
    );
    assert_eq!(late.status.code(), Some(124));
    // The last of several jobs is not the only one.
    let resumed = [
        "run", "-q", "--joblog", "J", "--resume", "sh", "-c", "exit {}", ":::", "0", "7", "0",
    ];
    for _ in 0..2 {
        assert_eq!(cosched(&folder, &resumed).status.code(), Some(1));
    }
}

#[test]
fn a_working_folder_that_vanishes_is_named() {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("gone")).expect("a folder");
    let mix = "[[job]]\nname = \"first\"\ncommand = [\"rmdir\", \"gone\"]\n\
        [[job]]\nname = \"late\"\ncommand = [\"true\"]\ncwd = \"gone\"\n";
    write(&folder, "mix.toml", mix);
    let output = cosched(
        &folder,
        &["run", "mix.toml", "--policy", "fifo", "--jobs", "1"],
    );
    assert_eq!(output.status.code(), Some(1));
    let text = err(&output);
    assert!(
        text.contains("/gone: No such file or directory") && !text.contains("Broken pipe"),
        "{text}"
    );
}

#[test]
fn a_run_that_can_not_be_started_leaves_no_files() {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("j.runs")).expect("a folder");
    let words = [
        "run", "-q", "--record", "r.json", "--events", "e", "--joblog", "j", "--", "true",
    ];
    let left = |names: &[&str]| {
        let refused = cosched(&folder, &words);
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            err(&refused).contains("nothing was started"),
            "{}",
            err(&refused)
        );
        let entries = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry"));
        let mut found: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().expect("a name"))
            .collect();
        found.sort();
        assert_eq!(found, names);
    };
    left(&["j.runs"]);
    write(&folder, "j", "an earlier one\n");
    left(&["j", "j.runs"]);
    assert_eq!(read(&folder, "j"), "an earlier one\n");
}

#[test]
fn limits_that_are_too_low_are_refused() {
    let folder = tempdir().expect("a folder");
    let limited = |limit: &str, words: &[&str]| {
        let line = format!("ulimit {limit} && exec \"$0\" run -q \"$@\"");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line, env!("CARGO_BIN_EXE_cosched")])
            .args(words)
            .current_dir(folder.path());
        common::without_settings(&mut shell)
            .stdin(Stdio::null())
            .output()
            .expect("a shell")
    };
    for limit in ["-n 12", "-n 18"] {
        let refused = limited(limit, &["--joblog", "j", "touch started"]);
        let text = err(&refused);
        assert_eq!(refused.status.code(), Some(3), "{limit}: {text}");
        assert!(
            text.contains("`ulimit -Hn`") && text.contains("nothing was started"),
            "{limit}: {text}"
        );
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            0,
            "{limit} leaves something"
        );
    }
    // What is said to be needed is enough, for jobs that are not counted and whatever may be written.
    let text = err(&limited("-n 12", &["true"]));
    let needed = text
        .split("a run needs ")
        .nth(1)
        .and_then(|rest| rest.split(';').next())
        .expect("what is needed");
    let words = [
        "--output",
        "live",
        "--events",
        "e",
        "--joblog",
        "j",
        "--record",
        "r",
        "-j",
        "20",
        "-p",
        "round-robin",
    ];
    let values: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    let jobs = ["(sleep 0.05 & wait); echo {}", ":::"]
        .into_iter()
        .chain(values.iter().map(String::as_str));
    let few = limited(
        &format!("-n {needed}"),
        &words.into_iter().chain(jobs).collect::<Vec<_>>(),
    );
    assert_eq!(
        (few.status.code(), out(&few).lines().count()),
        (Some(0), 20),
        "{needed}: {}",
        err(&few)
    );
    // A limit that may be raised is, for the run alone.
    let soft = limited("-Sn 12", &["--output", "live", "ulimit -Sn"]);
    assert_eq!(
        (soft.status.code(), out(&soft).trim()),
        (Some(0), "12"),
        "{}",
        err(&soft)
    );
}

#[test]
fn the_answer_is_shown_even_where_the_record_can_not_be_kept() {
    let folder = tempdir().expect("a folder");
    let summary = cosched(&folder, &["run", "--record", "/dev/full", "--", "true"]);
    assert_eq!(summary.status.code(), Some(1));
    assert!(err(&summary).contains("1 succeeded"), "{}", err(&summary));
    assert!(
        err(&summary).contains("can't write /dev/full: No space left on device"),
        "{}",
        err(&summary)
    );
    let record = cosched(
        &folder,
        &[
            "run",
            "--record",
            "/dev/full",
            "--format",
            "json",
            "--",
            "true",
        ],
    );
    assert_eq!(
        (
            record.status.code(),
            json(&record)["jobs"][0]["exit"].as_i64()
        ),
        (Some(1), Some(0))
    );
}

#[test]
fn a_halt_on_successes_is_a_success_whatever_failed_before() {
    let folder = tempdir().expect("a folder");
    for (rule, code) in [
        ("soon,success=1", 0),
        ("now,success=1", 0),
        ("soon,fail=1", 1),
    ] {
        let run = cosched(
            &folder,
            &[
                "run", "-q", "-j", "1", "--halt", rule, "exit {}", ":::", "3", "0", "5",
            ],
        );
        assert_eq!(run.status.code(), Some(code), "{rule}: {}", err(&run));
    }
}

/// Where there is no scheduler in the kernel to be had, what is wrong with the command line is told first, and a plan can be shown.
#[test]
fn what_a_machine_lacks_is_told_last() {
    let folder = tempdir().expect("a folder");
    let run = |more: &[&str]| {
        cosched(
            &folder,
            &[
                &["run", "--actuator", "sched-ext", "--no-logs"],
                more,
                &["true", ":::", "1"],
            ]
            .concat(),
        )
    };
    let wrong = run(&["--policy", "efs", "--param", "c_local=x"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", err(&wrong));
    assert!(err(&wrong).contains("c_local"), "{}", err(&wrong));
    let shown = run(&["--dry-run"]);
    assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
    assert!(out(&shown).contains("actuation plans"), "{}", out(&shown));
    let started = run(&[]);
    let told = err(&started);
    match started.status.code() {
        Some(3 | 4) => {
            assert!(
                told.contains("--actuator sched-ext: ") && told.contains("nothing was started"),
                "{told}"
            );
            let why = told.trim().strip_prefix("cosched: ").expect("a message");
            assert!(
                out(&shown).contains(&format!("refused   {why}\n")),
                "{}",
                out(&shown)
            );
        }
        code => assert_eq!(
            (code, out(&shown).contains("refused")),
            (Some(0), false),
            "{told}"
        ),
    }
}
