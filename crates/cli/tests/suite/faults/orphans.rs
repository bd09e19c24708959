//! Jobs that run on although their run was killed: they are listed, and ended if asked.

use super::support::{MixBuilder, TestRun, cosched, freezers, signal, until};
use crate::common::runs_dir;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

/// A run that was killed with its guardian, or alone, with jobs that never end.
fn killed(freeze: &str, guardian_too: bool) -> TestRun {
    let mix = MixBuilder::default()
        .shell("plain", "touch plain; while :; do sleep 0.01; done")
        .shell(
            "cleared",
            "exec env -i sh -c \"touch cleared; while :; do sleep 0.01; done\"",
        );
    killed_with(mix, &["cleared", "plain"], freeze, guardian_too)
}

/// The same with one more job, which ignores SIGTERM. It takes the grace of `thaw --kill` to end it.
fn killed_with_a_deaf_job(freeze: &str) -> TestRun {
    let deaf = "trap \"\" TERM; touch deaf; (while :; do sleep 0.01; done) & wait; wait";
    let mix = MixBuilder::default().shell("deaf", deaf);
    killed_with(mix, &["deaf"], freeze, false)
}

/// Kills a run once each of these jobs has made a file of its name.
fn killed_with(mix: MixBuilder, jobs: &[&str], freeze: &str, guardian_too: bool) -> TestRun {
    let mut run = TestRun::start(mix, freeze, &["--jobs", "2"]);
    until("all jobs run", || {
        jobs.iter().all(|job| run.dir.path().join(job).exists())
    });
    run.send(Signal::STOP);
    if guardian_too {
        signal(run.guardian().unwrap(), Signal::KILL);
    }
    run.send(Signal::KILL);
    run.code();
    run
}

#[test]
fn orphans_are_listed_and_ended() {
    for freeze in freezers() {
        check_listed_and_ended(&killed(freeze, false), &["cleared", "plain"]);
        check_listed_and_ended(&killed(freeze, true), &["cleared", "plain"]);
    }
}

#[test]
fn orphans_that_ignore_sigterm_are_killed() {
    // At once: each takes the whole grace of `thaw --kill`.
    std::thread::scope(|scope| {
        for freeze in freezers() {
            scope.spawn(move || check_listed_and_ended(&killed_with_a_deaf_job(freeze), &["deaf"]));
        }
    });
}

fn check_listed_and_ended(run: &TestRun, jobs: &[&str]) {
    let listed = cosched()
        .args(["thaw", "--run", &run.token, "--format", "json"])
        .output()
        .unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let of_run = |answer: &serde_json::Value, key: &str| -> Vec<String> {
        let jobs = answer[key]
            .as_array()
            .unwrap()
            .iter()
            .filter(|job| job["run"] == run.token.as_str());
        jobs.map(|job| job["job"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(of_run(&answer, "orphans"), jobs, "{answer}");
    let doctor = cosched().arg("doctor").output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        doctor.contains("jobs of killed runs") && doctor.contains(&run.token),
        "{doctor}"
    );
    assert!(!run.in_folder().is_empty());
    let ended = cosched()
        .args(["thaw", "--kill", "--run", &run.token, "--format", "json"])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let answer: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(of_run(&answer, "ended"), jobs, "{answer}");
    assert!(of_run(&answer, "orphans").is_empty(), "{answer}");
    run.all_ended();
    run.nothing_left_to_thaw();
    let file = runs_dir().join(format!("cosched-cpus/cpus-{}", run.token));
    assert!(!file.exists(), "{} is left", file.display());
}

/// Jobs of others may be among them, whose owners know nothing of this call.
#[test]
fn what_was_not_named_is_ended_by_nobody_who_was_not_asked() {
    let run = killed("signals", false);
    let killer = || {
        let mut command = cosched();
        command.args(["thaw", "--kill"]).stdin(Stdio::null());
        command
    };
    let asked = killer().output().unwrap();
    let told = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(2), "{told}");
    assert!(told.contains("nothing was ended"), "{told}");
    assert!(told.contains(&format!(" --run {}", run.token)), "{told}");
    let listed = String::from_utf8_lossy(&asked.stdout);
    assert!(
        listed.contains(&format!("plain of run {}", run.token)),
        "{listed}"
    );
    let (mut user, terminal) = terminal();
    let mut refused = killer()
        .stdin(terminal.try_clone().unwrap())
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .unwrap();
    user.write_all(b"n\n").unwrap();
    assert_eq!(refused.wait().unwrap().code(), Some(1));
    let left = cosched()
        .args(["thaw", "--run", &run.token])
        .output()
        .unwrap();
    let left = String::from_utf8_lossy(&left.stdout);
    assert!(
        left.contains("cleared of run") && left.contains("plain of run"),
        "{left}"
    );
    let named = ["thaw", "--kill", "--run", &run.token];
    assert!(cosched().args(named).output().unwrap().status.success());
    run.all_ended();
    run.nothing_left_to_thaw();
}

/// A terminal: the user's end and the program's.
fn terminal() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let user = openpt(flags).unwrap();
    grantpt(&user).and_then(|()| unlockpt(&user)).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let other = open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (user.into(), other.into())
}

/// `cosched doctor` frees nothing, so it sees what stands still.
#[test]
fn doctor_says_which_orphans_stand_still() {
    for freeze in freezers() {
        let attempt = || {
            let run = killed(freeze, true);
            let state = match run.group().filter(|_| freeze == "cgroup") {
                Some(group) => {
                    std::fs::write(group.join("cgroup.freeze"), "1").unwrap();
                    ": frozen"
                }
                None => {
                    until("they stand still", || {
                        run.in_folder()
                            .iter()
                            .for_each(|process| signal(process.pid, Signal::STOP));
                        run.in_folder().iter().any(|process| process.state == 'T')
                    });
                    ": stopped"
                }
            };
            let doctor = cosched().arg("doctor").output().unwrap();
            let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
            let told = doctor
                .lines()
                .any(|line| line.contains(&run.token) && line.ends_with(state));
            let ended = ["thaw", "--kill", "--run", &run.token, "--format", "json"];
            let ended = cosched().args(ended).output().unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
            assert!(
                answer["ended"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|job| job["state"] == "runs"),
                "thawed before: {answer}"
            );
            run.nothing_left_to_thaw();
            told
        };
        // Other runs start at the same time, and each of them frees what dead runs left.
        assert!((0..50).any(|_| attempt()), "{freeze}");
    }
}
