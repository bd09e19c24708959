//! What was learnt of the tasks of a snapshot, and what the model predicts for those that run after a decision.

use cosched_core::model::contention::{Prediction, Seat};
use cosched_core::{Change, Decision, Placement, Snapshot, TaskId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What was learnt of a task.
#[derive(Clone, PartialEq, Serialize)]
pub struct Known {
    task: TaskId,
    /// Quanta' worth of solo execution done so far.
    progress: f64,
    /// Cycles per instruction alone, and the relative standard error of that.
    solo_cpi: f64,
    error: f64,
    /// Lines read from memory per instruction with the whole last-level cache.
    reads: f64,
    phase: u32,
    /// Whether it was measured in this phase with its cores to itself.
    measured: bool,
    /// Predicted speed after the decision, as a share of that alone. `None` if it does not run on CPUs of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<f64>,
}

/// What is known of the tasks, in ascending order of their numbers.
pub fn known(snapshot: &Snapshot, decision: &Decision) -> Vec<Known> {
    let speeds = speeds(snapshot, decision);
    let mut all = Vec::new();
    for task in &snapshot.tasks {
        let Some(learnt) = task.estimates.learnt.as_ref().value() else {
            continue;
        };
        all.push(Known {
            task: task.id,
            progress: learnt.progress,
            solo_cpi: learnt.solo_cpi,
            error: learnt.error,
            reads: learnt.asks.reads,
            phase: learnt.phase,
            measured: learnt.measured,
            speed: speeds.get(&task.id).copied(),
        });
    }
    all
}

/// A thread with CPUs of its own after the decision.
struct Runs {
    task: TaskId,
    /// Cycles per instruction at the speed that the task has alone.
    solo_cpi: f64,
    seat: Seat,
}

/// The predicted speeds of those that have CPUs of their own after the decision. Of a task with several CPUs it is the
/// slowest of its threads.
fn speeds(snapshot: &Snapshot, decision: &Decision) -> BTreeMap<TaskId, f64> {
    let mut all = Vec::new();
    for (task, placement) in placements_after(snapshot, decision) {
        add_threads(&mut all, snapshot, task, placement);
    }
    let seats: Vec<Seat> = all.iter().map(|one| one.seat).collect();
    let mut prediction = Prediction::default();
    prediction.make(&snapshot.contention, &seats);
    let mut speeds = BTreeMap::new();
    for (one, job) in all.iter().zip(&prediction.jobs) {
        let speed = speeds.entry(one.task).or_insert(f64::INFINITY);
        *speed = f64::min(*speed, one.solo_cpi / job.cpi);
    }
    speeds
}

/// Where each running task is once the decision is carried out.
fn placements_after<'a>(
    snapshot: &'a Snapshot,
    decision: &'a Decision,
) -> BTreeMap<TaskId, &'a Placement> {
    let mut after = BTreeMap::new();
    for task in &snapshot.tasks {
        if let Some(running) = &task.running {
            after.insert(task.id, &running.placement);
        }
    }
    for change in &decision.changes {
        match change {
            Change::Place {
                task, placement, ..
            } => _ = after.insert(*task, placement),
            Change::Stop { task } => _ = after.remove(task),
        }
    }
    after
}

/// Adds the threads of a task that has CPUs of its own, if anything was learnt of it.
fn add_threads(all: &mut Vec<Runs>, snapshot: &Snapshot, task: TaskId, placement: &Placement) {
    let Placement::Exclusive { cpus, .. } = placement else {
        return;
    };
    let Some(view) = snapshot.task(task) else {
        return;
    };
    let Some(learnt) = view.estimates.learnt.as_ref().value() else {
        return;
    };
    for cpu in snapshot.machine.cpus_in(cpus) {
        let asks = *learnt.asks_on(cpu.core_type);
        let seat = Seat {
            asks,
            core: cpu.core,
            llc: cpu.llc,
            domain: cpu.memory_domain,
        };
        all.push(Runs {
            task,
            solo_cpi: learnt.solo_ns() * asks.ghz,
            seat,
        });
    }
}

/// The same as lines of a table; empty if nothing is known.
pub fn text(all: &[Known], name: impl Fn(TaskId) -> String) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    let _ = writeln!(
        out,
        "  {:<27} {:>9} {:>15} {:>9} {:>6} {:>7}",
        "learnt", "progress", "CPI alone", "reads/KI", "phase", "speed"
    );
    for one in all {
        let name = name(one.task);
        let progress = one.progress;
        let cpi = format!("{:.3} ±{:.1} %", one.solo_cpi, 100.0 * one.error);
        let reads = 1_000.0 * one.reads;
        let unsure = if one.measured { "" } else { "?" };
        let phase = format!("{}{unsure}", one.phase);
        let speed = match one.speed {
            Some(speed) => format!("{:.0} %", 100.0 * speed),
            None => "-".to_owned(),
        };
        let _ = writeln!(
            out,
            "    {name:<25} {progress:>9.2} {cpi:>15} {reads:>9.2} {phase:>6} {speed:>7}"
        );
    }
    let _ = writeln!(
        out,
        "    progress in quanta; ?: not measured in this phase; speed: predicted, of that alone"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::model::contention::Asks;
    use cosched_core::{
        Absence, CpuSet, Estimates, Learnt, Machine, Nanos, Purpose, Reading, Running, TaskSpec,
        TaskView,
    };

    /// Three tasks on a core each of two CPUs, of which the last is not known.
    fn snapshot() -> Snapshot {
        let asks = Asks {
            own: 0.5,
            penalty: 60.0,
            l1: 0.3,
            llc: 0.02,
            reads: 0.01,
            steepness: 0.3,
            ghz: 2.0,
        };
        let learnt = Learnt {
            asks,
            solo_cpi: asks.solo_cpi(&Default::default()),
            slower: Vec::new(),
            error: 0.02,
            progress: 7.25,
            phase: 1,
            stay: 3,
            measured: false,
            settling: None,
        };
        let view = |id: u32| {
            let learnt = if id < 2 {
                Reading::Value(learnt.clone())
            } else {
                Estimates::default().learnt
            };
            let estimates = Estimates {
                learnt,
                ..Estimates::default()
            };
            let placement = Placement::Exclusive {
                cpus: format!("{}", 2 * id).parse().unwrap(),
                whole_core: false,
            };
            let running = Running {
                placement,
                purpose: Purpose::Run,
                since: Nanos::ZERO,
                lease_end: None,
            };
            let spec = TaskSpec::new(id, &format!("job-{id}"));
            TaskView {
                running: Some(running),
                ..TaskView::arriving(&spec, Nanos::ZERO, estimates)
            }
        };
        Snapshot {
            machine: Machine::uniform("three cores", 3, 2).into(),
            now: Nanos::ZERO,
            triggers: Vec::new(),
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: (0..3).map(view).map(Box::new).collect(),
        }
    }

    fn place(task: u32, cpus: &str) -> Change {
        let placement = Placement::Exclusive {
            cpus: cpus.parse::<CpuSet>().unwrap(),
            whole_core: false,
        };
        Change::Place {
            task: TaskId(task),
            placement,
            lease_end: None,
            purpose: Purpose::Run,
        }
    }

    #[test]
    fn speeds_are_those_after_the_decision() {
        let snapshot = snapshot();
        let first = |changes: Vec<Change>| {
            let known = known(
                &snapshot,
                &Decision {
                    changes,
                    ..Decision::default()
                },
            );
            assert_eq!(
                known.iter().map(|one| one.task.0).collect::<Vec<_>>(),
                [0, 1]
            );
            known[0].speed
        };
        let apart = first(Vec::new()).unwrap();
        let alone = first(vec![Change::Stop { task: TaskId(1) }]).unwrap();
        let together = first(vec![place(1, "3")]).unwrap();
        assert!(
            together < apart && apart < alone && alone > 0.999,
            "{together} {apart} {alone}"
        );
        assert_eq!(first(vec![Change::Stop { task: TaskId(0) }]), None);
        // Its second thread shares a core with the other job.
        assert!(first(vec![place(0, "0,5")]).unwrap() < apart);
        let shared = Placement::Shared {
            mask: "0-5".parse().unwrap(),
        };
        let shared = Change::Place {
            task: TaskId(0),
            placement: shared,
            lease_end: None,
            purpose: Purpose::Run,
        };
        assert_eq!(first(vec![shared]), None);
    }

    #[test]
    fn what_is_not_known_is_not_listed() {
        let snapshot = snapshot();
        let decision = Decision {
            changes: vec![Change::Stop { task: TaskId(1) }],
            ..Decision::default()
        };
        let text = text(&known(&snapshot, &decision), |id| format!("job-{}", id.0));
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            [
                "job-0", "7.25", "1.202", "±2.0", "%", "10.00", "1?", "100", "%"
            ]
        );
        assert_eq!((lines[2][0], lines[2][7], lines.len()), ("job-1", "-", 4));
        assert_eq!(super::text(&[], |_| String::new()), "");
    }
}
