//! Signals from the user: Ctrl-C once and twice, SIGTERM, Ctrl-Z and fg.

use super::support::{MixBuilder, TestRun, freezers, seen, until};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::process::Signal;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

const JOBS: u32 = 4;
const LINES: u32 = 20;
/// A job that never ends by itself within a test.
const ENDLESS: &str = "trap 'echo ended; exit 3' TERM; : > ready.$$; while :; do :; done";
/// The number of jobs that have set their traps.
fn ready(run: &TestRun) -> usize {
    let files = std::fs::read_dir(run.dir.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("ready."))
        .count()
}

/// A job that ignores SIGTERM.
const DEAF: &str = "trap '' TERM INT HUP; echo deaf; while :; do :; done";

#[test]
fn one_signal_ends_the_jobs() {
    for freeze in freezers() {
        for (what, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            let mut run = TestRun::start(
                MixBuilder::default().copies("endless", JOBS, ENDLESS),
                freeze,
                &["--jobs", "4"],
            );
            until("all traps", || ready(&run) == JOBS as usize);
            run.send(what);
            assert_eq!(run.code(), Some(code), "{}", run.stderr());
            assert_eq!(run.stdout(), "ended\n".repeat(JOBS as usize));
            let told = run.stderr();
            let summary = format!("0 succeeded, {JOBS} interrupted in ");
            assert!(told.contains(&summary), "{told}");
            assert!(!told.contains("[4/4]"), "the user ended them: {told}");
            run.nothing_left();
        }
    }
}

/// A pipe with the name of the run's error output, so full that the run waits at its first message.
fn full_pipe(folder: &Path) -> File {
    let path = folder.join("stderr");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let mut pipe = File::from(open(&path, flags, Mode::empty()).unwrap());
    while pipe.write(&[b'.'; 4096]).is_ok() {}
    pipe
}

/// Empties a pipe and adds what was in it to a text.
fn drain(pipe: &mut File, text: &mut String) {
    let mut bytes = Vec::new();
    let end = pipe.read_to_end(&mut bytes).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::WouldBlock);
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// The run has its log folder and its job log by then, and neither a group nor a process beside it.
#[test]
fn a_signal_before_the_first_job_ends_the_run_in_order() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let mut pipe = full_pipe(dir.path());
        // The warning that this policy uses no weights is the first message.
        let mix = MixBuilder::default().shell("one", ENDLESS);
        let mut run = TestRun::start_in(dir, mix.weigh(2), freeze, &["--policy", "fifo"]);
        until("there is a job log", || !run.file("logs/joblog").is_empty());
        run.send(Signal::TERM);
        let mut told = String::new();
        until("the run has ended", || {
            drain(&mut pipe, &mut told);
            run.has_ended()
        });
        drain(&mut pipe, &mut told);
        let told = told.trim_start_matches('.');
        assert_eq!(run.code(), Some(143), "{told}");
        assert!(told.contains("no more jobs are started"), "{told}");
        let record = serde_json::from_str::<serde_json::Value>(&run.file("logs/run.json")).unwrap();
        assert_eq!(record["finished_by"], "signal", "{told}");
        run.nothing_left();
    }
}

/// A stopped job that is killed without being continued could not do this.
#[test]
fn frozen_jobs_hear_the_term_signal() {
    for freeze in freezers() {
        let traps = format!(
            "trap 'echo ended; exit 3' TERM; echo ready; {}",
            "while :; do :; done"
        );
        let mut run = TestRun::start(
            MixBuilder::default().copies("traps", JOBS, &traps),
            freeze,
            &["--jobs", "4", "--grace", "50s"],
        );
        let each = |run: &TestRun, word: &str| {
            (1..=JOBS).all(|n| run.output(&format!("traps-{n}")).contains(word))
        };
        until("all traps are set", || each(&run, "ready"));
        run.send(Signal::TERM);
        assert_eq!(run.code(), Some(143), "{}", run.stderr());
        assert!(each(&run, "ended"), "{}", run.stderr());
        run.nothing_left();
    }
}

#[test]
fn deaf_jobs_are_killed_after_the_grace_period() {
    for freeze in freezers() {
        let mix = MixBuilder::default().copies("deaf", JOBS, DEAF);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4", "--grace", "0.2"]);
        until("all are deaf", || {
            (1..=JOBS).all(|n| run.output(&format!("deaf-{n}")).contains("deaf"))
        });
        run.send(Signal::TERM);
        assert_eq!(run.code(), Some(143), "{}", run.stderr());
        run.nothing_left();
    }
}

#[test]
fn second_signal_kills_at_once() {
    for freeze in freezers() {
        let mix = MixBuilder::default().copies("deaf", JOBS, DEAF);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4", "--grace", "1h"]);
        until("all are deaf", || {
            (1..=JOBS).all(|n| run.output(&format!("deaf-{n}")).contains("deaf"))
        });
        run.send(Signal::INT);
        // The kernel merges two pending signals of one kind.
        until("the first was heard", || {
            run.stderr().contains("no more jobs are started")
        });
        run.send(Signal::INT);
        assert_eq!(run.code(), Some(130), "{}", run.stderr());
        run.nothing_left();
    }
}

#[test]
fn ctrl_z_stands_still_and_fg_goes_on() {
    for freeze in freezers() {
        let family = format!("({}) & wait", super::support::counting(LINES));
        let mix = MixBuilder::default()
            .counting(JOBS, LINES)
            .shell("family", &family);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "5"]);
        run.until_marked(JOBS as usize);
        for _ in 0..2 {
            run.send(Signal::TSTP);
            let stands = || seen(run.pid).is_none_or(|own| own.state == 'T' || own.state == 'Z');
            until("the run stands still", stands);
            let cpu = || {
                run.marked()
                    .iter()
                    .map(|process| process.cpu_ticks)
                    .sum::<u64>()
            };
            // Frozen groups stop a short time after the request; then they use no CPU time at all.
            until("the jobs stand still", || {
                let before = cpu();
                std::thread::sleep(std::time::Duration::from_millis(150));
                cpu() == before
            });
            if freeze == "signals" {
                assert!(
                    run.marked().iter().all(|process| process.state == 'T'),
                    "{:?}",
                    run.marked()
                );
            }
            run.send(Signal::CONT);
        }
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(!run.stderr().contains("stopped itself"), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(JOBS, LINES, true);
    }
}

#[test]
fn killed_while_suspended() {
    for freeze in freezers() {
        let mut run = TestRun::start(
            MixBuilder::default().counting(JOBS, LINES),
            freeze,
            &["--jobs", "4"],
        );
        run.until_marked(JOBS as usize);
        run.send(Signal::TSTP);
        until("the run stands still", || {
            seen(run.pid).is_none_or(|own| own.state == 'T' || own.state == 'Z')
        });
        run.send(Signal::KILL);
        run.code();
        run.nothing_left();
        run.logs_complete(JOBS, LINES, false);
    }
}
