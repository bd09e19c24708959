//! Whatever ends or stops a comparison, or what it runs, nothing goes on or stands still.

use super::support::command;
use crate::common::{err, json, until, write};
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

#[test]
fn a_program_that_does_not_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'nap'\ncommand = 'sleep 0.01'\n",
    );
    let stubborn =
        "stubborn=trap 'echo asked >> asked' INT TERM; touch begun; while :; do sleep 0.05; done";
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo",
        "--candidate",
        stubborn,
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "c",
    ];
    let child = command(&folder, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it has begun", || folder.path().join("begun").exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    until("it was asked", || folder.path().join("asked").exists());
    // Ctrl-C after that does not wait for the end of the grace.
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
}

#[test]
fn a_suspended_comparison_pauses_what_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        "[[job]]\nname = 'count'\ncommand = 'until [ -e go1 ]; do echo >> count1; sleep 0.01; done'\n",
    );
    let other = "other=setsid sh -c 'until [ -e go2 ]; do echo >> count2; sleep 0.01; done' & wait";
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo",
        "--candidate",
        other,
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--format",
        "json",
    ];
    let began = std::time::Instant::now();
    let child = command(&folder, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let count = |which: u32| {
        std::fs::read(folder.path().join(format!("count{which}")))
            .unwrap_or_default()
            .len()
    };
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('T')
    };
    let pause = std::time::Duration::from_secs(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        until("one of them runs", || {
            (1..=2).any(|which| count(which) > 0 && !seen.contains(&which))
        });
        let which = (1..=2)
            .find(|which| count(*which) > 0 && !seen.contains(which))
            .unwrap();
        seen.insert(which);
        signal(rustix::process::Signal::TSTP);
        until("it stands still", is_stopped);
        let before = count(which);
        std::thread::sleep(pause);
        assert_eq!(count(which), before, "{which} went on");
        signal(rustix::process::Signal::CONT);
        until("it goes on", || count(which) > before);
        write(&folder, &format!("go{which}"), "");
    }
    let output = child.wait_with_output().unwrap();
    let all = began.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", err(&output));
    let answer = json(&output);
    let runs = answer["runs"].as_array().unwrap();
    let elapsed: f64 = runs
        .iter()
        .map(|run| run["figures"]["turnaround_s"].as_f64().unwrap())
        .sum();
    assert!(
        runs.len() == 2 && elapsed <= all - 2.0 * pause.as_secs_f64(),
        "{elapsed} of {all}: {answer}"
    );
}

/// The processes whose working folder this is, with their states. These tests start all of theirs in folders of their own.
fn processes_in(folder: &TempDir) -> Vec<(u32, char)> {
    let folder = folder.path().canonicalize().unwrap();
    let pids = Path::new("/proc").read_dir().unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.trim_start().chars().next()
    };
    let is_here =
        |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
    pids.filter(is_here)
        .filter_map(|pid| Some((pid, state(pid)?)))
        .filter(|(_, state)| *state != 'Z')
        .collect()
}

/// The number of `sleep` processes there.
fn sleeps_in(folder: &TempDir) -> usize {
    let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
    processes_in(folder)
        .into_iter()
        .filter(|(pid, _)| comm(*pid).is_ok_and(|comm| comm == "sleep\n"))
        .count()
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The process number that a job has written into a file.
fn number_in(folder: &TempDir, name: &str) -> u32 {
    let read = || {
        std::fs::read_to_string(folder.path().join(name))
            .ok()
            .filter(|text| text.ends_with('\n'))
    };
    until("a number was written", || read().is_some());
    read().unwrap().trim().parse().unwrap()
}

#[test]
fn a_killed_comparison_leaves_nothing_that_runs_or_stands_still() {
    let deaf =
        "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > deaf; while :; do sleep 0.05; done' &)";
    let command_line = format!("sleep 1000 & setsid sleep 1000 & {deaf}; sleep 1000");
    let other = format!("other={command_line}");
    // A command, and the job of a run; the other candidate ends at once.
    let cases = [
        ("true", other.as_str()),
        (
            "echo $$ > deaf; sleep 1000 & setsid sleep 1000 & wait",
            "other=true",
        ),
    ];
    // At once: each takes the whole grace of a comparison's run.
    std::thread::scope(|scope| {
        for (job, other) in cases {
            for suspends in [false, true] {
                scope.spawn(move || check_killed(job, other, suspends));
            }
        }
    });
}

fn check_killed(job: &str, other: &str, suspends: bool) {
    use rustix::process::Signal;
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder,
        "jobs.toml",
        &format!("[[job]]\nname = 'a'\ncommand = '{job}'\n"),
    );
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo",
        "--candidate",
        other,
        "-r",
        "1",
        "--solo-runs",
        "0",
    ];
    let mut child = command(&folder, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    number_in(&folder, "deaf");
    until("all of it runs", || sleeps_in(&folder) >= 2);
    if suspends {
        send(child.id(), Signal::TSTP);
        // Its jobs are frozen then.
        until("it stands still", || {
            processes_in(&folder).contains(&(child.id(), 'T'))
        });
    }
    child.kill().unwrap();
    child.wait().unwrap();
    until(
        &format!("nothing is left of {other}, {job}, {suspends}"),
        || processes_in(&folder).is_empty(),
    );
}

#[test]
fn a_run_that_is_killed_is_told_and_its_jobs_end() {
    use rustix::process::Signal;
    let folder = tempfile::tempdir().unwrap();
    let job = "test -e go || { echo $PPID > run; sleep 1000 & setsid sleep 1000 & wait; }";
    write(
        &folder,
        "jobs.toml",
        &format!("[[job]]\nname = 'long'\ncommand = '{job}'\ncopies = 2\n"),
    );
    let words = [
        "compare",
        "jobs.toml",
        "-p",
        "fifo,linux",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "c",
    ];
    let child = command(&folder, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    send(number_in(&folder, "run"), Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    for told in [
        "its `cosched run` was killed (signal: 9 (SIGKILL)), as",
        "its jobs were ended: long",
    ] {
        assert!(err(&output).contains(told), "{}", err(&output));
    }
    assert_eq!(processes_in(&folder), [], "its jobs went on");
}
