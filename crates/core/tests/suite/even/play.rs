//! A harness for `even`: single decisions on tasks whose estimates the test sets.

use crate::random::policy;
use cosched_core::model::contention::{Latency, PhaseDemand};
use cosched_core::*;
use std::sync::Arc;

/// A policy, its tasks, and its last decision.
pub(crate) struct Play {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) snap: Snapshot,
    pub(crate) decision: Decision,
}

impl Play {
    /// Eight unmeasured tasks on two cores of two CPUs, at the end of a quantum.
    pub(crate) fn new() -> Play {
        let view = |id: u32| {
            let asks = PhaseDemand {
                own: 0.5,
                penalty: 60.0,
                l1: 0.3,
                llc: 1e-3,
                reads: 1e-4,
                steepness: 0.3,
                ghz: 2.0,
                ..Default::default()
            };
            let learnt = Learnt {
                asks,
                solo_cpi: asks.solo_cpi(&Default::default()),
                error: 0.3,
                measured: Measured::Never,
                progress: 10.0,
                phase: 0,
                last: None,
                slower: Vec::new(),
            };
            let estimates = Estimates {
                learnt: Reading::Value(learnt),
                executed: 10,
                ran: Nanos::from_ms(2_000),
                ..Estimates::default()
            };
            TaskView::arriving(
                &TaskSpec::new(id, &format!("task-{id}")),
                Nanos::ZERO,
                estimates,
            )
        };
        let snap = Snapshot {
            machine: Arc::new(Machine::uniform("two cores", 2, 2)),
            now: Nanos::from_ms(60_000),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: (0..8).map(view).map(Box::new).collect(),
        };
        Play {
            policy: even(&[]),
            snap,
            decision: Decision::default(),
        }
    }

    /// Four known jobs on four cores; each demands two thirds of the memory's capacity.
    pub(crate) fn at_a_scarce_memory(objective: &str) -> Play {
        let mut play = Play::new();
        play.policy = even(&[("objective", objective)]);
        play.snap.machine = Arc::new(Machine::uniform("four cores", 4, 1));
        play.snap.contention.memory = Latency {
            most: Some(0.1),
            rise: 0.2,
        };
        (4..8).for_each(|id| play.end(id));
        let shared = play.snap.contention;
        play.all_learnt(|learnt| {
            learnt.asks = PhaseDemand {
                own: 0.4,
                penalty: 10.0,
                llc: 0.04,
                reads: 0.02,
                ..learnt.asks
            };
            learnt.solo_cpi = learnt.asks.solo_cpi(&shared);
            learnt.error = 0.005;
            learnt.measured = Measured::Phase;
        });
        play
    }

    pub(crate) fn running(&self) -> usize {
        self.snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .count()
    }

    /// Adds a quantum's progress of the running tasks, which share the memory equally.
    pub(crate) fn pass(&mut self) {
        let share = 1.0 / self.running().max(1) as f64;
        let ran: Vec<u32> = self
            .snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .map(|task| task.id.0)
            .collect();
        ran.into_iter()
            .for_each(|id| self.learnt(id, |learnt| learnt.progress += share));
    }

    pub(crate) fn learnt(&mut self, id: u32, change: impl Fn(&mut Learnt)) {
        let task = self
            .snap
            .tasks
            .iter_mut()
            .find(|task| task.id == TaskId(id))
            .unwrap();
        match &mut task.estimates.learnt {
            Reading::Value(learnt) => change(learnt),
            Reading::Absent(why) => panic!("{why:?}"),
        }
    }

    pub(crate) fn all_learnt(&mut self, change: impl Fn(&mut Learnt)) {
        let ids: Vec<u32> = self.snap.tasks.iter().map(|task| task.id.0).collect();
        ids.into_iter().for_each(|id| self.learnt(id, &change));
    }

    /// Lets all be well known, so that nothing is measured.
    pub(crate) fn all_known(&mut self) {
        self.all_learnt(|learnt| {
            learnt.error = 0.0;
            learnt.measured = Measured::Phase;
        });
    }

    /// Makes and applies the policy's decision `ms` later. `None` as a trigger: the requested wake-up is due.
    pub(crate) fn decide(&mut self, ms: u64, trigger: Option<Trigger>) {
        self.snap.now += Nanos::from_ms(ms);
        self.snap.triggers = vec![trigger.unwrap_or(Trigger::QuantumEnd)];
        self.decision = self.policy.decide(&self.snap, &mut Rng::new(1));
        assert_eq!(check(&self.snap, &self.decision), Ok(()));
        let now = self.snap.now;
        for change in &self.decision.changes {
            let task = self
                .snap
                .tasks
                .iter_mut()
                .find(|task| task.id == change.task())
                .unwrap();
            task.running = match change {
                Change::Place {
                    placement,
                    purpose,
                    lease_end,
                    ..
                } => {
                    task.last_cpus = placement.cpus().clone();
                    let (placement, purpose, lease_end) = (placement.clone(), *purpose, *lease_end);
                    Some(Running {
                        placement,
                        purpose,
                        since: now,
                        lease_end,
                    })
                }
                Change::Stop { .. } => None,
            };
        }
    }

    pub(crate) fn end(&mut self, id: u32) {
        self.snap.tasks.retain(|task| task.id != TaskId(id));
    }

    /// The jobs that run in the present step with a core each.
    pub(crate) fn measured(&self) -> Vec<u32> {
        let is_measured = |task: &TaskView| {
            let whole = |running: &Running| {
                matches!(
                    running.placement,
                    Placement::Exclusive {
                        whole_core: true,
                        ..
                    }
                )
            };
            task.running.as_ref().is_some_and(whole)
        };
        self.snap
            .tasks
            .iter()
            .filter(|task| is_measured(task))
            .map(|task| task.id.0)
            .collect()
    }

    pub(crate) fn wake_in(&self) -> Nanos {
        self.decision.next_wake.unwrap() - self.snap.now
    }
}

pub(crate) fn even(settings: &[(&str, &str)]) -> Box<dyn Policy> {
    policy(
        POLICIES.iter().find(|entry| entry.name == "even").unwrap(),
        settings,
    )
}

/// The one of these CPUs that a task has now.
pub(crate) fn cpu_of(play: &Play, id: u32) -> Option<u32> {
    let task = play
        .snap
        .tasks
        .iter()
        .find(|task| task.id == TaskId(id))
        .unwrap();
    task.running
        .as_ref()?
        .placement
        .cpus()
        .first()
        .map(|cpu| cpu.0)
}
