//! Jobs keep up with each other: fast cores, leads, critical jobs and gangs.

use super::play::{Play, cpu_of};
use cosched_core::model::contention::PhaseDemand;
use cosched_core::*;
use std::sync::Arc;

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
        learnt.asks = PhaseDemand {
            llc: 0.0,
            reads: 0.0,
            ..learnt.asks
        };
        learnt.solo_cpi = learnt.asks.own;
        learnt.error = 0.0;
        learnt.measured = Measured::Phase;
        learnt.slower = vec![PhaseDemand {
            ghz: 0.5 * learnt.asks.ghz,
            ..learnt.asks
        }];
    });
    // The last job is as fast on a slow core, so the fast core is for the others.
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
    // 1 and 2 share the fast core. The third would get ahead of them, so it pauses now and then.
    assert!(
        fast[0].abs_diff(fast[1]) <= 3 && fast[2] < 6,
        "{fast:?} {progress:?}"
    );
    assert!(
        progress.iter().all(|done| (40.0..50.0).contains(done)),
        "{progress:?}"
    );
}

#[test]
fn jobs_take_turns_at_sharing_a_core_though_all_fit() {
    let mut play = Play::new();
    play.snap.machine = Arc::new(Machine::uniform("four cores", 4, 2));
    (6..8).for_each(|id| play.end(id));
    play.all_known();
    for _ in 0..60 {
        play.decide(200, None);
        let on_core = |core: u32| {
            (0..6)
                .filter(|&id| cpu_of(&play, id).map(|cpu| cpu % 4) == Some(core))
                .count()
        };
        let jobs: Vec<usize> = (0..4).map(on_core).collect();
        for id in 0..6 {
            let Some(cpu) = cpu_of(&play, id) else {
                continue;
            };
            let speed = if jobs[cpu as usize % 4] > 1 { 0.6 } else { 1.0 };
            play.learnt(id, |learnt| learnt.progress += speed);
        }
    }
    let progress =
        |task: &TaskView| task.estimates.learnt.as_ref().value().unwrap().progress - 10.0;
    let done: Vec<f64> = play.snap.tasks.iter().map(|task| progress(task)).collect();
    // 60 quanta x (2 x 1 + 4 x 0.6) / 6 is 44; those who always shared a core would do 36.
    assert!(
        done.iter().all(|done| (41.0..48.0).contains(done)),
        "{done:?}"
    );
}

/// A task that waits because of its lead has more progress than the reported limit, and no running task does.
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
    // One job makes no progress at all, or a quarter of the others' progress. CPUs are idle for its sake only until it is
    // far behind.
    for (cpus, share) in [(4, 0.0), (4, 0.25), (16, 0.0), (16, 0.25)] {
        let mut play = Play::new();
        play.snap.machine = Arc::new(Machine::uniform("one thread a core", cpus, 1));
        let first = play.snap.tasks[0].clone();
        for id in 8..2 * cpus {
            let mut next = first.clone();
            next.id = TaskId(id);
            play.snap.tasks.push(next);
        }
        play.all_known();
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
        assert!(idle < 8, "{cpus} {share}: {idle}");
    }
}

#[test]
fn a_job_that_is_far_ahead_and_can_not_be_stopped_changes_nothing_for_the_others() {
    let mut play = Play::new();
    play.all_known();
    // The first job is critical: it runs in any case.
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
    play.all_known();
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
    let gangs: Vec<&Box<TaskView>> = play.snap.tasks[1..3]
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
