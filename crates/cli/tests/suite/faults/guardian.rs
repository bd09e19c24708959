//! Guardians that somebody stops, and groups that somebody takes from a run.

use super::support::{
    MixBuilder, TestRun, all_named, cosched, counting, freezers, own_group, seen, signal, until,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use std::path::PathBuf;

const JOBS: u32 = 4;
const LINES: u32 = 20;

fn start(freeze: &str) -> TestRun {
    TestRun::start(
        MixBuilder::default().counting(JOBS, LINES),
        freeze,
        &["--jobs", "4"],
    )
}

/// One that could be continued later would take the run for dead.
#[test]
fn stopped_guardian_is_replaced_for_good() {
    for freeze in freezers() {
        let mut run = start(freeze);
        run.until_marked(JOBS as usize);
        let old = run.guardian().unwrap();
        signal(old, Signal::STOP);
        until("another guardian", || {
            run.guardian().is_some_and(|new| new != old)
        });
        assert!(
            seen(old).is_none_or(|process| process.parent != run.pid),
            "the old one is gone"
        );
        signal(old, Signal::CONT);
        let whole = run.group().filter(|_| freeze == "cgroup");
        // A run removes its group when all jobs have ended.
        let is_whole = whole.is_none_or(|group| group.exists());
        assert!(
            is_whole || run.marked().is_empty(),
            "the group went before the jobs"
        );
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(
            run.stderr().contains("was gone and was replaced"),
            "{}",
            run.stderr()
        );
        run.nothing_left();
        run.logs_complete(JOBS, LINES, true);
    }
}

/// Where none can be started, the run tries again until one can, while it is paused too.
#[test]
fn a_guardian_that_can_not_be_replaced_is_replaced_later() {
    let pause = |run: &TestRun, pause: &str| {
        let pid = run.pid.to_string();
        // A run takes requests a moment after its jobs have begun.
        until("the run takes requests", || {
            let set = cosched().args(["set", &pid, pause]).status();
            set.unwrap().success()
        });
    };
    let waiting = "echo begun >> begun; while [ ! -e go ]; do sleep 0.01; done";
    for freeze in freezers() {
        let more = ["--jobs", "2", "--policy", "linux"];
        let mut run = TestRun::start(
            MixBuilder::default().copies("wait", 2, waiting),
            freeze,
            &more,
        );
        until("both jobs have begun", || {
            run.file("begun").lines().count() == 2
        });
        pause(&run, "pause=on");
        until("it is paused", || {
            run.stderr().contains("all jobs are paused")
        });
        let old = run.guardian().unwrap();
        let most = getrlimit(Resource::Nofile).maximum;
        let allow = |files| {
            let limit = Rlimit {
                current: files,
                maximum: most,
            };
            prlimit(Pid::from_raw(run.pid), Resource::Nofile, limit).unwrap();
        };
        allow(Some(3));
        signal(old, Signal::KILL);
        until("the run tells that there is none", || {
            run.stderr().contains("no guardian (")
        });
        allow(most);
        until("another guardian", || {
            run.guardian().is_some_and(|new| new != old)
        });
        until("the run tells of it", || {
            run.stderr().contains("was gone and was replaced")
        });
        assert_eq!(
            run.stderr().matches("no guardian (").count(),
            1,
            "{}",
            run.stderr()
        );
        pause(&run, "pause=off");
        std::fs::write(run.dir.path().join("go"), "").unwrap();
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
    }
}

/// The run can't replace it any more: thaw frees the jobs and continues the guardian, which then ends with them.
#[test]
fn stopped_guardian_of_a_killed_run_does_no_harm() {
    for freeze in freezers() {
        let mut run = start(freeze);
        run.until_marked(JOBS as usize);
        run.send(Signal::STOP);
        let guardian = run.guardian().unwrap();
        signal(guardian, Signal::STOP);
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
        run.nothing_stopped();
        until("all end", || run.marked().is_empty());
        until("the guardian ends", || {
            !all_named("run-guardian")
                .iter()
                .any(|process| process.pid == guardian)
        });
        run.nothing_left_to_thaw();
        run.logs_complete(JOBS, LINES, false);
    }
}

/// The guardian is in the list of no job, and it ends when the last job has.
#[test]
fn guardian_of_a_killed_run_ends_with_the_jobs() {
    for freeze in freezers() {
        let mut run = start(freeze);
        run.until_marked(JOBS as usize);
        let guardian = run.guardian().unwrap();
        run.send(Signal::KILL);
        run.code();
        run.nothing_left();
        until("the guardian ends", || {
            !all_named("run-guardian")
                .iter()
                .any(|process| process.pid == guardian)
        });
    }
}

fn job_groups(run: &TestRun) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.group().unwrap())
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Moves every process out of the groups of a run's jobs; with `remove` also removes the groups.
fn take_away(run: &TestRun, remove: bool) {
    for group in job_groups(run) {
        let _ = std::fs::write(group.join("cgroup.freeze"), "0");
        for pid in std::fs::read_to_string(group.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = std::fs::write(own_group().unwrap().join("cgroup.procs"), pid);
        }
        if remove {
            until("the group can be removed", || {
                std::fs::remove_dir(&group).is_ok() || !group.exists()
            });
        }
    }
}

#[test]
fn jobs_whose_groups_were_taken_away_go_on() {
    if !freezers().contains(&"cgroup") {
        return;
    }
    for remove in [false, true] {
        let family = format!("({}) & wait", counting(LINES));
        let mix = MixBuilder::default().copies("count", JOBS, &family);
        let mut run = TestRun::start(mix, "cgroup", &["--jobs", "4"]);
        run.until_marked(2 * JOBS as usize);
        take_away(&run, remove);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(JOBS, LINES, true);
    }
}

#[test]
fn jobs_whose_groups_were_taken_away_can_be_ended() {
    if !freezers().contains(&"cgroup") {
        return;
    }
    for remove in [false, true] {
        let deaf = "trap '' TERM INT; (while :; do :; done) & echo deaf; while :; do :; done";
        let mix = MixBuilder::default().copies("deaf", 2, deaf);
        let mut run = TestRun::start(
            mix,
            "cgroup",
            &["--jobs", "2", "--grace", "1h", "--policy", "linux"],
        );
        until("all are deaf", || {
            (1..=2).all(|n| run.output(&format!("deaf-{n}")).contains("deaf"))
        });
        take_away(&run, remove);
        run.send(Signal::INT);
        until("the first was heard", || {
            run.stderr().contains("no more jobs are started")
        });
        run.send(Signal::INT);
        assert_eq!(run.code(), Some(130), "{}", run.stderr());
        run.nothing_left();
    }
}
