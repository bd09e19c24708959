//! `even` from decision to decision: its measurements, what it leaves idle to save energy, and who has the fast cores.

mod random;

use cosched_core::model::contention::{Asks, Latency};
use cosched_core::*;
use random::*;
use std::sync::Arc;

/// A policy, its tasks, and what its last decision was.
struct Play {
    policy: Box<dyn Policy>,
    snap: Snapshot,
    decision: Decision,
}

impl Play {
    /// Eight tasks on two cores of two CPUs, none of which was measured, at the end of a quantum.
    fn new() -> Play {
        let view = |id: u32| {
            let asks = Asks {
                own: 0.5,
                penalty: 60.0,
                l1: 0.3,
                llc: 1e-3,
                reads: 1e-4,
                steepness: 0.3,
                ghz: 2.0,
            };
            let learnt = Learnt {
                asks,
                solo_cpi: asks.solo_cpi(&Default::default()),
                error: 0.3,
                progress: 10.0,
                phase: 0,
                stay: 9,
                measured: false,
                settling: None,
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
            admits: None,
            contention: Default::default(),
            tasks: (0..8).map(view).collect(),
        };
        Play {
            policy: even(&[]),
            snap,
            decision: Decision::default(),
        }
    }

    /// Four known jobs on four cores, each of which asks for two thirds of what the memory delivers.
    fn at_a_scarce_memory(objective: &str) -> Play {
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
            learnt.asks = Asks {
                own: 0.4,
                penalty: 10.0,
                llc: 0.04,
                reads: 0.02,
                ..learnt.asks
            };
            learnt.solo_cpi = learnt.asks.solo_cpi(&shared);
            (learnt.error, learnt.measured) = (0.005, true);
        });
        play
    }

    fn running(&self) -> usize {
        self.snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .count()
    }

    /// What those that ran in a quantum have done, if they had all of the memory.
    fn pass(&mut self) {
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

    fn learnt(&mut self, id: u32, change: impl Fn(&mut Learnt)) {
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

    fn all_learnt(&mut self, change: impl Fn(&mut Learnt)) {
        let ids: Vec<u32> = self.snap.tasks.iter().map(|task| task.id.0).collect();
        ids.into_iter().for_each(|id| self.learnt(id, &change));
    }

    /// What the policy decides `ms` later, which is carried out. `None` as a trigger: what it asked for is due.
    fn decide(&mut self, ms: u64, trigger: Option<Trigger>) {
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

    fn end(&mut self, id: u32) {
        self.snap.tasks.retain(|task| task.id != TaskId(id));
    }

    /// Those that run in the present step with a core each.
    fn measured(&self) -> Vec<u32> {
        let is_measured = |task: &&TaskView| {
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
            .filter(is_measured)
            .map(|task| task.id.0)
            .collect()
    }

    fn wake_in(&self) -> Nanos {
        self.decision.next_wake.unwrap() - self.snap.now
    }
}

fn even(settings: &[(&str, &str)]) -> Box<dyn Policy> {
    policy(
        POLICIES.iter().find(|entry| entry.name == "even").unwrap(),
        settings,
    )
}

#[test]
fn to_save_energy_cores_stay_idle_though_all_jobs_fit() {
    // At the default power a second core costs 12 W of some 60 and gains hardly anything here.
    for (objective, most) in [("time", 4), ("energy", 2), ("edp", 3)] {
        let mut play = Play::at_a_scarce_memory(objective);
        for _ in 0..40 {
            play.decide(200, None);
            play.pass();
        }
        let runs = play.running();
        assert!(
            (1..=most).contains(&runs) && (objective == "time") == (runs == 4),
            "{objective}: {runs}"
        );
        let progress = |task: &TaskView| task.estimates.learnt.as_ref().value().unwrap().progress;
        let least = play
            .snap
            .tasks
            .iter()
            .map(progress)
            .fold(f64::INFINITY, f64::min);
        let greatest = play.snap.tasks.iter().map(progress).fold(0.0, f64::max);
        assert!(greatest - least < 2.0, "{objective}: {least} to {greatest}");
        if objective != "time" {
            assert!(play.decision.waits.iter().all(|wait| {
                matches!(
                    wait.reason,
                    WaitReason::Outweighed { .. } | WaitReason::Lead { .. }
                )
            }));
        }
    }
}

#[test]
fn what_is_left_runs_though_it_brings_less_for_a_watt_than_what_has_ended() {
    // Four that only compute share the power of the first core; the last one has to pay for it alone.
    let mut play = Play::at_a_scarce_memory("energy");
    play.policy = even(&[
        ("objective", "energy"),
        ("p1_w", "100"),
        ("p2_w", "1"),
        ("p_more_w", "1"),
    ]);
    play.all_learnt(|learnt| {
        learnt.asks = Asks {
            llc: 0.0,
            reads: 0.0,
            ..learnt.asks
        };
        learnt.solo_cpi = learnt.asks.own;
    });
    for _ in 0..40 {
        play.decide(200, None);
        assert_eq!(play.running(), 4);
        play.pass();
    }
    (1..4).for_each(|id| play.end(id));
    for _ in 0..40 {
        play.decide(200, None);
        assert_eq!(play.running(), 1);
        play.pass();
    }
}

#[test]
fn a_core_that_is_idle_to_save_energy_is_not_filled_between_quanta() {
    let mut play = Play::at_a_scarce_memory("energy");
    for _ in 0..20 {
        play.pass();
        play.decide(200, None);
    }
    let runs = play.running();
    let waits = play
        .snap
        .tasks
        .iter()
        .find(|task| task.running.is_none())
        .unwrap()
        .id;
    play.decide(50, Some(Trigger::Woke(waits)));
    assert_eq!(play.running(), runs);
}

const STEP: Nanos = Nanos::from_ms(15);

#[test]
fn jobs_of_which_nothing_was_measured_get_a_core_each_for_two_steps() {
    let mut play = Play::new();
    play.decide(0, None);
    let first = play.measured();
    assert_eq!(first.len(), 2);
    assert_eq!(
        (play.decision.basis.measures, play.wake_in()),
        (Some(TaskId(first[0])), STEP)
    );
    assert!(
        play.decision
            .waits
            .iter()
            .all(|wait| matches!(wait.reason, WaitReason::Measuring { .. }))
    );
    // The second step is the one that counts.
    play.decide(15, None);
    assert_eq!((play.measured(), play.wake_in()), (first, STEP));
    play.decide(15, None);
    assert_eq!(
        (play.measured(), play.decision.basis.measures),
        (vec![], None)
    );
    assert_eq!(
        play.snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .count(),
        4
    );
}

#[test]
fn a_later_measurement_goes_on_while_the_cache_fills() {
    let mut play = Play::new();
    play.all_learnt(|learnt| learnt.measured = true);
    play.decide(0, None);
    let first = play.measured();
    for (settling, goes_on) in [
        (None, true),
        (Some(0.05), true),
        (Some(0.02), true),
        (Some(0.005), false),
    ] {
        first
            .iter()
            .for_each(|&id| play.learnt(id, |learnt| learnt.settling = settling));
        play.decide(15, None);
        assert_eq!(!play.measured().is_empty(), goes_on, "{settling:?}");
    }
}

#[test]
fn nobody_begins_beside_a_measurement_when_a_job_ends() {
    let mut play = Play::new();
    play.decide(0, None);
    let first = play.measured();
    play.end(first[0]);
    play.decide(5, Some(Trigger::Ended(TaskId(first[0]))));
    assert_eq!(
        (play.decision.changes.len(), play.measured(), play.wake_in()),
        (0, vec![first[1]], Nanos::from_ms(10))
    );
    // Without anybody who is measured there is nothing to disturb.
    play.end(first[1]);
    play.decide(5, Some(Trigger::Ended(TaskId(first[1]))));
    assert_eq!(
        play.snap
            .tasks
            .iter()
            .filter(|task| task.running.is_some())
            .count(),
        4
    );
}

#[test]
fn an_overdue_job_does_not_wait_for_a_measurement() {
    let mut play = Play::new();
    play.decide(0, None);
    let first = play.measured();
    play.end(first[0]);
    let late = play
        .snap
        .tasks
        .iter()
        .position(|task| task.running.is_none())
        .unwrap();
    play.snap.tasks[late].overdue = true;
    play.decide(5, Some(Trigger::Ended(TaskId(first[0]))));
    assert!(play.snap.tasks[late].running.is_some());
    // The step that goes on still ends when it was to end.
    assert_eq!(play.wake_in(), Nanos::from_ms(10));
    // Nothing is measured while a job is overdue.
    let mut play = Play::new();
    play.snap.tasks[3].overdue = true;
    play.decide(0, None);
    assert_eq!(
        (play.measured(), play.snap.tasks[3].running.is_some()),
        (vec![], true)
    );
}

#[test]
fn who_is_known_to_fill_the_memory_is_measured_without_others_that_read() {
    let with = |penalty: f64, reads: [f64; 4]| {
        let mut play = Play::new();
        play.snap.machine = Arc::new(Machine::uniform("three cores", 3, 1));
        play.snap.contention.memory = Latency {
            most: Some(0.1),
            rise: 0.2,
        };
        (4..8).for_each(|id| play.end(id));
        let shared = play.snap.contention;
        for (id, reads) in (0..).zip(reads) {
            play.learnt(id, |learnt| {
                // As many cycles as a read takes at a full memory, whether they are laid to the reads or to the core.
                let own = if penalty > 0.0 {
                    0.5
                } else {
                    f64::max(0.5, 2.0 * reads / 0.1)
                };
                learnt.asks = Asks {
                    own,
                    penalty,
                    llc: reads,
                    reads,
                    ..learnt.asks
                };
                (learnt.solo_cpi, learnt.measured) = (learnt.asks.solo_cpi(&shared), true);
            });
        }
        play.decide(0, None);
        play.measured()
    };
    // Two that each take what the memory delivers, also if nothing is known of how long they wait for it.
    for penalty in [60.0, 0.0] {
        assert_eq!(with(penalty, [0.25, 0.25, 0.0, 0.0]), [0, 2, 3]);
    }
}

#[test]
fn who_hardly_reads_is_measured_beside_jobs_that_fill_the_memory() {
    let company = |reads: f64| {
        let mut play = Play::new();
        play.snap.machine = Arc::new(Machine::uniform("three cores", 3, 1));
        play.snap.contention.memory = Latency {
            most: Some(0.1),
            rise: 0.2,
        };
        (4..8).for_each(|id| play.end(id));
        let shared = play.snap.contention;
        for (id, reads) in (0..).zip([0.25, 0.25, reads, 0.0]) {
            play.learnt(id, |learnt| {
                learnt.asks = Asks {
                    own: f64::max(0.5, reads / 0.05),
                    penalty: 0.0,
                    llc: reads,
                    reads,
                    ..learnt.asks
                };
                (learnt.solo_cpi, learnt.measured) = (learnt.asks.solo_cpi(&shared), true);
                learnt.error = if id == 2 { 0.3 } else { 0.001 };
            });
        }
        play.decide(0, None);
        assert_eq!(play.measured(), [2]);
        (0..2).filter(|&id| cpu_of(&play, id).is_some()).count()
    };
    // 0.8 % and 40 % of what the memory delivers.
    assert_eq!((company(0.000_2), company(0.01)), (1, 0));
}

#[test]
fn a_job_that_is_ahead_is_no_company() {
    // Two that read much can't be measured together, so that one core is free for others.
    let run = |ahead: &[u32]| {
        let mut play = Play::new();
        play.snap.contention.memory.most = Some(0.02);
        for id in 0..8 {
            play.learnt(id, |learnt| {
                learnt.measured = id > 1;
                learnt.error = if id > 1 { 0.0 } else { 0.3 };
                learnt.asks.reads = if id > 1 { 1e-5 } else { 0.01 };
                learnt.asks.llc = learnt.asks.reads;
                learnt.progress = if ahead.contains(&id) { 10.9 } else { 10.0 };
                learnt.solo_cpi = learnt.asks.solo_cpi(&Default::default());
            });
        }
        play.decide(0, None);
        let beside = |task: &&TaskView| {
            task.running
                .as_ref()
                .is_some_and(|running| running.purpose == Purpose::Run)
        };
        let company: Vec<u32> = play
            .snap
            .tasks
            .iter()
            .filter(beside)
            .map(|task| task.id.0)
            .collect();
        (play.measured(), company)
    };
    assert_eq!(run(&[]), (vec![0], vec![2, 3]));
    assert_eq!(run(&[2, 3, 4, 5]), (vec![0], vec![6, 7]));
    assert_eq!(run(&[2, 3, 4, 5, 6, 7]), (vec![0], vec![]));
}

#[test]
fn a_job_that_cannot_be_stopped_prevents_measurements() {
    let mut play = Play::new();
    let cpus = CpuSet::from_iter([CpuId(0)]);
    let placement = Placement::Exclusive {
        cpus,
        whole_core: false,
    };
    play.snap.tasks[5].control.freeze = false;
    play.snap.tasks[5].running = Some(Running {
        placement,
        purpose: Purpose::Run,
        since: Nanos::ZERO,
        lease_end: None,
    });
    play.decide(0, None);
    assert!(
        play.measured().is_empty()
            && play
                .snap
                .tasks
                .iter()
                .filter(|task| task.running.is_some())
                .count()
                == 4
    );
}

/// Which of these CPUs a task has now.
fn cpu_of(play: &Play, id: u32) -> Option<u32> {
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

#[test]
fn a_job_is_measured_at_the_cache_where_it_was() {
    let mut play = Play::new();
    let mut machine = Machine::uniform("two caches", 4, 1);
    machine
        .cpus
        .iter_mut()
        .filter(|cpu| cpu.id.0 >= 2)
        .for_each(|cpu| cpu.llc = 1);
    machine.llcs = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
    play.snap.machine = Arc::new(machine);
    // All but the first two were at the second cache; the last two are the best known.
    for (id, task) in (0..).zip(&mut play.snap.tasks) {
        task.last_cpus = CpuSet::from_iter([CpuId(if id < 2 { id } else { 2 + id % 2 })]);
    }
    for id in [6, 7] {
        play.learnt(id, |learnt| (learnt.measured, learnt.error) = (true, 0.0));
    }
    play.decide(0, None);
    assert_eq!(play.measured().len(), 4, "{:?}", play.decision);
    assert_eq!([0, 1].map(|id| cpu_of(&play, id)), [Some(0), Some(1)]);
    let there = play
        .measured()
        .into_iter()
        .filter(|&id| id > 1)
        .map(|id| cpu_of(&play, id).unwrap());
    assert_eq!(
        there.collect::<std::collections::BTreeSet<u32>>(),
        [2, 3].into()
    );
    // The second step is where the first one was.
    let before: Vec<_> = (0..8).map(|id| cpu_of(&play, id)).collect();
    play.decide(15, None);
    assert_eq!(
        (0..8).map(|id| cpu_of(&play, id)).collect::<Vec<_>>(),
        before
    );
}

#[test]
fn the_fast_core_goes_round_though_all_jobs_fit() {
    let mut play = Play::new();
    let mut machine = Machine::uniform("one fast", 3, 1);
    machine
        .cpus
        .iter_mut()
        .filter(|cpu| cpu.id.0 > 0)
        .for_each(|cpu| cpu.core_type = 1);
    let kind = |name: &str| CoreType {
        name: name.to_owned(),
        capacity: None,
        max_khz: None,
    };
    machine.core_types = vec![kind("big"), kind("small")];
    play.snap.machine = Arc::new(machine);
    (3..8).for_each(|id| play.end(id));
    play.all_learnt(|learnt| {
        learnt.asks = Asks {
            llc: 0.0,
            reads: 0.0,
            ..learnt.asks
        };
        learnt.solo_cpi = learnt.asks.own;
        (learnt.measured, learnt.error) = (true, 0.0);
        learnt.slower = vec![Asks {
            ghz: 0.5 * learnt.asks.ghz,
            ..learnt.asks
        }];
    });
    // The last one does as much on a slow core, so the fast one is for the others.
    play.learnt(2, |learnt| learnt.slower = vec![learnt.asks]);
    let mut fast = [0; 3];
    for _ in 0..60 {
        play.decide(200, None);
        for id in 0..3 {
            let cpu = cpu_of(&play, id);
            let speed = match cpu {
                Some(0) => 1.0,
                Some(_) if id < 2 => 0.5,
                Some(_) => 1.0,
                None => 0.0,
            };
            fast[id as usize] += usize::from(cpu == Some(0));
            play.learnt(id, |learnt| learnt.progress += speed);
        }
    }
    let progress = [0, 1, 2].map(|at: usize| {
        play.snap.tasks[at]
            .estimates
            .learnt
            .as_ref()
            .value()
            .unwrap()
            .progress
            - 10.0
    });
    // 1 and 2 share the fast core. The third would be ahead of them, so it pauses now and then.
    assert!(
        fast[0].abs_diff(fast[1]) <= 3 && fast[2] < 6,
        "{fast:?} {progress:?}"
    );
    assert!(
        progress.iter().all(|done| (40.0..50.0).contains(done)),
        "{progress:?}"
    );
}

/// Whoever waits because of its lead has more progress than the limit that is told, and nobody who runs does.
fn leads_are_told_as_they_are(play: &Play) {
    let milli =
        |task: &TaskView| (1e3 * task.estimates.learnt.as_ref().value().unwrap().progress) as u64;
    for wait in &play.decision.waits {
        if let WaitReason::Lead {
            progress_milli,
            limit_milli,
        } = wait.reason
        {
            assert!(progress_milli > limit_milli, "{wait:?}");
            let mut running = play.snap.tasks.iter().filter(|task| task.running.is_some());
            assert!(running.all(|task| milli(task) <= limit_milli), "{wait:?}");
        }
    }
}

#[test]
fn who_can_not_keep_up_does_not_stop_the_others() {
    // One of the jobs does nothing at all, or a quarter of what the others do. A quarter of a small machine is idle for its
    // sake at most, and a sixth of a larger one.
    for (cpus, share) in [(4, 0.0), (4, 0.25), (16, 0.0), (16, 0.25)] {
        let mut play = Play::new();
        play.snap.machine = Arc::new(Machine::uniform("one thread a core", cpus, 1));
        let first = play.snap.tasks[0].clone();
        for id in 8..2 * cpus {
            play.snap.tasks.push(TaskView {
                id: TaskId(id),
                ..first.clone()
            });
        }
        play.all_learnt(|learnt| (learnt.measured, learnt.error) = (true, 0.0));
        let tasks = play.snap.tasks.len() as u32;
        let (mut idle, mut waited) = (0, vec![0u32; tasks as usize]);
        for quantum in 0..200 {
            play.decide(200, None);
            leads_are_told_as_they_are(&play);
            for id in 0..tasks {
                let speed = if id == 0 { share } else { 1.0 };
                if cpu_of(&play, id).is_some() {
                    waited[id as usize] = 0;
                    play.learnt(id, |learnt| learnt.progress += speed);
                } else {
                    waited[id as usize] += 1;
                }
            }
            assert!(
                waited.iter().all(|&waited| waited < 15),
                "{cpus} {share} {quantum}: {waited:?}"
            );
            idle += cpus as usize - play.running();
        }
        let most = if cpus == 4 { 4 } else { 6 };
        assert!(idle < 200 * cpus as usize / most, "{cpus} {share}: {idle}");
    }
}

#[test]
fn a_job_that_is_far_ahead_and_can_not_be_stopped_changes_nothing_for_the_others() {
    let mut play = Play::new();
    play.all_learnt(|learnt| (learnt.measured, learnt.error) = (true, 0.0));
    // The first is critical: it runs in any case.
    play.snap.tasks[0].expected = Some(Expected::of(Nanos::from_ms(9_000_000), ExpectedFrom::Same));
    for id in 1..8 {
        play.snap.tasks[id as usize].expected =
            Some(Expected::of(Nanos::from_ms(30_000), ExpectedFrom::Same));
        play.learnt(id, |learnt| learnt.progress += f64::from(id) * 2.0);
    }
    play.learnt(0, |learnt| learnt.progress = 1_000.0);
    for _ in 0..60 {
        play.decide(200, None);
        for id in 0..8 {
            if cpu_of(&play, id).is_some() {
                play.learnt(id, |learnt| learnt.progress += 1.0);
            }
        }
        assert!(cpu_of(&play, 0).is_some());
    }
    let progress = |at: usize| {
        play.snap.tasks[at]
            .estimates
            .learnt
            .as_ref()
            .value()
            .unwrap()
            .progress
    };
    let others: Vec<f64> = (1..8).map(progress).collect();
    let (least, greatest) = (
        others.iter().copied().fold(f64::INFINITY, f64::min),
        others.iter().copied().fold(0.0, f64::max),
    );
    assert!(greatest - least < 3.0, "{others:?}");
}

#[test]
fn gangs_leave_a_cpu_for_a_critical_job_and_their_cores_are_their_own() {
    let mut play = Play::new();
    play.snap.machine = Arc::new(Machine::uniform("four cores", 4, 2));
    play.all_learnt(|learnt| (learnt.measured, learnt.error) = (true, 0.0));
    for id in [1usize, 2] {
        play.snap.tasks[id].cpus = 4;
        play.learnt(id as u32, |learnt| learnt.progress = 0.0);
    }
    play.snap.tasks[0].expected = Some(Expected::of(Nanos::from_ms(9_000_000), ExpectedFrom::Same));
    for task in &mut play.snap.tasks[1..] {
        task.expected = Some(Expected::of(Nanos::from_ms(3_000), ExpectedFrom::Same));
    }
    play.learnt(0, |learnt| learnt.progress = 20.0);
    play.decide(200, None);
    assert!(cpu_of(&play, 0).is_some());
    let gangs: Vec<&TaskView> = play.snap.tasks[1..3]
        .iter()
        .filter(|task| task.running.is_some())
        .collect();
    assert_eq!(gangs.len(), 1);
    let core = |cpu: CpuId| play.snap.machine.cpus[play.snap.machine.index_of(cpu).unwrap()].core;
    let of = |task: &TaskView| {
        task.running
            .as_ref()
            .unwrap()
            .placement
            .cpus()
            .iter()
            .map(core)
            .collect::<Vec<_>>()
    };
    let taken = of(gangs[0]);
    assert_eq!(
        (
            taken.len(),
            taken
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        ),
        (4, 2),
        "{taken:?}"
    );
    for task in play
        .snap
        .tasks
        .iter()
        .filter(|task| task.cpus == 1 && task.running.is_some())
    {
        assert!(
            of(task).iter().all(|core| !taken.contains(core)),
            "{:?}",
            task.id
        );
    }
}
