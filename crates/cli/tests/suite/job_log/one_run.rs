//! A job log and a file of events belong to one run at a time.

use crate::common::{command, cosched, ended, err, read, until, write};
use std::process::Stdio;
use tempfile::tempdir;

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
