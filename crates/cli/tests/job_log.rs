//! The job log, and resuming by it.

mod common;

use common::{command, cosched, ended, err, out, read, until, write};
use serde_json::Value;
use std::process::Stdio;
use tempfile::tempdir;

#[test]
fn a_job_log_and_resuming_by_it() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "list",
        "echo >> good\necho >> good\ntest -e fixed && echo >> late\n",
    );
    let words = [
        "run", "--jobs", "1", "--joblog", "log", "--resume", "-f", "list",
    ];
    assert_eq!(cosched(&folder, &words).status.code(), Some(1));
    assert!(read(&folder, "log").starts_with(
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
    ));
    write(&folder, "fixed", "");
    write(
        &folder,
        "list",
        "echo >> good\necho >> good\necho >> good\ntest -e fixed && echo >> late\n",
    );
    assert_eq!(cosched(&folder, &words).status.code(), Some(0));
    assert_eq!(
        (read(&folder, "good").len(), read(&folder, "late").len()),
        (3, 1)
    );
}

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

/// The second run would begin the first one's job log anew.
#[test]
fn a_job_log_belongs_to_one_run_at_a_time() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "--joblog",
        "J",
        "touch began; while [ -e began ]; do sleep 0.01; done",
    ];
    let mut first = command(folder.path(), &words)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    until("the job begins", || folder.path().join("began").exists());
    let second = cosched(&folder, &["run", "--joblog", "J", "true"]);
    assert!(
        second.status.code() == Some(2) && err(&second).contains("still goes on and writes to it"),
        "{}",
        err(&second)
    );
    // By another name it is the same file, and by its name the run is known where the file is gone.
    std::fs::hard_link(folder.path().join("J"), folder.path().join("H")).expect("a link");
    for (joblog, moves) in [("H", false), ("J", true)] {
        if moves {
            std::fs::rename(folder.path().join("J"), folder.path().join("old")).expect("a file");
        }
        for more in [&[][..], &["--resume"]] {
            let second = cosched(
                &folder,
                &[&["run", "--joblog", joblog], more, &["true"]].concat(),
            );
            assert!(
                second.status.code() == Some(2) && err(&second).contains("still goes on"),
                "{}",
                err(&second)
            );
        }
    }
    assert!(!folder.path().join("J").exists() && !folder.path().join("H.runs").exists());
    std::fs::remove_file(folder.path().join("began")).expect("a file");
    assert!(first.wait().expect("it ends").success());
    assert!(
        read(&folder, "old").contains("touch began") && read(&folder, "old") == read(&folder, "H")
    );
    assert!(
        cosched(&folder, &["run", "--joblog", "J", "true"])
            .status
            .success()
    );
}

/// Of runs that are started together one runs, with --resume and without.
#[test]
fn one_of_several_that_start_together_has_the_job_log() {
    for more in [&[][..], &["--resume"]] {
        let folder = tempdir().expect("a folder");
        let job = "echo x >> ran; touch began; while [ ! -e end ]; do sleep 0.01; done";
        let words = [&["run", "-q", "--joblog", "J"], more, &[job]].concat();
        let start = || {
            command(folder.path(), &words)
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
        };
        let mut all: Vec<_> = (0..4).map(|_| start().expect("it runs")).collect();
        let mut codes = Vec::new();
        until("all but one have given up", || {
            all.retain_mut(|run| match run.try_wait().expect("it is ours") {
                Some(status) => {
                    codes.push(status.code());
                    false
                }
                None => true,
            });
            all.len() == 1 && folder.path().join("began").exists()
        });
        write(&folder, "end", "");
        assert!(all[0].wait().expect("it ends").success());
        assert_eq!(
            (codes, read(&folder, "ran")),
            (vec![Some(2); 3], "x\n".to_owned())
        );
        assert!(
            cosched(&folder, &["run", "--joblog", "J", "--resume", job])
                .status
                .success()
        );
        assert_eq!(
            (
                read(&folder, "ran").len(),
                read(&folder, "J").lines().count()
            ),
            (2, 2)
        );
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
                        .filter(|line| line.contains("cosched.run/1"))
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
            "was moved while the run went on"
        } else {
            "was removed or cut off while the run went on"
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
        run.status.success() && !err(&run).contains("while the run went on"),
        "{}",
        err(&run)
    );
}

/// One would be written over the other.
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

/// A second run that does not get the job log leaves the first one's events alone.
#[test]
fn events_are_emptied_by_who_has_the_job_log() {
    let folder = tempdir().expect("a folder");
    write(&folder, "events", "kept\n");
    let job = "touch began; while [ -e began ]; do sleep 0.01; done";
    let mut first = command(folder.path(), &["run", "--joblog", "J", job]);
    let mut first = first
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    until("the job begins", || folder.path().join("began").exists());
    let second = cosched(
        &folder,
        &["run", "--joblog", "J", "--events", "events", "true"],
    );
    assert_eq!(
        (second.status.code(), read(&folder, "events").as_str()),
        (Some(2), "kept\n"),
        "{}",
        err(&second)
    );
    std::fs::remove_file(folder.path().join("began")).expect("the file");
    assert!(ended(&mut first).success());
}

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
                "run", "-q", "--logs", "L", option, "L/1.out", "echo", "{}", ":::", "1",
            ],
        );
        assert_eq!(output.status.code(), Some(2), "{option}: {}", err(&output));
        assert!(
            err(&output).contains("the run writes 1.out in its log folder, too"),
            "{}",
            err(&output)
        );
        assert!(!folder.path().join("L").exists());
    }
}

/// The events of two runs in one file could not be told apart.
#[test]
fn events_belong_to_one_run_at_a_time() {
    let folder = tempdir().expect("a folder");
    let job = "touch began; while [ -e began ]; do sleep 0.01; done";
    let mut first = command(folder.path(), &["run", "--events", "E", job]);
    let mut first = first
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    until("the job begins", || folder.path().join("began").exists());
    let second = cosched(&folder, &["run", "--events", "E", "true"]);
    assert_eq!(second.status.code(), Some(2), "{}", err(&second));
    assert!(
        err(&second).contains("still goes on and writes to it"),
        "{}",
        err(&second)
    );
    std::fs::remove_file(folder.path().join("began")).expect("the file");
    assert!(ended(&mut first).success());
}

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

/// The record is of the whole batch, whoever ran it.
#[test]
fn a_batch_of_which_nothing_is_left_has_a_record() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run", "--joblog", "J", "--resume", "--record", "r.json", "--format", "json", "true",
        ":::", "1", "2",
    ];
    assert!(cosched(&folder, &words).status.success());
    std::fs::remove_file(folder.path().join("r.json")).expect("a record");
    let again = cosched(&folder, &words);
    assert!(
        again.status.success() && err(&again).contains("nothing is left to run"),
        "{}",
        err(&again)
    );
    for text in [out(&again), read(&folder, "r.json")] {
        let record: Value = serde_json::from_str(&text).expect("a record");
        let counts = ["jobs", "earlier_jobs"].map(|key| record[key].as_array().map(Vec::len));
        assert_eq!(counts, [Some(0), Some(2)], "{text}");
    }
    // Nobody asked for more.
    let quiet = cosched(
        &folder,
        &[
            "run", "-q", "--joblog", "J", "--resume", "true", ":::", "1", "2",
        ],
    );
    assert!(quiet.status.success() && out(&quiet).is_empty() && err(&quiet).is_empty());
}

/// What stands beside the job log is beside the file itself.
#[test]
fn a_job_log_is_one_file_whatever_leads_to_it() {
    let folder = tempdir().expect("a folder");
    write(&folder, "real/J", "");
    std::os::unix::fs::symlink("real/J", folder.path().join("link")).expect("a link");
    let words = [
        "run",
        "--joblog",
        "link",
        "touch began; while [ -e began ]; do sleep 0.01; done",
    ];
    let mut first = command(folder.path(), &words)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    until("the job begins", || folder.path().join("began").exists());
    for more in [&[][..], &["--resume"]] {
        let second = cosched(
            &folder,
            &[&["run", "--joblog", "real/J"], more, &["true"]].concat(),
        );
        assert!(
            second.status.code() == Some(2) && err(&second).contains("still goes on"),
            "{}",
            err(&second)
        );
    }
    std::fs::remove_file(folder.path().join("began")).expect("a file");
    assert!(first.wait().expect("it ends").success());
    assert!(
        read(&folder, "real/J").contains("touch began")
            && folder.path().join("real/J.runs").exists()
    );
}

/// The same words mean other files elsewhere.
#[test]
fn relative_folders_are_those_of_the_caller() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\ncommand = 'echo x >> ran'\ncwd = 'sub'\n[[job]]\ncommand = 'echo y >> ran'\n",
    );
    for case in ["p1", "p2"] {
        write(&folder, &format!("{case}/sub/ran"), "");
        let words = [
            "run",
            "../mix.toml",
            "-q",
            "--no-logs",
            "--joblog",
            "../J",
            "--resume",
        ];
        let run = command(&folder.path().join(case), &words)
            .output()
            .expect("it runs");
        assert!(run.status.success(), "{}", err(&run));
        assert_eq!(read(&folder, &format!("{case}/sub/ran")), "x\n");
        // Of a job without a folder only its command is known.
        let words = [&words[..3], &words[4..]].concat();
        let again = command(
            &folder.path().join(case),
            &[&words[..], &["--dry-run"]].concat(),
        )
        .output()
        .expect("it runs");
        assert!(again.status.success(), "{}", err(&again));
    }
    assert_eq!(read(&folder, "p1/ran"), "y\n");
    assert!(!folder.path().join("p2/ran").exists());
}

/// Copies, and jobs that differ in their environment or folder, have one command. Their numbers tell which of them is done.
#[test]
fn resuming_tells_jobs_with_the_same_command_apart() {
    let folder = tempdir().expect("a folder");
    write(&folder, "a/in", "");
    write(&folder, "b/in", "");
    let job = "command = 'test -e ../go || [ $SEED = 2 ] && echo $SEED >> ../done'";
    let mix = format!(
        "[[job]]\n{job}\ncwd = \"a\"\nenv = {{ SEED = \"1\" }}\n[[job]]\n{job}\ncwd = \"b\"\nenv = {{ SEED = \"2\" }}\n"
    );
    write(&folder, "mix.toml", &mix);
    let words = ["run", "mix.toml", "-q", "--joblog", "J", "--resume"];
    assert_eq!(cosched(&folder, &words).status.code(), Some(1));
    write(&folder, "go", "");
    let run = cosched(&folder, &words);
    assert_eq!(
        (run.status.code(), read(&folder, "done").as_str()),
        (Some(0), "2\n1\n"),
        "{}",
        err(&run)
    );
    assert!(
        out(&cosched(
            &folder,
            &[&words[..2], &words[3..], &["--dry-run"]].concat()
        ))
        .contains("2 done before")
    );
}

/// The solver is the same in every folder, and what it is given can change.
#[test]
fn resuming_knows_jobs_by_what_they_are_given() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "mix.toml", "-q", "--joblog", "J", "--resume"];
    let resume = |jobs: &[(&str, u32)]| {
        let job = |(case, seed): &(&str, u32)| {
            format!(
                "[[job]]\ncommand = 'echo $S >> ran; test -e ok'\ncwd = '{case}'\nenv = {{ S = '{seed}' }}\n"
            )
        };
        write(
            &folder,
            "mix.toml",
            &jobs.iter().map(job).collect::<String>(),
        );
        let run = cosched(&folder, &words);
        let ran: Vec<String> = ["a", "b", "c"]
            .map(|case| read(&folder, &format!("{case}/ran")).replace('\n', " "))
            .into();
        (run.status.code(), ran.join("|"))
    };
    for case in ["a", "b", "c"] {
        write(&folder, &format!("{case}/ran"), "");
    }
    write(&folder, "a/ok", "");
    assert_eq!(
        resume(&[("a", 1), ("b", 1)]),
        (Some(1), "1 |1 |".to_owned())
    );
    write(&folder, "b/ok", "");
    write(&folder, "c/ok", "");
    // In another order, and with another one in front.
    assert_eq!(
        resume(&[("c", 1), ("b", 1), ("a", 1)]),
        (Some(0), "1 |1 1 |1 ".to_owned())
    );
    assert_eq!(
        resume(&[("a", 2), ("b", 1), ("c", 1)]),
        (Some(0), "1 2 |1 1 |1 ".to_owned())
    );
    let record: Value =
        serde_json::from_str(read(&folder, "J.runs").lines().last().unwrap()).unwrap();
    assert!(
        record["given"]["cwd"]
            .as_str()
            .is_some_and(|cwd| cwd.starts_with('/') && cwd.ends_with("/a")),
        "{record}"
    );
    // Without what stands beside it the job log tells no folders, and numbers count.
    std::fs::remove_file(folder.path().join("J.runs")).expect("a file");
    assert_eq!(resume(&[("a", 3), ("b", 1)]).0, Some(0));
}

/// A job that saves its state and exits with 0 when it is told to end is to go on later.
#[test]
fn a_job_that_was_told_to_end_is_resumed() {
    let folder = tempdir().expect("a folder");
    let job = "trap 'echo saved >> state; exit 0' TERM; touch began; until [ -e go ]; do sleep 0.02; done";
    let words = ["run", "--joblog", "J", "--resume", "--logs", "L", job];
    let mut run = command(folder.path(), &words)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    until("the job begins", || folder.path().join("began").exists());
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert_eq!(run.wait().expect("it ends").code(), Some(143));
    assert_eq!(read(&folder, "state"), "saved\n");
    let record: Value = serde_json::from_str(&read(&folder, "L/run.json")).expect("a record");
    assert_eq!(
        (&record["jobs"][0]["exit_text"], &record["totals"]["failed"]),
        (&"told to end".into(), &1.into())
    );
    write(&folder, "go", "");
    assert_eq!(cosched(&folder, &words).status.code(), Some(0));
    assert!(err(&cosched(&folder, &words)).contains("all 1 jobs succeeded before"));
}

/// Anybody could have written it, and root can end anybody's processes.
#[test]
fn a_list_of_runs_counts_for_processes_of_its_owner() {
    use cosched_linux::root::Root;
    use std::os::unix::{fs::chown, process::CommandExt as _};
    let folder = tempdir().expect("a folder");
    let root = Root::default();
    let own = cosched_linux::own_run(&root).expect("this process");
    let parts: Vec<u64> = own
        .split('-')
        .map(|part| part.parse().expect("a number"))
        .collect();
    let dead = format!("{}-{}-{}", parts[0], parts[1] + 1, parts[2]);
    let line = serde_json::json!({
        "schema": "cosched.runs/1", "run_id": dead, "host": cosched_linux::identity::host_name(&root),
        "boot": cosched_linux::identity::boot(&root), "started_at": "2026-01-01T00:00:00Z", "logs": null,
    });
    write(&folder, "J", "");
    write(&folder, "J.runs", &format!("{line}\n"));
    let (one, two) = (2_000_001, 2_000_002);
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000").env("COSCHED_RUN", &dead).uid(one);
    let (given, sleeper) = (
        chown(folder.path().join("J.runs"), Some(two), None),
        sleep.spawn(),
    );
    let (Ok(()), Ok(mut sleeper)) = (given, sleeper) else {
        return eprintln!("skipped, because only root may give files away");
    };
    let words = [
        "run",
        "-q",
        "--joblog",
        "J",
        "--resume",
        "--orphans",
        "kill",
        "--grace",
        "1",
        "--",
        "true",
    ];
    let run = cosched(&folder, &words);
    assert!(
        run.status.success() && err(&run).is_empty(),
        "{}",
        err(&run)
    );
    assert_eq!(
        sleeper.try_wait().expect("a child"),
        None,
        "it is not the list's to name"
    );
    chown(folder.path().join("J.runs"), Some(one), None).expect("root may");
    // It has ended, but for its parent to notice.
    let mut again = command(folder.path(), &words).spawn().expect("it runs");
    until("the sleeper ends", || {
        sleeper.try_wait().expect("a child").is_some()
    });
    again.wait().expect("it ends");
}

/// The list of runs says where the record goes, and it can be somebody else's.
#[test]
fn the_record_of_a_killed_run_goes_into_its_own_folder_alone() {
    use std::os::unix::fs::{chown, symlink};
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--logs", "L", "--joblog", "J", "--", "true"];
    let record = folder.path().join("L/run.json");
    let lose = |with: &str| {
        let _ = std::fs::remove_file(&record);
        write(&folder, "precious", "kept");
        symlink(folder.path().join(with), &record).expect("a link");
    };
    let resume = || {
        let run = cosched(
            &folder,
            &["run", "-q", "--joblog", "J", "--resume", "--", "true"],
        );
        assert!(run.status.success(), "{}", err(&run));
        assert_eq!(read(&folder, "precious"), "kept");
        record.symlink_metadata().expect("it is there").is_file()
    };
    assert!(cosched(&folder, &words).status.success());
    lose("precious");
    assert!(
        resume() && read(&folder, "L/run.json").contains("\"rebuilt\""),
        "the link is replaced"
    );
    let logs = folder.path().join("L");
    lose("precious");
    if chown(&logs, Some(2_000_001), None).is_err() {
        return eprintln!("skipped in part, because only root may give folders away");
    }
    assert!(!resume(), "the folder is somebody else's");
    chown(&logs, Some(0), None).expect("root may");
    // What a later run has put aside, in a folder that is a link.
    std::fs::create_dir(folder.path().join("else")).expect("a folder");
    std::fs::rename(
        logs.join("series.jsonl"),
        folder.path().join("else/series.jsonl"),
    )
    .expect("a file");
    symlink(folder.path().join("else"), logs.join("earlier-1")).expect("a link");
    assert!(!resume());
    assert!(!folder.path().join("else/run.json").exists());
}
