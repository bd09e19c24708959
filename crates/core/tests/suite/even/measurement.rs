//! Which jobs are measured, where, for how long and beside which others.

use super::play::{Play, cpu_of};
use cosched_core::model::contention::{Latency, PhaseDemand};
use cosched_core::*;
use std::sync::Arc;

const COUNTED: Nanos = Nanos::from_ms(3);

#[test]
fn a_job_of_which_nothing_was_measured_is_alone_for_three_steps() {
    let mut play = Play::new();
    play.decide(0, None);
    let first = play.measured();
    assert_eq!(first.len(), 1);
    assert_eq!(
        (play.decision.basis.measures, play.wake_in()),
        (Some(TaskId(first[0])), COUNTED)
    );
    assert!(
        play.decision
            .waits
            .iter()
            .all(|wait| matches!(wait.reason, WaitReason::Measuring { .. }))
    );
    // From the second step on it is alone. The third counts, since the job did not get faster.
    for _ in 0..2 {
        play.decide(3, None);
        assert_eq!((play.measured(), play.wake_in()), (first.clone(), COUNTED));
        let running = play.snap.tasks[first[0] as usize].running.as_ref();
        let purpose = running.map(|running| running.purpose);
        assert_eq!(purpose, Some(Purpose::MeasureAlone));
    }
    play.decide(3, None);
    assert_eq!(
        (play.measured(), play.decision.basis.measures),
        (vec![], None)
    );
    assert_eq!(play.running(), 4);
}

/// What the learner says after a measurement of all jobs.
fn set_measured(play: &mut Play, measured: Measured, error: f64) {
    play.all_learnt(|learnt| {
        learnt.measured = measured;
        learnt.error = error;
    });
}

#[test]
fn a_measurement_goes_on_while_a_job_gets_faster() {
    let mut play = Play::new();
    let mut steps = Vec::new();
    for (ms, rate) in [
        (0, 1_000),
        (3, 1_000),
        (3, 1_050),
        (3, 1_100),
        (15, 1_150),
        (3, 1_200),
        (6, 1_201),
    ] {
        for task in &mut play.snap.tasks {
            task.estimates.cpu_instructions = Reading::Value(rate);
        }
        play.decide(ms, None);
        steps.push((play.measured().len(), play.wake_in()));
    }
    let one = |ms: u64| (1, Nanos::from_ms(ms));
    // The fourth step is as long as the cache takes to fill.
    assert_eq!(steps[..6], [3, 3, 3, 15, 3, 6].map(one));
    assert_eq!(steps[6].0, 0, "less than 1 % faster: it is over");
}

#[test]
fn a_measurement_goes_on_while_a_job_reads_less() {
    let mut play = Play::new();
    let mut steps = Vec::new();
    let reads_of_steps = [
        (0, 9_000),
        (3, 9_000),
        (3, 8_500),
        (3, 7_500),
        (15, 7_000),
        (3, 6_990),
    ];
    for (ms, reads) in reads_of_steps {
        for task in &mut play.snap.tasks {
            task.estimates.cpu_instructions = Reading::Value(1_000_000);
            task.estimates.cpu_mm_reads = Reading::Value(Rate(reads));
        }
        play.decide(ms, None);
        steps.push(play.measured().len());
    }
    assert_eq!(steps, [1, 1, 1, 1, 1, 0]);
}

#[test]
fn a_phase_that_was_never_measured_is_measured_and_a_known_one_is_not() {
    let mut play = Play::new();
    set_measured(&mut play, Measured::OtherPhase, 0.001);
    play.decide(0, None);
    assert_eq!(play.measured().len(), 1);
    let mut play = Play::new();
    set_measured(&mut play, Measured::Phase, 0.001);
    play.decide(0, None);
    assert!(play.measured().is_empty());
}

#[test]
fn a_job_that_was_never_measured_comes_before_a_new_phase_of_another() {
    let mut play = Play::new();
    set_measured(&mut play, Measured::OtherPhase, 0.5);
    play.learnt(5, |learnt| {
        learnt.measured = Measured::Never;
        learnt.error = 0.1;
    });
    play.decide(0, None);
    assert_eq!(play.measured(), [5]);
}

#[test]
fn who_was_measured_in_vain_waits_for_the_others_also_while_there_is_no_time_to_measure() {
    let mut play = Play::new();
    let mut turns = Vec::new();
    let (mut rate, mut step) = (1_000, Nanos::ZERO);
    for _ in 0..60 {
        // All get faster in each step, so measurements are long. Nothing is ever learnt by them.
        rate += rate / 10;
        for task in &mut play.snap.tasks {
            task.estimates.cpu_instructions = Reading::Value(rate);
        }
        play.decide(step.0 / 1_000_000, None);
        step = play.wake_in();
        if let Some(TaskId(job)) = play.decision.basis.measures
            && turns.last() != Some(&job)
        {
            turns.push(job);
        }
    }
    let distinct: std::collections::BTreeSet<u32> = turns.iter().copied().collect();
    assert!(
        turns.len() > 3 && distinct.len() == turns.len(),
        "{turns:?}"
    );
}

/// A machine whose cores of one CPU have a last-level cache each.
fn with_caches(cores: u32) -> Machine {
    let mut machine = Machine::uniform("caches", cores, 1);
    for (llc, cpu) in machine.cpus.iter_mut().enumerate() {
        cpu.llc = llc;
    }
    let cpus = machine.cpus.iter().map(|cpu| CpuSet::from_iter([cpu.id]));
    machine.llcs = cpus.collect();
    machine
}

#[test]
fn nobody_begins_beside_a_measurement_when_a_job_ends() {
    let mut play = Play::new();
    play.snap.machine = Arc::new(with_caches(2));
    play.decide(0, None);
    let first = play.measured();
    assert_eq!(first.len(), 2);
    play.end(first[0]);
    play.decide(2, Some(Trigger::Ended(TaskId(first[0]))));
    assert_eq!(
        (play.decision.changes.len(), play.measured(), play.wake_in()),
        (0, vec![first[1]], Nanos::from_ms(1))
    );
    // Without a measured job there is nothing to disturb.
    play.end(first[1]);
    play.decide(1, Some(Trigger::Ended(TaskId(first[1]))));
    assert_eq!(play.running(), 2);
}

#[test]
fn an_overdue_job_does_not_wait_for_a_measurement() {
    let mut play = Play::new();
    play.snap.machine = Arc::new(with_caches(2));
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
    play.decide(2, Some(Trigger::Ended(TaskId(first[0]))));
    assert!(play.snap.tasks[late].running.is_some());
    // The continued step still ends at its planned time.
    assert_eq!(play.wake_in(), Nanos::from_ms(1));
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
        play.snap.machine = Arc::new(with_caches(3));
        play.snap.contention.memory = Latency {
            most: Some(0.1),
            rise: 0.2,
        };
        (4..8).for_each(|id| play.end(id));
        let shared = play.snap.contention;
        for (id, reads) in (0..).zip(reads) {
            play.learnt(id, |learnt| {
                // As many cycles as a read takes at a full memory, whether attributed to the reads or to the core.
                let own = if penalty > 0.0 {
                    0.5
                } else {
                    f64::max(0.5, 2.0 * reads / 0.1)
                };
                learnt.asks = PhaseDemand {
                    own,
                    penalty,
                    llc: reads,
                    reads,
                    ..learnt.asks
                };
                learnt.solo_cpi = learnt.asks.solo_cpi(&shared);
            });
        }
        play.decide(0, None);
        play.measured()
    };
    // Two jobs that each saturate the memory, also if their waiting time for it is unknown.
    for penalty in [16.0, 0.0] {
        assert_eq!(with(penalty, [0.25, 0.25, 0.0, 0.0]), [0, 2, 3]);
    }
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

#[test]
fn a_job_is_measured_at_the_cache_where_it_was() {
    let mut play = Play::new();
    play.snap.machine = Arc::new(with_caches(2));
    // The first was at the second cache, and the other way round.
    for (id, task) in (0..).zip(&mut play.snap.tasks) {
        task.last_cpus = CpuSet::from_iter([CpuId((id + 1) % 2)]);
    }
    play.decide(0, None);
    assert_eq!(play.measured(), [0, 1]);
    assert_eq!([0, 1].map(|id| cpu_of(&play, id)), [Some(1), Some(0)]);
    // The second step is on the same CPUs as the first.
    let before: Vec<_> = (0..8).map(|id| cpu_of(&play, id)).collect();
    play.decide(3, None);
    assert_eq!(
        (0..8).map(|id| cpu_of(&play, id)).collect::<Vec<_>>(),
        before
    );
}
