//! Log folders: what runs write, whose it is, and what goes.

use crate::common::{command, cosched, err, json, out, read, until, write};
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

#[test]
fn a_log_folder_that_is_used_again_keeps_the_runs_apart() {
    let folder = tempdir().expect("a folder");
    for round in ["one", "two"] {
        write(
            &folder,
            "mix.toml",
            &format!("[[job]]\nname = \"say\"\ncommand = \"echo {round}\"\n"),
        );
        let run = cosched(
            &folder,
            &["run", "mix.toml", "--logs", "L", "--output", "group"],
        );
        assert_eq!(out(&run), format!("{round}\n"), "{}", err(&run));
    }
    assert_eq!(
        (
            read(&folder, "L/say.out"),
            read(&folder, "L/earlier-1/say.out")
        ),
        ("two\n".into(), "one\n".into())
    );
    assert!(read(&folder, "L/earlier-1/run.json").contains("echo one"));
}

/// The names of the run's own job log are free where it writes none.
#[test]
fn a_job_log_can_be_named_in_the_log_folder() {
    let folder = tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let output = cosched(&folder, &[&["run", "-q", "--logs", "L"], words].concat());
        assert_eq!(
            (out(&output), err(&output), output.status.code()),
            (String::new(), String::new(), Some(0)),
            "{words:?}"
        );
    };
    write(&folder, "L/joblog", "theirs");
    run(&["--joblog", "log", "true"]);
    assert_eq!(read(&folder, "L/joblog"), "theirs");
    std::fs::remove_file(folder.path().join("L/joblog")).expect("a file");
    let named = ["--joblog", "L/joblog"];
    let lines = || read(&folder, "L/joblog").lines().count();
    run(&[&named[..], &["true", ":::", "a", "b"]].concat());
    run(&[&named[..], &["--resume", "true", ":::", "a", "b", "c"]].concat());
    assert_eq!(lines(), 4);
    run(&[&named[..], &["true"]].concat());
    assert_eq!(lines(), 2);
    run(&["true", ":::", "a", "b"]);
    assert_eq!(lines(), 3);
    assert_eq!(read(&folder, "L/earlier-4/joblog").lines().count(), 2);
}

#[test]
fn files_that_are_not_ours_are_not_touched() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"say\"\ncommand = \"echo hi\"\n",
    );
    std::fs::create_dir(folder.path().join("L")).expect("a folder");
    write(&folder, "L/say.out", "theirs");
    let run = cosched(&folder, &["run", "mix.toml", "--logs", "L"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(
        err(&run).contains("there is say.out already") && err(&run).contains("nothing was started"),
        "{}",
        err(&run)
    );
    assert_eq!(read(&folder, "L/say.out"), "theirs");
    for option in ["--record", "--joblog", "--events"] {
        let before = read(&folder, "mix.toml");
        let run = cosched(&folder, &["run", "mix.toml", option, "./mix.toml"]);
        assert_eq!(run.status.code(), Some(2));
        assert!(
            err(&run).contains("this run reads this file, which would be overwritten"),
            "{}",
            err(&run)
        );
        assert_eq!(read(&folder, "mix.toml"), before);
    }
}

#[test]
fn a_record_for_a_pipe_is_the_record_alone() {
    let folder = tempdir().expect("a folder");
    let run = cosched(
        &folder,
        &["run", "-q", "--no-logs", "--record", "/dev/stdout", "true"],
    );
    assert!(run.status.success(), "{}", err(&run));
    assert_eq!(json(&run)["totals"]["succeeded"], 1);
}

#[test]
fn no_logs_overrides_the_environment() {
    let folder = tempdir().expect("a folder");
    let run = command(folder.path(), &["run", "-q", "--no-logs", "echo", "a"])
        .env("COSCHED_LOGS", "L")
        .output();
    let run = run.expect("it runs");
    assert_eq!(
        (run.status.code(), out(&run).as_str()),
        (Some(0), "a\n"),
        "{}",
        err(&run)
    );
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        0
    );
    let run = cosched(&folder, &["run", "--no-logs", "--logs", "L", "echo", "a"]);
    assert!(
        run.status.code() == Some(2) && err(&run).contains("leave one of them out"),
        "{}",
        err(&run)
    );
}

#[test]
fn a_run_without_logs_shows_its_output_and_leaves_nothing() {
    let folder = tempdir().expect("a folder");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    // One at a time, or either could end first.
    let words = [
        "run",
        "-j1",
        "--no-logs",
        "echo {}; exit {}",
        ":::",
        "0",
        "3",
    ];
    let output = command(folder.path(), &words)
        .env("TMPDIR", &temporary)
        .output()
        .expect("the binary runs");
    assert_eq!(
        (output.status.code(), out(&output).as_str()),
        (Some(1), "0\n3\n"),
        "{}",
        err(&output)
    );
    let left = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!(
        (left(folder.path()), left(&temporary)),
        (1, 0),
        "{}",
        err(&output)
    );
    // Meanwhile the output is nobody else's.
    let words = ["run", "-q", "--no-logs", "stat -c %a $TMPDIR/cosched-*"];
    let output = command(folder.path(), &words)
        .env("TMPDIR", &temporary)
        .output()
        .expect("the binary runs");
    assert_eq!(out(&output), "700\n", "{}", err(&output));
}

/// A name that holds a line of its own would look like a message.
#[test]
fn names_of_files_and_folders_do_not_forge_messages() {
    let folder = tempdir().expect("a folder");
    let name = "n\ncosched: FAKE\u{1b}[2J";
    let open = folder.path().join(name);
    std::fs::create_dir(&open).expect("a folder");
    let below = |file: &str| format!("{name}/{file}");
    let none = below("none/x");
    write(&folder, &below("bad"), "no job log, no record, no list\n");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nname = \"j\"\ncommand = \"true\"\nprogram = \"./none\"\n",
    );
    let bad = below("bad");
    let toml = below("mix.toml");
    write(
        &folder,
        &toml,
        "[[job]]\nname = \"j\"\nprogram = \"./none.toml\"\n",
    );
    let calls: [&[&str]; 12] = [
        &["run", "--logs", &below("bad/x"), "true"],
        &["run", "--joblog", &none, "true"],
        &["run", "--record", &none, "true"],
        &["run", "--events", &none, "true"],
        &["run", "--joblog", &bad, "--resume", "true"],
        &["run", "--solo", &bad, "true"],
        &["run", "--profile", &bad, "true"],
        &["run", &toml, "--on", "xeon-e5645"],
        &["run", "mix.toml", "--on", &toml],
        &["run", "-f", &none],
        &["decide", &bad],
        &["man", "--dir", &bad],
    ];
    for words in calls {
        let run = cosched(&folder, words);
        let text = err(&run);
        assert!(!run.status.success(), "{words:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("cosched: FAKE")),
            "{words:?}: {text}"
        );
        assert!(
            text.contains(r"n\ncosched: FAKE\x1b[2J"),
            "{words:?}: {text}"
        );
    }
}

/// Makes a pipe.
fn pipe(path: &Path) {
    assert!(
        Command::new("mkfifo")
            .arg(path)
            .status()
            .expect("mkfifo")
            .success()
    );
}

#[test]
fn files_beside_named_ones_are_never_reached_through_links() {
    use std::os::unix::fs::symlink;
    let folder = tempdir().expect("a folder");
    write(&folder, "precious", "kept");
    let words = [
        "run", "-q", "--logs", "L", "--joblog", "out", "--record", "r.json", "--", "touch", "ran",
    ];
    for beside in ["out.runs", "r.series.jsonl"] {
        let beside = folder.path().join(beside);
        symlink("precious", &beside).expect("a link");
        let run = cosched(&folder, &words);
        assert_eq!(run.status.code(), Some(2));
        assert!(
            err(&run).contains("is not a regular file")
                && err(&run).contains("nothing was started"),
            "{}",
            err(&run)
        );
        std::fs::remove_file(&beside).expect("a link");
        pipe(&beside);
        let run = cosched(&folder, &words);
        assert!(
            run.status.code() == Some(2) && err(&run).contains("is not a regular file"),
            "{}",
            err(&run)
        );
        std::fs::remove_file(&beside).expect("a pipe");
    }
    assert_eq!(
        (
            read(&folder, "precious").as_str(),
            folder.path().join("ran").exists()
        ),
        ("kept", false)
    );
    assert!(
        !folder.path().join("L").exists() && !folder.path().join("out").exists(),
        "nothing is left"
    );
    // One that is put there while the run goes on is replaced.
    let late = "ln -s precious r.series.jsonl";
    let run = cosched(
        &folder,
        &["run", "-q", "--logs", "L", "--record", "r.json", late],
    );
    assert!(run.status.success(), "{}", err(&run));
    assert_eq!(read(&folder, "precious"), "kept");
    assert!(cosched(&folder, &words).status.success());
    assert!(read(&folder, "r.series.jsonl").contains("cosched.series"));
}

#[test]
fn pipes_and_descriptors_are_written_to() {
    let folder = tempdir().expect("a folder");
    for option in ["--joblog", "--record", "--events"] {
        let run = cosched(
            &folder,
            &["run", "-q", "--no-logs", option, "/dev/null", "--", "true"],
        );
        assert!(
            run.status.success() && err(&run).is_empty(),
            "{option}: {}",
            err(&run)
        );
        let run = cosched(
            &folder,
            &[
                "run",
                "-q",
                "--no-logs",
                option,
                "/dev/stdout",
                "--",
                "true",
            ],
        );
        assert!(
            run.status.success() && !run.stdout.is_empty(),
            "{option}: {}",
            err(&run)
        );
        // The descriptor leads to a file.
        let out = std::fs::File::create(folder.path().join("file")).expect("a file");
        let words = ["run", "-q", "--no-logs", option, "/dev/fd/1", "--", "true"];
        let run = command(folder.path(), &words)
            .stdout(out)
            .output()
            .expect("it runs");
        assert!(
            run.status.success() && !read(&folder, "file").is_empty(),
            "{option}: {}",
            err(&run)
        );
        let fifo = folder.path().join("fifo");
        pipe(&fifo);
        let words = ["run", "-q", "--no-logs", option, "fifo", "--", "true"];
        let mut run = command(folder.path(), &words).spawn().expect("it runs");
        // It is read once, from its start to its end.
        assert!(
            !std::fs::read(&fifo).expect("a pipe").is_empty(),
            "{option}"
        );
        assert!(run.wait().expect("it ends").success());
        std::fs::remove_file(&fifo).expect("a pipe");
    }
    assert!(
        Path::new("/dev/stdout")
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_symlink()),
        "it is still the link"
    );
    assert!(
        !Path::new("/dev/fd/1.runs").exists()
            && std::fs::read_dir(folder.path()).expect("a folder").count() == 1
    );
}

#[test]
fn a_signal_while_a_pipe_has_no_reader_leaves_nothing() {
    use rustix::process::{Pid, Signal, kill_process};
    for option in ["--joblog", "--record", "--events"] {
        for signal in [Signal::TERM, Signal::INT] {
            let folder = tempdir().expect("a folder");
            let temporary = folder.path().join("tmp");
            std::fs::create_dir(&temporary).expect("a folder");
            pipe(&folder.path().join("fifo"));
            // The other one can be opened at once, and goes again.
            let other = if option == "--events" {
                "--record"
            } else {
                "--events"
            };
            let words = [
                "run",
                "--no-logs",
                option,
                "fifo",
                other,
                "other",
                "--",
                "touch",
                "ran",
            ];
            let mut run = command(folder.path(), &words);
            let run = run
                .env("TMPDIR", &temporary)
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("it runs");
            let entries = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
            until("its folder is there", || entries(&temporary) == 1);
            let pid = Pid::from_child(&run);
            kill_process(pid, signal).expect("it waits");
            let ended = run.wait_with_output().expect("it ends");
            assert_eq!(
                ended.status.code(),
                Some(128 + signal.as_raw()),
                "{}",
                err(&ended)
            );
            assert!(
                err(&ended).contains("before anything was started"),
                "{}",
                err(&ended)
            );
            assert_eq!(
                (entries(&temporary), entries(folder.path())),
                (0, 2),
                "{option}"
            );
        }
    }
}

/// A folder with output that is nowhere else is no such folder, nor is one whose jobs go on.
#[test]
fn the_temporary_folder_of_a_killed_run_goes_with_a_later_run() {
    let folder = tempdir().expect("a folder");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let run = |words: &[&str]| {
        let mut run = command(folder.path(), &["run"]);
        run.args(words).env("TMPDIR", &temporary);
        run
    };
    let count = || std::fs::read_dir(&temporary).expect("a folder").count();
    let job = "echo $COSCHED_RUN > made; mv made begun; until test -e go; do sleep 0.01; done";
    let words = ["--no-logs", "--", job];
    let mut killed = run(&words).spawn().expect("it runs");
    until("the job runs", || folder.path().join("begun").exists());
    killed.kill().expect("a run");
    killed.wait().expect("a run");
    let later = || {
        let status = run(&["--logs", "L", "--quiet", "--", "true"]).status();
        assert!(status.expect("it runs").success());
        count()
    };
    assert_eq!(later(), 1, "its job goes on");
    let left = std::fs::read_dir(&temporary).expect("a folder").next();
    let left = left.expect("a folder").expect("a folder").path();
    let (list, aside) = (left.join(".cosched-run"), folder.path().join("list"));
    std::fs::rename(&list, &aside).expect("a list");
    write(&folder, "go", "");
    let token = read(&folder, "begun");
    let thaw = ["thaw", "--run", token.trim()];
    until("its job has ended", || {
        !out(&cosched(&folder, &thaw)).contains("still runs")
    });
    assert_eq!(later(), 1, "it is kept");
    std::fs::rename(&aside, &list).expect("a list");
    assert_eq!(later(), 0);
}

#[test]
fn a_temporary_directory_that_is_not_there_is_not_made() {
    let folder = tempdir().expect("a folder");
    let temporary = folder.path().join("no/such");
    let run = command(folder.path(), &["run", "-q", "--no-logs", "true"])
        .env("TMPDIR", &temporary)
        .output();
    let run = run.expect("it runs");
    assert_eq!(run.status.code(), Some(2));
    assert!(
        err(&run).contains("TMPDIR") && err(&run).contains("nothing was started"),
        "{}",
        err(&run)
    );
    assert!(!folder.path().join("no").exists());
}
