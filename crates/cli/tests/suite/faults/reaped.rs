//! Jobs with a reaper: they outlive their run, and another run takes them over.

use super::seen::{guardian, in_folder, mount};
use super::support::{counting, freezers, seen, signal};
use crate::common::{command, ended, one_cpu, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use tempfile::{TempDir, tempdir};

/// A folder with the reapers' files and the jobs' output.
struct State(TempDir);

impl State {
    fn new() -> State {
        let dir = tempdir().unwrap();
        for folder in ["jobs", "logs"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        State(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn key(&self, id: &str) -> PathBuf {
        self.path().join("jobs").join(id)
    }

    fn noted(&self, id: &str, what: &str) -> Option<Value> {
        let text = std::fs::read(self.path().join(format!("jobs/{id}.{what}"))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn reaper(&self, id: &str) -> i32 {
        let mut pid = 0;
        until("the job has a reaper", || {
            let start = self.noted(id, "start");
            pid = start.map_or(0, |start| start["pid"].as_i64().unwrap() as i32);
            pid != 0
        });
        pid
    }

    /// The line with which another run takes this job over.
    fn adoption(&self, id: &str) -> String {
        let start = self.noted(id, "start").unwrap();
        let adopt = json!({"pid": start["pid"], "start_time": start["start_time"]});
        json!({"id": id, "command": "counted", "adopt": adopt}).to_string()
    }

    fn output(&self, id: &str) -> String {
        std::fs::read_to_string(self.path().join(format!("logs/{id}.out"))).unwrap_or_default()
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.path().join(name), "").unwrap();
    }
}

/// A run whose input is held open, on one CPU with a short quantum.
struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(state: &State, logs: &str, more: &[&str]) -> Worker {
        let cpu = one_cpu();
        let words = [
            &["run", "-f", "-", "--progress-to", "1", "--output", "none"][..],
            &["--quiet", "--logs", logs, "--cpus", &cpu],
            &["--policy", "round-robin", "--param", "quantum_s=0.02"],
            more,
        ];
        let mut child = command(state.path(), &words.concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Worker {
            child,
            input,
            lines,
        }
    }

    fn with_reapers(state: &State, logs: &str, freeze: &str) -> Worker {
        Worker::start(state, logs, &["--reaper", "jobs", "--freeze", freeze])
    }

    fn feed(&mut self, line: &str) {
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
    }

    fn job(&mut self, id: &str, command: &str) {
        self.feed(&json!({"id": id, "command": command}).to_string());
    }

    /// The next line of this kind about a job.
    fn told(&mut self, event: &str) -> Value {
        loop {
            let line = self.lines.next().expect("a line").unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }

    fn end(mut self) {
        self.input = None;
        while self.lines.next().is_some() {}
        ended(&mut self.child);
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process is stopped, or in a frozen group.
fn is_frozen(pid: i32) -> bool {
    let group = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/"));
    let events = mount().zip(group).map(|(mount, group)| {
        let events = Path::new(&mount).join(group).join("cgroup.events");
        std::fs::read_to_string(events).unwrap_or_default()
    });
    let is_in_frozen = events.is_some_and(|events| events.contains("frozen 1"));
    is_in_frozen || seen(pid).is_some_and(|process| process.state == 'T')
}

#[test]
fn a_job_ends_with_a_reaper_as_without() {
    let state = State::new();
    let commands = [
        "exit 3",
        "kill -TERM $$",
        "kill -SEGV $$",
        "dd if=/dev/zero of=/dev/null bs=96M count=2",
    ];
    let mut ends = Vec::new();
    for more in [&[][..], &["--reaper", "jobs"]] {
        let mut worker = Worker::start(&state, &format!("run{}", more.len()), more);
        for (number, line) in commands.iter().enumerate() {
            worker.job(&number.to_string(), line);
            let end = worker.told("end");
            let memory = end["max_rss_bytes"].as_u64().map(|bytes| bytes >> 24);
            ends.push((end["exit"].clone(), end["signal"].clone(), memory));
        }
        worker.end();
    }
    let (without, with) = ends.split_at(commands.len());
    assert_eq!(without, with);
    assert_eq!(with[3], (json!(0), Value::Null, Some(6)));
    let noted = state.noted("3", "end").unwrap();
    assert!(noted["user_s"].as_f64().unwrap() + noted["system_s"].as_f64().unwrap() > 0.0);
    assert_eq!(
        noted["max_rss_bytes"].as_u64().map(|bytes| bytes >> 24),
        Some(6)
    );
}

#[test]
fn a_reaper_waits_for_all_processes_of_its_job() {
    let state = State::new();
    let mut worker = Worker::with_reapers(&state, "run", "signals");
    let late = "while [ ! -e go ]; do sleep 0.01; done; echo late";
    worker.job(
        "7-1",
        &format!("setsid sh -c '{late}' & echo early; exit 4"),
    );
    until("the first process has written", || {
        state.output("7-1") == "early\n"
    });
    assert_eq!(state.noted("7-1", "end"), None);
    state.touch("go");
    assert_eq!(worker.told("end")["exit"], 4);
    assert_eq!(state.noted("7-1", "end").unwrap()["exit"], 4);
    assert_eq!(state.output("7-1"), "early\nlate\n");
    worker.end();
}

/// As when a run dies in the moment of a start, and the next one starts the job again.
#[test]
fn no_job_starts_twice() {
    let state = State::new();
    let key = state.key("7-1");
    let reaper = || {
        let line = "echo x >> count; while [ ! -e go ]; do sleep 0.01; done; exit 5";
        let key = key.to_str().unwrap();
        let words = ["reap", key, "null", "/bin/sh", "sh", "-c", line];
        command(state.path(), &words).spawn().unwrap()
    };
    let mut both = [reaper(), reaper()];
    state.reaper("7-1");
    state.touch("go");
    for reaper in &mut both {
        assert_eq!(ended(reaper).code(), Some(5));
    }
    assert_eq!(ended(&mut reaper()).code(), Some(5), "it had ended");
    std::fs::remove_file(key.with_extension("end")).unwrap();
    assert_eq!(ended(&mut reaper()).code(), Some(125), "its end is unknown");
    let count = std::fs::read_to_string(state.path().join("count")).unwrap();
    assert_eq!(count, "x\n");
}

#[test]
fn the_end_is_seen_if_the_reaper_is_killed_with_its_job() {
    for freeze in freezers() {
        let state = State::new();
        let mut worker = Worker::with_reapers(&state, "run", freeze);
        worker.job("7-1", "sleep 1000");
        let reaper = rustix::process::Pid::from_raw(state.reaper("7-1")).unwrap();
        rustix::process::kill_process_group(reaper, Signal::KILL).unwrap();
        assert_eq!(worker.told("end")["signal"], 9);
        assert_eq!(state.noted("7-1", "end"), None);
        worker.end();
    }
}

/// A stopped run can't replace its guardian. Of two jobs on one CPU, one is stopped.
#[test]
fn a_reaper_continues_its_job_if_run_and_guardian_are_killed() {
    let state = State::new();
    let mut worker = Worker::with_reapers(&state, "run", "signals");
    for id in ["1", "2"] {
        worker.job(id, &counting(1));
    }
    let reapers = ["1", "2"].map(|id| state.reaper(id));
    until("one is stopped", || reapers.into_iter().any(is_frozen));
    signal(worker.pid(), Signal::STOP);
    until("the run is stopped", || is_frozen(worker.pid()));
    let guardian = guardian(worker.pid()).unwrap();
    for pid in [guardian, worker.pid()] {
        signal(pid, Signal::KILL);
    }
    state.touch("finish");
    for id in ["1", "2"] {
        until("the job ends", || state.noted(id, "end").is_some());
    }
}

#[test]
fn a_run_takes_over_the_jobs_of_a_killed_one() {
    for freeze in freezers() {
        let state = State::new();
        let ids = ["1", "2"];
        let mut worker = Worker::with_reapers(&state, "run1", freeze);
        for id in ids {
            worker.job(id, &format!("{}; exit 3", counting(1)));
        }
        let reapers = ids.map(|id| state.reaper(id));
        for next in ["run2", "run3"] {
            worker.child.kill().unwrap();
            worker = Worker::with_reapers(&state, next, freeze);
            for id in ids {
                worker.feed(&state.adoption(id));
            }
            for reaper in reapers {
                until("the job is frozen", || is_frozen(reaper));
                until("the job runs", || !is_frozen(reaper));
            }
        }
        signal(worker.pid(), Signal::KILL);
        ended(&mut worker.child);
        until("nothing stays frozen", || {
            !reapers.into_iter().any(is_frozen)
        });
        worker = Worker::with_reapers(&state, "run4", freeze);
        for id in ids {
            worker.feed(&state.adoption(id));
        }
        worker.told("start");
        state.touch("finish");
        for _ in ids {
            let end = worker.told("end");
            assert_eq!(end["exit"], 3, "{end}");
            assert!(end["cpu_s"].as_f64().is_some(), "{end}");
        }
        worker.end();
        until("all have ended", || in_folder(state.path()).is_empty());
    }
}

/// Others that start meanwhile free what dead runs left, but not these.
#[test]
fn a_job_that_was_taken_over_stays_frozen_when_others_start() {
    let state = State::new();
    let mut worker = Worker::with_reapers(&state, "run1", "signals");
    worker.job("1", &counting(1));
    let reaper = state.reaper("1");
    worker.child.kill().unwrap();
    ended(&mut worker.child);
    let listed = command(state.path(), &["thaw", "--format", "json"])
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut orphans = listed["orphans"].as_array().unwrap().iter();
    let of_job = orphans.find(|orphan| {
        orphan["processes"]
            .as_array()
            .unwrap()
            .contains(&reaper.into())
    });
    assert_eq!(of_job.unwrap()["has_reaper"], true, "{listed}");
    worker = Worker::with_reapers(&state, "run2", "signals");
    worker.feed(&state.adoption("1"));
    worker.told("start");
    let pid = worker.pid().to_string();
    until("the run is paused", || {
        let set = command(state.path(), &["set", &pid, "pause=on"]).output();
        set.unwrap().status.success() && is_frozen(reaper)
    });
    let thaw = command(state.path(), &["thaw"]).output().unwrap();
    assert!(thaw.status.success());
    assert!(is_frozen(reaper), "{thaw:?}");
    state.touch("finish");
    command(state.path(), &["set", &pid, "pause=off"])
        .output()
        .unwrap();
    assert_eq!(worker.told("end")["exit"], 0);
    worker.end();
}

#[test]
fn a_job_whose_reaper_is_killed_after_it_was_taken_over_goes_on() {
    for freeze in freezers() {
        let state = State::new();
        let mut worker = Worker::with_reapers(&state, "run1", freeze);
        worker.job("1", &counting(1));
        let reaper = state.reaper("1");
        worker.child.kill().unwrap();
        ended(&mut worker.child);
        worker = Worker::with_reapers(&state, "run2", freeze);
        worker.feed(&state.adoption("1"));
        worker.told("start");
        let pid = worker.pid().to_string();
        until("the run is paused", || {
            let set = command(state.path(), &["set", &pid, "pause=on"]).output();
            set.unwrap().status.success() && is_frozen(reaper)
        });
        signal(reaper, Signal::KILL);
        assert_eq!(worker.told("end")["exit_text"], "ended");
        state.touch("finish");
        until("the job has ended", || state.output("1").ends_with("end\n"));
        worker.end();
    }
}

/// The second job leaves the process group of its reaper.
#[test]
fn jobs_that_stop_themselves_are_continued_by_the_run_that_follows_them() {
    for freeze in freezers() {
        let state = State::new();
        let work = "kill -STOP $$; echo one; while [ ! -e go ]; do sleep 0.01; done; kill -STOP $$; echo two";
        let more = [
            "--reaper",
            "jobs",
            "--freeze",
            freeze,
            "--max-pause",
            "0.05",
        ];
        let ids = ["1", "2"];
        let mut worker = Worker::start(&state, "run1", &more);
        worker.job("1", work);
        worker.feed(&json!({"id": "2", "argv": ["setsid", "sh", "-c", work]}).to_string());
        for id in ids {
            until("it is continued", || state.output(id) == "one\n");
        }
        worker.child.kill().unwrap();
        ended(&mut worker.child);
        let mut worker = Worker::start(&state, "run2", &more);
        for id in ids {
            worker.feed(&state.adoption(id));
            worker.told("start");
        }
        state.touch("go");
        for _ in ids {
            assert_eq!(worker.told("end")["exit"], 0);
        }
        for id in ids {
            assert_eq!(state.output(id), "one\ntwo\n");
        }
        worker.end();
    }
}

#[test]
fn a_job_that_ended_before_it_was_taken_over_ends_at_once() {
    let state = State::new();
    let mut worker = Worker::with_reapers(&state, "run1", "signals");
    worker.job("1", "exit 6");
    worker.job("2", "exit 6");
    for _ in 0..2 {
        worker.told("end");
    }
    worker.end();
    std::fs::remove_file(state.path().join("jobs/2.end")).unwrap();
    let mut worker = Worker::with_reapers(&state, "run2", "signals");
    worker.feed(&state.adoption("1"));
    assert_eq!(worker.told("end")["exit"], 6);
    worker.feed(&state.adoption("2"));
    let lost = worker.told("end");
    assert_eq!(
        (&lost["exit_text"], &lost["exit"]),
        (&json!("ended"), &Value::Null)
    );
    worker.end();
}

#[test]
fn jobs_are_cancelled_whatever_they_do() {
    for freeze in freezers() {
        let state = State::new();
        let more = ["--reaper", "jobs", "--freeze", freeze, "--jobs", "2"];
        let mut worker = Worker::start(&state, "run", &more);
        // Of the first two one is frozen at any time, and the third waits.
        worker.job("1", &counting(1));
        worker.job("2", "trap 'exit 7' TERM; echo x; while :; do :; done");
        worker.job("3", "echo never");
        until("the second has begun", || state.output("2") == "x\n");
        state.reaper("1");
        for (id, text) in [
            ("none", ""),
            ("3", "not started: the user ended it"),
            ("2", "exit 7"),
            ("1", "SIGTERM"),
        ] {
            worker.feed(&json!({"cancel": id}).to_string());
            if id != "none" {
                let end = worker.told("end");
                assert_eq!(
                    (end["id"].as_str(), end["exit_text"].as_str()),
                    (Some(id), Some(text))
                );
            }
        }
        worker.end();
        assert_eq!(state.noted("2", "end").unwrap()["exit"], 7);
        assert_eq!(state.noted("1", "end").unwrap()["signal"], 15);
        assert_eq!(state.noted("3", "start"), None);
    }
}
