//! What a run gets from its caller: signals that the caller ignored, or that are no end, and a group that was killed before.
//! None of it ends a run or a job.

use super::support::{MixBuilder, TestRun, freezers, own_group, skipped};
use rustix::process::Signal;
use std::path::PathBuf;

const LINES: u32 = 20;

/// Starts by a shell that ignores these signals.
fn start(ignored: &str, mix: MixBuilder, freeze: &str) -> TestRun {
    let by = format!("trap '' {ignored}; exec \"$0\" \"$@\"");
    TestRun::start_by(
        &["sh", "-c", &by],
        tempfile::tempdir().unwrap(),
        mix,
        freeze,
        &["--jobs", "4"],
    )
}

#[test]
fn ends_are_noticed_where_the_caller_ignores_them() {
    for freeze in freezers() {
        let mut run = start(
            "CHLD",
            MixBuilder::default()
                .counting(4, LINES)
                .shell("waits", "sleep 0.05 & wait; echo end"),
            freeze,
        );
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert_eq!(run.output("waits"), "end\n");
        run.nothing_left();
        run.logs_complete(4, LINES, true);
    }
}

/// As under `nohup`, and for commands that a script starts in the background.
#[test]
fn ignored_signals_stay_ignored() {
    for freeze in freezers() {
        let mix = MixBuilder::default()
            .counting(3, LINES)
            .shell("ignores", "grep SigIgn /proc/self/status");
        let mut run = start("HUP INT", mix, freeze);
        run.until_marked(3);
        run.send(Signal::HUP);
        run.send(Signal::INT);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(3, LINES, true);
        let line = run.output("ignores");
        let ignored = u64::from_str_radix(line.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        // Signals above 31 are the C library's.
        assert_eq!(
            ignored & 0x7fff_ffff,
            0b11,
            "signals 1 and 2, and no other: {line}"
        );
    }
}

/// Removes a group when it is dropped.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// As of a unit that was killed and started again. Some kernels kill all that is created in groups below it.
#[test]
fn jobs_run_in_a_group_that_was_killed_before() {
    if !freezers().contains(&"cgroup") {
        return;
    }
    let name = format!("test-killed-{}", std::process::id());
    let group = Group(own_group().unwrap().join(name));
    std::fs::create_dir(&group.0).unwrap();
    if std::fs::write(group.0.join("cgroup.kill"), "1").is_err() {
        return skipped("the kernel has no cgroup.kill");
    }
    let procs = group.0.join("cgroup.procs");
    let by = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
    let mix = MixBuilder::default()
        .counting(3, LINES)
        .shell("shows", "cat /proc/self/cgroup");
    let dir = tempfile::tempdir().unwrap();
    let mut run = TestRun::start_by(&["sh", "-c", &by], dir, mix, "cgroup", &["--jobs", "4"]);
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    let shown = run.output("shows");
    let own = format!("/cosched-{}/job3\n", run.token);
    assert!(shown.contains(&own), "{shown}");
    run.logs_complete(3, LINES, true);
}

#[test]
fn signals_without_a_meaning_are_survived() {
    for freeze in freezers() {
        let mut run = TestRun::start(
            MixBuilder::default().counting(4, LINES),
            freeze,
            &["--jobs", "4"],
        );
        run.until_marked(1);
        for signal in [
            Signal::USR1,
            Signal::XFSZ,
            Signal::ALARM,
            Signal::VTALARM,
            Signal::PROF,
            Signal::IO,
        ] {
            run.send(signal);
        }
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(4, LINES, true);
    }
}
