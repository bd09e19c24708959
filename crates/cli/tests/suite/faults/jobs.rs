//! Jobs that misbehave.

use super::support::{MixBuilder, TestRun, counting, freezers, is_complete, seen, signal, until};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;

const LINES: u32 = 20;

#[test]
fn forked_children_are_frozen_and_freed() {
    for freeze in freezers() {
        let family = format!(
            "for n in 1 2 3; do ({}) > kid-$n & done; wait; {}",
            counting(LINES),
            counting(LINES)
        );
        let mix = MixBuilder::default()
            .counting(3, LINES)
            .shell("family", &family);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(3, LINES, true);
        assert!(is_complete(&run.output("family"), LINES));
        for kid in ["kid-1", "kid-2", "kid-3"] {
            let text = std::fs::read_to_string(run.dir.path().join(kid)).unwrap();
            assert!(is_complete(&text, LINES), "{kid}: {text:?}");
        }
    }
}

/// Processes that left their session, fork all the time there, or were orphaned there: none of them runs while the run
/// is suspended, and all of them go on afterwards.
#[test]
fn processes_that_leave_their_session_are_frozen_and_freed() {
    for freeze in freezers() {
        let leaves = format!("setsid sh -c '{}' > left & wait", counting(LINES));
        let storm = "setsid sh -c 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); /bin/true & (:); done; wait; echo end'";
        let orphan = format!(
            "setsid sh -c '({}) > orphan & exit'; wait; {}",
            counting(LINES),
            counting(LINES)
        );
        let mix = MixBuilder::default()
            .shell("leaves", &leaves)
            .shell("storm", &format!("{storm} > storm & wait"))
            .shell("orphans", &orphan)
            .counting(2, LINES);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "5"]);
        let left = || {
            run.marked()
                .iter()
                .filter(|process| process.pid == process.session)
                .count()
                > 5
        };
        until("a process has left its session", left);
        for _ in 0..3 {
            run.send(Signal::TSTP);
            until("the run stands still", || {
                seen(run.pid).is_none_or(|own| own.state == 'T' || own.state == 'Z')
            });
            let cpu = || {
                run.marked()
                    .iter()
                    .map(|process| (process.pid, process.cpu_ticks))
                    .collect::<Vec<_>>()
            };
            // A frozen group stops a short time after the request.
            until("the jobs stand still", || {
                let before = cpu();
                std::thread::sleep(std::time::Duration::from_millis(50));
                cpu() == before
            });
            if freeze == "signals" {
                // A parent in state D waits for a stopped child that has not executed its program yet.
                let marked = run.marked();
                assert!(
                    marked.iter().all(|process| "TD".contains(process.state)),
                    "{marked:?}"
                );
            }
            run.send(Signal::CONT);
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(2, LINES, true);
        for file in ["left", "orphan"] {
            let text = std::fs::read_to_string(run.dir.path().join(file)).unwrap();
            assert!(is_complete(&text, LINES), "{file}: {text:?}");
        }
        assert_eq!(
            std::fs::read_to_string(run.dir.path().join("storm")).unwrap(),
            "end\n"
        );
    }
}

#[test]
fn daemons_are_waited_for() {
    for freeze in freezers() {
        let daemon = format!(
            "setsid sh -c '(sleep 0.2; {}) & exit' & wait",
            counting(LINES)
        );
        let mix = MixBuilder::default()
            .counting(3, LINES)
            .shell("daemon", &daemon);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(run.marked().is_empty(), "waited for: {:?}", run.marked());
        assert!(
            run.stderr().contains("its first process has ended"),
            "{}",
            run.stderr()
        );
        assert!(
            is_complete(&run.output("daemon"), LINES),
            "{:?}",
            run.output("daemon")
        );
        run.nothing_left();
        run.logs_complete(3, LINES, true);
    }
}

/// A daemon that forks twice may become an orphan at the very moment at which its job's own process ends. It has a
/// session of its own, and neither an environment nor a file of the job.
#[test]
fn no_daemon_that_forks_twice_is_lost() {
    for freeze in freezers() {
        // Without a group nothing tells whose a daemon is that clears its environment as well.
        let clears = if freeze == "cgroup" { "env -i " } else { "" };
        let daemon = format!(
            "{clears}setsid sh -c \"(sleep 0.1; echo end > \\$0) & exit\" $0-$$ >/dev/null 2>&1"
        );
        let works = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let mix = MixBuilder::default()
            .copies("leaves", 30, &format!("{daemon} & exit"))
            .copies("stays", 30, &format!("{daemon}; {works}"));
        let mut run = TestRun::start(mix, freeze, &["--jobs", "12"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        let files = std::fs::read_dir(run.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let ended = files
            .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text == "end\n"))
            .count();
        assert_eq!(ended, 60, "waited for all; {}", run.stderr());
        run.nothing_left();
    }
}

/// The kernel keeps 15 bytes of a name, which may end within a character.
#[test]
fn names_that_are_cut_inside_a_character_do_no_harm() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["xдлинноеимя", "yдлинноеимя"] {
            std::fs::copy("/bin/sh", dir.path().join(name)).unwrap();
        }
        let work = format!("exec > $1; {}", counting(LINES));
        std::fs::write(dir.path().join("work"), work).unwrap();
        let family = "./yдлинноеимя work kid & setsid ./xдлинноеимя work left & ./xдлинноеимя work own; wait";
        let mut run = TestRun::start_in(
            dir,
            MixBuilder::default()
                .shell("family", family)
                .counting(3, LINES),
            freeze,
            &["--jobs", "4"],
        );
        until("they work", || {
            ["kid", "left", "own"]
                .iter()
                .all(|file| run.file(file).contains("line 1"))
        });
        if freeze == "cgroup" {
            assert_eq!(run.code(), Some(0), "{}", run.stderr());
        } else {
            run.send(Signal::KILL);
            run.code();
        }
        run.all_ended();
        run.nothing_left();
        for file in ["kid", "left", "own"] {
            assert!(
                is_complete(&run.file(file), LINES),
                "{file}: {:?}",
                run.file(file)
            );
        }
    }
}

#[test]
fn jobs_that_stop_themselves_are_continued() {
    for freeze in freezers() {
        let halting = format!(
            "for n in 1 2 3 4 5; do kill -STOP $$; done; {}",
            counting(LINES)
        );
        let mix = MixBuilder::default()
            .counting(2, LINES)
            .copies("halting", 3, &halting);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "5", "--max-pause", "0.05"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(run.stderr().contains("stopped itself"), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(2, LINES, true);
        for job in ["halting-1", "halting-2", "halting-3"] {
            assert!(
                is_complete(&run.output(job), LINES),
                "{job}: {:?}",
                run.output(job)
            );
        }
    }
}

/// A job that stops and continues itself all the time does not fill the terminal.
#[test]
fn a_warning_that_comes_again_and_again_is_told_ever_more_rarely() {
    for freeze in freezers() {
        // It goes on until it was told of often enough, on a busy machine for longer.
        let flapping = "(i=0; while [ $i -lt 20000 ] && ! grep -q '(16 times' stderr; do kill -CONT $$; sleep 0.003; \
            i=$((i+1)); done; touch done; while :; do kill -CONT $$; sleep 0.01; done) & while [ ! -e done ]; do kill -STOP $$; done; kill $!";
        let mut run = TestRun::start(
            MixBuilder::default().shell("flapping", flapping),
            freeze,
            &[],
        );
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        let told = run
            .stderr()
            .lines()
            .filter(|line| line.contains("stopped itself"))
            .count();
        let record = std::fs::read_to_string(run.dir.path().join("logs/run.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let warnings = record["warnings"].as_array().unwrap();
        let times = |text: &str| {
            text.rsplit_once('(')?
                .1
                .strip_suffix(" times)")?
                .parse::<u64>()
                .ok()
        };
        let stops = warnings
            .iter()
            .filter(|warning| warning["code"] == "stopped-itself");
        let stops: Vec<u64> = stops
            .filter_map(|warning| times(warning["text"].as_str()?))
            .collect();
        assert!(stops.len() == 1 && stops[0] > 8, "{warnings:?}");
        // The first, the second, the fourth and so on; how often it happens depends on how busy the machine is.
        assert_eq!(told as u32, stops[0].ilog2() + 1, "{}", run.stderr());
        run.nothing_left();
    }
}

#[test]
fn jobs_that_fail_leave_the_others_alone() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let bad = dir.path().join("bad");
        std::fs::write(&bad, "#!/no/such/interpreter\n").unwrap();
        std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mix = MixBuilder::default()
            .shell("killed", "kill -KILL $$")
            .program("bad", &bad)
            .shell("brief", "exit 0")
            .shell("failing", "exit 7")
            .counting(4, LINES);
        let mut run = TestRun::start_in(dir, mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(1), "{}", run.stderr());
        let told = run.stderr() + &run.stdout();
        for part in ["killed", "SIGKILL", "bad", "No such file"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        run.nothing_left();
        run.logs_complete(4, LINES, true);
    }
}

/// Like the kernel's out-of-memory killer: it kills the job's own process, at any time.
#[test]
fn family_of_a_killed_frozen_job_goes_on() {
    for freeze in freezers() {
        let family = format!("({}) & wait", counting(LINES));
        let mix = MixBuilder::default().copies("count", 4, &family);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "4"]);
        run.until_marked(8);
        // A suspended run thaws nothing.
        run.send(Signal::STOP);
        let leaders: Vec<i32> = run
            .marked()
            .iter()
            .filter(|p| p.pid == p.session)
            .map(|p| p.pid)
            .collect();
        assert!(!leaders.is_empty());
        if freeze == "signals" {
            // A process obeys a signal when it next gets a CPU.
            until("some are frozen", || {
                run.marked()
                    .iter()
                    .any(|p| p.pid == p.session && p.state == 'T')
            });
        }
        leaders.iter().for_each(|&pid| signal(pid, Signal::KILL));
        run.send(Signal::CONT);
        assert_eq!(run.code(), Some(1), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(4, LINES, true);
    }
}

/// A run among the jobs of another run: each frees only its own jobs.
#[test]
fn run_in_a_run() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let inner = format!(
            "{} run --logs inner --freeze {freeze} --policy round-robin --param quantum_s=0.02 --jobs 4 -q \
             -- sh -c 'tr \"\\0\" \"\\n\" < /proc/$$/environ | grep COSCHED_RUN=; {}' job {{}} ::: 1 2 3 4",
            super::support::COSCHED,
            counting(LINES).replace('\n', " ")
        );
        let mix = MixBuilder::default()
            .shell("inner", &inner)
            .counting(3, LINES);
        let mut run = TestRun::start_in(dir, mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        run.nothing_left();
        run.logs_complete(3, LINES, true);
        let mut logs = 0;
        for entry in std::fs::read_dir(run.dir.path().join("inner")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "out") {
                let text = std::fs::read_to_string(&path).unwrap();
                let (mark, rest) = text.split_once('\n').unwrap();
                assert!(
                    mark.starts_with("COSCHED_RUN=") && !mark.contains(&run.token),
                    "{mark}"
                );
                assert!(is_complete(rest, LINES), "one mark each: {text:?}");
                logs += 1;
            }
        }
        assert_eq!(logs, 4);
    }
}

#[test]
fn killed_run_with_daemons_and_families() {
    for freeze in freezers() {
        let daemon = format!("setsid sh -c '({}) & exit' & wait", counting(LINES));
        let family = format!("({}) & wait", counting(LINES));
        let mix = MixBuilder::default()
            .shell("daemon", &daemon)
            .copies("count", 4, &family);
        let mut run = TestRun::start(mix, freeze, &["--jobs", "5"]);
        until("the daemon runs", || {
            run.output("daemon").contains("line 1")
        });
        run.send(Signal::KILL);
        run.code();
        run.nothing_left();
        assert!(
            is_complete(&run.output("daemon"), LINES),
            "{:?}",
            run.output("daemon")
        );
        run.logs_complete(4, LINES, false);
    }
}
