//! `--resume`: which jobs are done, and which run again.

use crate::common::{command, cosched, err, out, read, until, write};
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
