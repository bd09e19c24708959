//! The cores that `even` leaves idle to save energy.

use super::play::{Play, even};
use cosched_core::model::contention::PhaseDemand;
use cosched_core::*;

#[test]
fn to_save_energy_cores_stay_idle_though_all_jobs_fit() {
    // At the default power a second core costs 12 W of about 60 and gains hardly anything here.
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
            .map(|task| progress(task))
            .fold(f64::INFINITY, f64::min);
        let greatest = play
            .snap
            .tasks
            .iter()
            .map(|task| progress(task))
            .fold(0.0, f64::max);
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
    // Four compute-bound tasks share the power of the first core; the last one has to pay for it alone.
    let mut play = Play::at_a_scarce_memory("energy");
    play.policy = even(&[
        ("objective", "energy"),
        ("p1_w", "100"),
        ("p2_w", "1"),
        ("p_more_w", "1"),
    ]);
    play.all_learnt(|learnt| {
        learnt.asks = PhaseDemand {
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
