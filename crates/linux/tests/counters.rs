//! Counting real processes. In a program of its own: it reads the CPU time of all children of this process.

#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use cosched_core::{Counter, Nanos, Reading};
use cosched_linux::counters::{EventStart, JobCounters};
use cosched_linux::events::MachineEvents;
use cosched_linux::root::Root;
use rustix::process::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A loop that keeps a shell busy for some tenths of a second.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

/// A shell that burns, and then waits for a line before it executes `script`, so that counting can start with `script`.
fn waiting(script: &str) -> Child {
    Command::new("sh")
        .args([
            "-c",
            &format!("{BURN}; echo ready; read go; exec sh -c \"$0\""),
            script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// CPU time of the children that this process has waited for.
fn waited_children() -> Nanos {
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the result and outlives the call.
    let answer = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    assert_eq!(answer, 0);
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Nanos(ns(usage.ru_utime) + ns(usage.ru_stime))
}

#[test]
fn cpu_time_is_that_of_the_whole_tree_while_it_runs_and_after() {
    // The job's shell only waits; its child burns, reports that, waits for a line, and burns again.
    let script = format!("exec 3<&0; ({BURN}; {BURN}; echo burned; read more <&3; {BURN}) & wait");
    let mut child = waiting(&script);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");

    let events = MachineEvents::detect(&Root::default(), &[]).unwrap();
    let (mut counters, problems) = JobCounters::open(pid(&child), &events, EventStart::OnExec);
    for problem in &problems {
        println!("{problem}");
    }
    // Nothing counts before the exec, although the shell has been busy.
    let before = counters.read_cpu_time();
    let before_counts = counters.read();
    input.write_all(b"go\n").unwrap();
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "burned\n");
    let during = counters.read_cpu_time();
    let during_counts = counters.read();
    input.write_all(b"more\n").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let after = counters.read_cpu_time();
    let after_counts = counters.read();

    match (before, during, after) {
        (Reading::Value(before), Reading::Value(during), Reading::Value(after)) => {
            assert_eq!(before, Nanos::ZERO);
            assert!(
                during > Nanos::from_ms(5),
                "a child that still runs counts: {during:?}"
            );
            assert!(after > during + Nanos::from_ms(2), "{during:?} {after:?}");
            // The first shell burned once before the exec, the job three times: three quarters are counted.
            let all = waited_children();
            let share = after.share_of(all);
            assert!((0.55..0.95).contains(&share), "{after:?} of {all:?}");
        }
        (Reading::Absent(why), ..) => drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped, because CPU time is absent: {why}\n"),
        )),
        other => panic!("{other:?}"),
    }

    match (
        before_counts[Counter::Instructions],
        during_counts[Counter::Instructions],
        after_counts[Counter::Instructions],
    ) {
        (Reading::Value(before), Reading::Value(during), Reading::Value(after)) => {
            assert_eq!(before, 0);
            assert!(during > 1_000_000 && after > during, "{during} {after}");
            println!(
                "counted {after_counts:?}, multiplexed: {}",
                counters.multiplexed()
            );
        }
        (Reading::Absent(why), ..) => drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped, because instructions are absent: {why}\n"),
        )),
        other => panic!("{other:?}"),
    }
    // Every absent event was reported when it was opened.
    for (counter, count) in after_counts.iter() {
        let told = problems.iter().any(|problem| problem.counter == counter);
        assert!(count.is_value() || told, "{counter}");
    }
    exact_when_everything_is_counted();
}

/// From the exec on, the task clock and getrusage agree.
fn exact_when_everything_is_counted() {
    let before = waited_children();
    // Here the shell burns nothing before its exec.
    let mut child = Command::new("sh")
        .args([
            "-c",
            "read go; exec sh -c \"$0\"",
            &format!("({BURN}) & ({BURN}) & {BURN}; wait"),
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut counters, _) =
        JobCounters::open(pid(&child), &MachineEvents::default(), EventStart::OnExec);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    let used = waited_children() - before;
    match counters.read_cpu_time() {
        Reading::Value(counted) => {
            let share = counted.share_of(used);
            println!(
                "task clock {} us, getrusage {} us",
                counted.as_us(),
                used.as_us()
            );
            // getrusage also includes the start of the shell and the kernel's part of the exec.
            assert!((0.80..1.10).contains(&share), "{counted:?} of {used:?}");
        }
        Reading::Absent(why) => drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped, because CPU time is absent: {why}\n"),
        )),
    }
}
