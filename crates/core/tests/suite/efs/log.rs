//! Runs under `efs`, and a log of their decisions.

use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;
use std::collections::BTreeMap;

pub(crate) const QUANTUM: Nanos = Nanos::from_ms(200);
/// 4 ms of the kernel's 18 ms.
pub(crate) const LEAST_SLICE: Nanos = Nanos(44_444_444);
/// Capacity of the world's bus per microsecond, as assumed by `efs`.
pub(crate) const BUS: u64 = 150;

/// The running tasks after each decision, and the reasons of the others.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) turns: Vec<TurnLog>,
    /// Longest wait of each task that had to wait, including its first wait.
    pub(crate) longest: BTreeMap<TaskId, Nanos>,
}

pub(crate) struct TurnLog {
    pub(crate) at: Nanos,
    pub(crate) until: Nanos,
    pub(crate) runs: BTreeMap<TaskId, CpuSet>,
    pub(crate) waits: Vec<Wait>,
    /// Tasks with a lease: the starved ones.
    pub(crate) starved: Vec<(TaskId, Nanos)>,
    pub(crate) admission: Option<BusAdmission>,
}

impl Recorder for Log {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            assert!(!record.stood_in);
            let (snap, decision) = (record.snapshot, record.decision);
            let mut runs: BTreeMap<TaskId, CpuSet> = snap
                .tasks
                .iter()
                .filter_map(|task| Some((task.id, task.running.as_ref()?.placement.cpus().clone())))
                .collect();
            let mut starved = Vec::new();
            for change in &decision.changes {
                match change {
                    Change::Place {
                        task,
                        placement,
                        lease_end,
                        ..
                    } => {
                        runs.insert(*task, placement.cpus().clone());
                        starved.extend(lease_end.map(|end| (*task, end)));
                    }
                    Change::Stop { task } => {
                        runs.remove(task);
                    }
                }
            }
            for task in snap
                .tasks
                .iter()
                .filter(|task| task.running.is_none() && task.waiting_since < snap.now)
            {
                let longest = self.longest.entry(task.id).or_default();
                *longest = (*longest).max(snap.now - task.waiting_since);
            }
            let until = decision.next_wake.unwrap();
            let waits = decision.waits.clone();
            self.turns.push(TurnLog {
                at: snap.now,
                until,
                runs,
                waits,
                starved,
                admission: decision.admission.clone(),
            });
        }
    }
}

impl Log {
    /// Numbers of the tasks that ran after each decision.
    pub(crate) fn sets(&self) -> Vec<Vec<u32>> {
        self.turns
            .iter()
            .map(|turn| turn.runs.keys().map(|id| id.0).collect())
            .collect()
    }
}

pub(crate) fn run_log(
    machine: Machine,
    work: Vec<Work>,
    change: impl Fn(&mut Vec<TaskSpec>),
    settings: &[(&str, &str)],
    config: &RunConfig,
    stop_s: Option<u64>,
) -> (Log, RunResult) {
    let mut world = Memory::new(machine, work);
    world.bus_per_us = Some(BUS);
    world.interrupts = stop_s
        .map(|s| Nanos::from_ms(s * 1_000))
        .into_iter()
        .collect();
    let mut specs = world.specs();
    change(&mut specs);
    let mut log = Log::default();
    let result = run_specs(&mut world, specs, "efs", settings, config, &mut log);
    assert_eq!(result.policy_faults, 0);
    (log, result)
}

pub(crate) fn simple(
    machine: Machine,
    work: Vec<Work>,
    settings: &[(&str, &str)],
) -> (Log, RunResult) {
    run_log(machine, work, |_| {}, settings, &RunConfig::default(), None)
}

pub(crate) fn four() -> Machine {
    Machine::uniform("four", 4, 1)
}

pub(crate) fn hogs(n: usize, ms: u64) -> Vec<Work> {
    (0..n).map(|_| Work::ms(ms).reads(BUS)).collect()
}
