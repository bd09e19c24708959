//! Groups below the groups of jobs: of runs among the jobs, and of jobs that make groups of their own.

use super::support::{
    COSCHED, MixBuilder, Moments, TestRun, cosched, counting, freezers, is_complete, own_group,
    signal, until,
};
use rustix::process::Signal;
use std::time::Duration;

const LINES: u32 = 5;
const MOMENTS: u64 = 3;

/// The job moves into a group that it makes below its own; `$own` is its own group.
fn into_subgroup() -> String {
    let top = own_group().unwrap();
    let path = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = path
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap();
    let mount = top
        .to_str()
        .unwrap()
        .strip_suffix(path)
        .unwrap()
        .trim_end_matches('/');
    format!(
        "own={mount}$(sed -n s/^0:://p /proc/self/cgroup); mkdir -p $own/sub/deep; echo $$ > $own/sub/deep/cgroup.procs; "
    )
}

fn has_cgroups() -> bool {
    freezers().contains(&"cgroup")
}

#[test]
fn all_of_a_run_in_a_run_is_killed_and_mended() {
    for freeze in freezers() {
        for seed in 0..MOMENTS {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(
                dir.path().join("work"),
                format!("exec > $1; {}", counting(LINES)),
            )
            .unwrap();
            let inner = format!(
                "exec {COSCHED} run --logs inner --freeze {freeze} --policy round-robin --param quantum_s=0.02 --jobs 4 \
                 -- sh -c 'sh work inner-{{}} & wait' ::: 1 2 3 4"
            );
            let mix = MixBuilder::default()
                .shell("inner", &inner)
                .counting(3, LINES);
            let mut run = TestRun::start_in(dir, mix, freeze, &["--jobs", "4"]);
            let files = ["inner-1", "inner-2", "inner-3", "inner-4"];
            until("the inner jobs work", || {
                files.iter().all(|file| run.file(file).contains("line 1"))
            });
            // A job that is being started waits for its run, which is about to be stopped.
            let outer = ["count-1", "count-2", "count-3"];
            until("the outer jobs work", || {
                outer.iter().all(|job| run.output(job).contains("line 1"))
            });
            // A guardian that has not had a CPU yet still has the name of its run.
            until("the guardians have their names", || {
                let runs = run.named("cosched");
                let guardians = super::support::all_named("run-guardian");
                let own = guardians.iter().filter(|one| runs.contains(&one.parent));
                runs.len() == 2 && own.count() == 2
            });
            Moments::new(700 + seed).pass(100);
            let others = || -> Vec<i32> {
                run.named("cosched")
                    .into_iter()
                    .filter(|&pid| pid != run.pid)
                    .collect()
            };
            let mut inner = Vec::new();
            let mut guardians = Vec::new();
            // What a run has just forked still has its name. If it is frozen then, only its run can let it go on.
            until(
                "only the inner run has that name, and both have guardians",
                || {
                    run.send(Signal::STOP);
                    for _ in 0..100 {
                        inner = others();
                        guardians = super::support::all_named("run-guardian");
                        guardians
                            .retain(|one| one.parent == run.pid || inner.contains(&one.parent));
                        if inner.len() == 1 && guardians.len() == 2 {
                            return true;
                        }
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    run.send(Signal::CONT);
                    false
                },
            );
            let guardians: Vec<i32> = guardians.iter().map(|process| process.pid).collect();
            inner.iter().for_each(|&pid| signal(pid, Signal::STOP));
            guardians
                .iter()
                .chain(&inner)
                .for_each(|&pid| signal(pid, Signal::KILL));
            run.send(Signal::KILL);
            run.code();
            let next: &[&str] = if seed % 2 == 0 {
                &["thaw"]
            } else {
                &["run", "--logs", "next", "--", "true"]
            };
            let mended = cosched()
                .args(next)
                .current_dir(run.dir.path())
                .output()
                .unwrap();
            assert!(mended.status.success(), "{mended:?}");
            run.all_ended();
            run.nothing_left_to_thaw();
            for file in files {
                assert!(
                    is_complete(&run.file(file), LINES),
                    "{file}: {:?}",
                    run.file(file)
                );
            }
        }
    }
}

#[test]
fn subgroups_of_jobs_are_removed_and_their_processes_waited_for() {
    if !has_cgroups() {
        return;
    }
    let moves = format!("{}({}) & exit 0", into_subgroup(), counting(LINES));
    let mix = MixBuilder::default()
        .shell("moves", &moves)
        .counting(3, LINES);
    let mut run = TestRun::start(mix, "cgroup", &["--jobs", "4"]);
    until("it has worked for some quanta", || {
        run.output("moves").contains("line 20")
    });
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert!(
        is_complete(&run.output("moves"), LINES),
        "{:?}",
        run.output("moves")
    );
    run.nothing_left();
    run.logs_complete(3, LINES, true);
}

#[test]
fn jobs_with_subgroups_are_started_again() {
    if !has_cgroups() {
        return;
    }
    let brief = format!("{}echo again >> $0.runs", into_subgroup());
    let dir = tempfile::tempdir().unwrap();
    let mix = MixBuilder::default()
        .top("restart = \"until-last\"")
        .shell("brief", &brief)
        .counting(1, LINES);
    let mut run = TestRun::start_in(dir, mix, "cgroup", &["--jobs", "2"]);
    until("it is started again", || {
        run.file("sh.runs").lines().count() > 1
    });
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert!(!run.stderr().contains("File exists"), "{}", run.stderr());
    run.nothing_left();
}

#[test]
fn processes_in_subgroups_hear_the_term_signal() {
    if !has_cgroups() {
        return;
    }
    let traps = format!(
        "{}trap 'echo ended; exit 3' TERM; echo ready; while :; do :; done",
        into_subgroup()
    );
    let mix = MixBuilder::default().copies("traps", 4, &traps);
    let mut run = TestRun::start(mix, "cgroup", &["--jobs", "4", "--grace", "50s"]);
    let each = |run: &TestRun, word: &str| {
        (1..=4).all(|n| run.output(&format!("traps-{n}")).contains(word))
    };
    until("all traps are set", || each(&run, "ready"));
    run.send(Signal::TERM);
    assert_eq!(run.code(), Some(143), "{}", run.stderr());
    assert!(each(&run, "ended"), "{}", run.stderr());
    run.nothing_left();
}

#[test]
fn killed_run_leaves_no_subgroup() {
    if !has_cgroups() {
        return;
    }
    for seed in 0..MOMENTS {
        let moves = format!("{}{}", into_subgroup(), counting(LINES));
        let mut run = TestRun::start(
            MixBuilder::default().copies("count", 4, &moves),
            "cgroup",
            &["--jobs", "4"],
        );
        run.until_marked(4);
        Moments::new(800 + seed).pass(100);
        run.send(Signal::KILL);
        run.code();
        run.nothing_left();
        run.logs_complete(4, LINES, false);
    }
}
