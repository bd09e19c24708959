//! `kill -9` of the run, of its guardian, and of both, at moments chosen by a seed.

use super::support::{MixBuilder, Moments, TestRun, cosched, freezers, signal, until};
use rustix::process::Signal;

const JOBS: u32 = 4;
const LINES: u32 = 20;
const MOMENTS: u64 = 5;

fn start(freeze: &str) -> TestRun {
    TestRun::start(
        MixBuilder::default().counting(JOBS, LINES),
        freeze,
        &["--jobs", "4"],
    )
}

/// Passes a part of the run's life, or all of it: its jobs end by themselves.
fn pass_some_of(run: &TestRun, seed: u64) {
    run.until_marked(1);
    run.finish();
    Moments::new(seed).pass(100);
}

#[test]
fn killed_run_leaves_nothing_frozen() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let mut run = start(freeze);
            pass_some_of(&run, seed);
            run.send(Signal::KILL);
            run.code();
            run.nothing_left();
            run.logs_complete(JOBS, LINES, false);
        }
    }
}

/// Both before and after the guardian and the signals are set up.
#[test]
fn killed_while_it_starts() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let mut run = start(freeze);
            Moments::new(100 + seed).pass(60);
            run.send(Signal::KILL);
            run.code();
            // A run killed between making its group and having a guardian leaves an empty group until the next start.
            assert!(
                cosched()
                    .args(["thaw", "--run", &run.token])
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            run.nothing_left();
            run.logs_complete(JOBS, LINES, false);
        }
    }
}

#[test]
fn killed_guardian_is_replaced() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let mut run = start(freeze);
            run.until_marked(1);
            Moments::new(200 + seed).pass(100);
            let Some(old) = run.guardian() else {
                panic!("there is no guardian; it said:\n{}", run.stderr())
            };
            signal(old, Signal::KILL);
            until("another guardian", || {
                run.has_ended() || run.guardian().is_some_and(|new| new != old)
            });
            assert_eq!(run.code(), Some(0), "{}", run.stderr());
            assert!(
                run.stderr().contains("the guardian was gone"),
                "{}",
                run.stderr()
            );
            run.nothing_left();
            run.logs_complete(JOBS, LINES, true);
        }
    }
}

/// The new guardian does the work of the old one.
#[test]
fn replaced_guardian_frees_all() {
    for freeze in freezers() {
        let mut run = start(freeze);
        run.until_marked(JOBS as usize);
        let old = run.guardian().unwrap();
        signal(old, Signal::KILL);
        until("another guardian", || {
            run.guardian().is_some_and(|new| new != old)
        });
        run.send(Signal::KILL);
        run.code();
        run.nothing_left();
        run.logs_complete(JOBS, LINES, false);
    }
}

#[test]
fn stopped_guardian_holds_nothing_up() {
    for freeze in freezers() {
        let mut run = start(freeze);
        run.until_marked(1);
        signal(run.guardian().unwrap(), Signal::STOP);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(JOBS, LINES, true);
    }
}

/// Neither can act for the other: the run is stopped while its guardian is killed.
fn kill_both(run: &mut TestRun) {
    // A guardian that has not had a CPU yet still has the name of its run.
    until("the guardian has its name", || {
        run.guardian().is_some() || run.has_ended()
    });
    run.send(Signal::STOP);
    match run.guardian() {
        Some(guardian) => signal(guardian, Signal::KILL),
        // The run may have ended before the chosen moment.
        None => assert!(
            run.has_ended(),
            "there is no guardian; it said:\n{}",
            run.stderr()
        ),
    }
    run.send(Signal::KILL);
    run.code();
}

#[test]
fn both_killed_jobs_stopped_by_signals_go_on() {
    for seed in 0..MOMENTS {
        let mut run = start("signals");
        pass_some_of(&run, 300 + seed);
        kill_both(&mut run);
        // Each job is one process here, so the parent-death signal is enough.
        run.nothing_stopped();
        run.nothing_left_to_thaw();
        run.logs_complete(JOBS, LINES, false);
    }
}

/// The parent-death signal does not reach frozen groups and processes that a job has started.
#[test]
fn both_killed_is_mended_by_thaw_and_by_the_next_start() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let family = format!("({}) & wait", super::support::counting(LINES));
            let mut run = TestRun::start(
                MixBuilder::default().copies("count", JOBS, &family),
                freeze,
                &["--jobs", "4"],
            );
            pass_some_of(&run, 400 + seed);
            kill_both(&mut run);
            let next: &[&str] = if seed % 2 == 0 {
                &["thaw", "--run", &run.token]
            } else {
                &["run", "--logs", "next", "--", "true"]
            };
            let mended = cosched()
                .args(next)
                .current_dir(run.dir.path())
                .output()
                .unwrap();
            assert!(mended.status.success(), "{mended:?}");
            run.nothing_left_to_thaw();
            run.logs_complete(JOBS, LINES, false);
        }
    }
}
