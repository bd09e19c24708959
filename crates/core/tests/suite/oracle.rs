//! The oracle, in the world in memory, with correct, wrong and missing solo traces.

use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;
use std::sync::Arc;

/// Twelve tasks of 4 s on four cores, with different demands on the bus.
fn world() -> Memory {
    let work = (0..12)
        .map(|i| Work::ms(4_000).reads(4 * i).ipc(500 + 50 * i))
        .collect();
    let mut world = Memory::new(Machine::uniform("four", 4, 1), work);
    world.bus_per_us = Some(60);
    world
}

/// A task's solo profile in that world: one IPC from start to end.
fn profile(task: u64, ipc_share: f64) -> SoloProfile {
    let ipc_milli = 500 + 50 * task;
    let trace = SoloTrace::new(vec![(
        4_000_000 * ipc_milli,
        ipc_milli as f64 / 1e3 * ipc_share,
    )])
    .unwrap();
    SoloProfile {
        time: Some(Nanos::from_ms(4_000)),
        mm_reads: Some(Rate(4_000 * task)),
        trace: Some(Arc::new(trace)),
    }
}

fn run(policy: &str, solo: impl Fn(u64) -> SoloProfile) -> RunResult {
    let mut world = world();
    let mut specs = world.specs();
    specs
        .iter_mut()
        .zip(0..)
        .for_each(|(spec, task)| spec.solo = solo(task));
    let result = run_specs(
        &mut world,
        specs,
        policy,
        &[],
        &RunConfig::default(),
        &mut NullRecorder,
    );
    assert_eq!(result.policy_faults, 0);
    result
}

fn unfairness(result: &RunResult) -> f64 {
    let ends = result
        .tasks
        .iter()
        .map(|task| task.finished.unwrap().as_s());
    let (min, max) = ends.fold((f64::MAX, 0.0), |(min, max), end| {
        (end.min(min), end.max(max))
    });
    max / min
}

#[test]
fn progress_by_a_right_trace_is_the_work_itself() {
    for policy in ["oracle", "perf-fair", "round-robin"] {
        for task in run(policy, |task| profile(task, 1.0)).tasks {
            assert_eq!(task.progress_basis, ProgressBasis::Trace);
            // 4 s of work are 20 quanta, whatever the slowdown.
            let progress = task.progress.value().unwrap();
            assert!(
                (progress - 20.0).abs() < 0.01,
                "{policy} {}: {progress}",
                task.spec.name
            );
        }
    }
}

#[test]
fn it_is_at_least_as_fair_as_estimates_and_measures_nobody() {
    let oracle = run("oracle", |task| profile(task, 1.0));
    let estimated = run("perf-fair", |task| profile(task, 1.0));
    assert!(unfairness(&oracle) < 1.12, "{}", unfairness(&oracle));
    assert!(
        unfairness(&oracle) < unfairness(&estimated) + 0.02,
        "{}",
        unfairness(&estimated)
    );
    assert!(
        oracle.turnaround < estimated.turnaround,
        "no time goes into estimation"
    );
    let in_turn = run("round-robin", |task| profile(task, 1.0));
    assert!(
        unfairness(&oracle) < unfairness(&in_turn),
        "{}",
        unfairness(&in_turn)
    );
}

#[test]
fn a_wrong_trace_holds_its_task_back() {
    let end = |result: &RunResult, task: usize| result.tasks[task].finished.unwrap();
    let right = run("oracle", |task| profile(task, 1.0));
    // Half of task 3's real solo IPC: it seems to run at twice its speed.
    let wrong = run("oracle", |task| {
        profile(task, if task == 3 { 0.5 } else { 1.0 })
    });
    assert!((wrong.tasks[3].progress.value().unwrap() - 40.0).abs() < 0.1);
    assert!(
        end(&wrong, 3) > end(&right, 3) + Nanos::from_ms(200),
        "{:?} {:?}",
        end(&wrong, 3),
        end(&right, 3)
    );
    assert_eq!(end(&wrong, 3), wrong.turnaround);
    // After its end, a trace that is much too short continues with its last IPC, which is correct here.
    let short = run("oracle", |task| {
        let points = vec![(1_000, (500 + 50 * task) as f64 / 1e3)];
        SoloProfile {
            trace: Some(Arc::new(SoloTrace::new(points).unwrap())),
            ..profile(task, 1.0)
        }
    });
    assert_eq!(end(&short, 3), end(&right, 3));
}

#[test]
fn without_a_trace_it_is_not_started() {
    let entry = find_policy("oracle").unwrap();
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let mut capabilities = Capabilities::default();
    capabilities
        .missing
        .insert(Capability::SoloTrace, Absence::NoSoloTrace);
    let shortfalls = entry.shortfalls(&params, &capabilities);
    assert_eq!(
        (shortfalls[0].capability, shortfalls[0].importance),
        (Capability::SoloTrace, Importance::Required)
    );
    // If the oracle still meets a task without a trace, it uses the task's estimated progress.
    let result = run("oracle", |task| {
        if task == 3 {
            SoloProfile::default()
        } else {
            profile(task, 1.0)
        }
    });
    assert_eq!(result.tasks[3].progress_basis, ProgressBasis::Provisional);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

/// The ideal bandwidths that a policy saw, with the numbers of jobs in scheduling.
#[derive(Default)]
struct Seen(Vec<(Reading<Rate>, usize)>);

impl Recorder for Seen {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let snapshot = record.snapshot;
            self.0
                .push((snapshot.ideal_bandwidth, snapshot.tasks.len()));
        }
    }
}

#[test]
fn the_ideal_bandwidth_is_that_of_queued_and_ended_jobs_too() {
    let mut world = world();
    let mut specs = world.specs();
    for (spec, task) in specs.iter_mut().zip(0..) {
        spec.solo = profile(task, 1.0);
        spec.solo.time = Some(Nanos::from_ms(500 * (1 + task)));
        spec.arrives = Nanos::from_ms(300 * task);
    }
    specs[3].cpus = 2;
    // What is not known is left out.
    specs[7].solo = SoloProfile::default();
    let (mut lines, mut cpu_ms) = (0.0, 0.0);
    for spec in &specs {
        let solo = &spec.solo;
        if let (Some(rate), Some(time)) = (solo.mm_reads, solo.time) {
            lines += rate.0 as f64 * time.as_s() * 1e3;
            cpu_ms += f64::from(spec.cpus) * time.as_s() * 1e3;
        }
    }
    let published = Rate((lines / cpu_ms).round() as u64);
    let config = RunConfig {
        jobs: 5,
        ..RunConfig::default()
    };
    let mut seen = Seen::default();
    let settings = [("target", "ideal")];
    run_specs(
        &mut world,
        specs,
        "bandwidth",
        &settings,
        &config,
        &mut seen,
    );
    for (ideal, _) in &seen.0 {
        assert_eq!(*ideal, Reading::Value(published));
    }
    let fewest = seen.0.iter().map(|(_, jobs)| *jobs).min();
    let most = seen.0.iter().map(|(_, jobs)| *jobs).max();
    assert_eq!((fewest, most), (Some(1), Some(5)));
}
