//! Processes that can't be recognised by the mark in their environment: they cleared it, or wrote over it.

use super::support::{
    MixBuilder, Moments, TestRun, cosched, counting, freezers, is_complete, signal, skipped, until,
};
use rustix::process::Signal;
use std::process::Command;

const LINES: u32 = 5;
const MOMENTS: u64 = 4;

/// Traces its own child, which works, and passes the child's signals on.
const TRACER: &str = r#"perl -e '
    my $pid = fork;
    if (!$pid) { syscall(101, 0, 0, 0, 0); exec "sh", "work", "traced" }
    while (waitpid($pid, 0) > 0 && ($? & 255) == 127) {
        my $signal = $? >> 8;
        syscall(101, 7, $pid, 0, $signal == 5 ? 0 : $signal)
    }'"#;

/// Jobs whose processes each write their lines to a file of that name.
fn mix(dir: &std::path::Path, freeze: &str) -> (MixBuilder, Vec<&'static str>) {
    // Without a group nothing tells whose an orphan is that cleared its environment and left its session.
    let clears = if freeze == "cgroup" { "env -i " } else { "" };
    std::fs::write(dir.join("work"), format!("exec > $1; {}", counting(LINES))).unwrap();
    let mut mix = MixBuilder::default()
        .shell("cleared", "timeout 600 env -i sh work cleared")
        .shell("session", "setsid env -i sh work session & wait")
        .shell(
            "both",
            "env -i setsid sh work both & env -i sh work family & wait",
        )
        .shell(
            "orphan",
            &format!("{clears}setsid sh -c \"sh work orphan & exit\"; exec env -i sh work parent"),
        );
    let mut files = vec!["cleared", "session", "both", "family", "orphan", "parent"];
    if Command::new("perl")
        .args(["-e", "exit 0"])
        .status()
        .is_ok_and(|status| status.success())
    {
        // perl writes its new title over its environment.
        mix = mix.shell(
            "title",
            "perl -e '$0 = \"x\" x 20000; system(\"sh work title\")'",
        );
        files.push("title");
        if cfg!(target_arch = "x86_64") {
            mix = mix.shell("tracer", TRACER);
            files.push("traced");
        }
    } else {
        skipped("there is no perl: a program that rewrites its title, and a traced one");
    }
    (mix, files)
}

fn start(freeze: &str) -> (TestRun, Vec<&'static str>) {
    let dir = tempfile::tempdir().unwrap();
    let (mix, files) = mix(dir.path(), freeze);
    (TestRun::start_in(dir, mix, freeze, &["--jobs", "8"]), files)
}

fn complete(run: &TestRun, files: &[&str], all_started: bool) {
    for file in files {
        let text = run.file(file);
        // A job may have been killed before its program began.
        let fine = is_complete(&text, LINES) || (!all_started && text.is_empty());
        assert!(fine, "{file}: {text:?}; the run said:\n{}", run.stderr());
    }
}

#[test]
fn unmarked_processes_are_scheduled() {
    for freeze in freezers() {
        let (mut run, files) = start(freeze);
        until("all have worked for some quanta", || {
            files.iter().all(|file| run.file(file).contains("line 20"))
        });
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        complete(&run, &files, true);
        assert!(
            run.in_folder().is_empty(),
            "waited for: {:?}",
            run.in_folder()
        );
    }
}

#[test]
fn killed_run_leaves_no_unmarked_process_stopped() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let (mut run, files) = start(freeze);
            until("all work", || {
                files.iter().all(|file| run.file(file).contains("line 1"))
            });
            Moments::new(500 + seed).pass(100);
            run.send(Signal::KILL);
            run.code();
            run.all_ended();
            run.nothing_left();
            complete(&run, &files, true);
        }
    }
}

#[test]
fn thaw_finds_unmarked_processes_when_both_were_killed() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let (mut run, files) = start(freeze);
            until("all work", || {
                files.iter().all(|file| run.file(file).contains("line 1"))
            });
            Moments::new(600 + seed).pass(100);
            run.send(Signal::STOP);
            signal(run.guardian().unwrap(), Signal::KILL);
            run.send(Signal::KILL);
            run.code();
            assert!(
                cosched()
                    .args(["thaw", "--run", &run.token])
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
            run.all_ended();
            run.nothing_left_to_thaw();
            complete(&run, &files, true);
        }
    }
}
