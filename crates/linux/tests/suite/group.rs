//! Inherited group reads on real processes. The kernel's software events replace hardware counters, so that the test
//! works on any machine: same calls, same groups, other numbers.

use cosched_core::{Counter, Nanos, Reading};
use cosched_linux::counters::{EventStart, JobCounters};
use cosched_linux::events::{EventOverride, MachineEvents};
use cosched_linux::root::Root;
use rustix::process::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A "core PMU" with the number of the software events: the task clock for instructions, page faults for cycles.
fn software_events() -> MachineEvents {
    let dir = tempfile::tempdir().unwrap();
    let pmu = dir.path().join("sys/bus/event_source/devices/cpu");
    std::fs::create_dir_all(&pmu).unwrap();
    std::fs::write(pmu.join("type"), "1\n").unwrap();
    // Above the kernel's last software event, so the kernel rejects it, as hardware rejects a missing event.
    let unknown = "0xffff";
    let own = [
        "instructions=0x1",
        "cycles=0x2",
        "mm=0x5",
        &format!("llc={unknown}"),
        &format!("l1={unknown}"),
    ];
    let own: Vec<EventOverride> = own.iter().map(|text| text.parse().unwrap()).collect();
    MachineEvents::detect(&Root::new(dir.path()), &own).unwrap()
}

#[test]
fn a_group_counts_the_whole_tree_while_it_runs_and_after() {
    let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let script = format!("exec 3<&0; ({burn}; echo burned; read more <&3; {burn}) & wait");
    let mut child = Command::new("sh")
        .args(["-c", "read go; exec sh -c \"$0\"", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut counters, problems) = JobCounters::open(
        Pid::from_child(&child),
        &software_events(),
        EventStart::OnExec,
    );
    let before = counters.read();
    input.write_all(b"go\n").unwrap();
    output.read_line(&mut String::new()).unwrap();
    let (during, clock_during) = (counters.read(), counters.read_cpu_time());
    input.write_all(b"more\n").unwrap();
    assert!(child.wait().unwrap().success());
    let (after, clock_after) = (counters.read(), counters.read_cpu_time());

    for problem in &problems {
        println!("{problem}");
    }
    let Reading::Value(zero) = before[Counter::Instructions] else {
        drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("skipped, because {}\n", problems[0]),
        ));
        return;
    };
    assert_eq!(zero, 0);
    let value = |reading: Reading<u64>| reading.value().unwrap();
    let near = |counted: u64, clock: Reading<Nanos>| {
        let share = Nanos(counted).share_of(clock.value().unwrap());
        assert!((0.9..1.1).contains(&share), "{counted} {clock:?}");
    };
    near(value(during[Counter::Instructions]), clock_during);
    near(value(after[Counter::Instructions]), clock_after);
    assert!(
        value(during[Counter::Instructions]) > 1_000_000
            && value(after[Counter::Instructions]) > value(during[Counter::Instructions])
    );
    assert!(
        value(during[Counter::Cycles]) > 0
            && value(after[Counter::Cycles]) >= value(during[Counter::Cycles])
    );
    assert!(after[Counter::MmReads].is_value() && !counters.multiplexed());
    // The rejected events are absent, each with a problem, and the others are unaffected.
    for (counter, count) in after.iter() {
        let problem = problems.iter().find(|problem| problem.counter == counter);
        assert_eq!(
            count.absence(),
            problem.map(|problem| problem.reason),
            "{counter}"
        );
    }
    assert_eq!(problems.len(), Counter::COUNT - 3);
    assert_eq!(
        after.since(&during)[Counter::Cycles],
        Reading::Value(value(after[Counter::Cycles]) - value(during[Counter::Cycles]))
    );
}
