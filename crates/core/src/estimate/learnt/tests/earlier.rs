//! What an earlier run learnt.

use super::*;

#[test]
fn what_an_earlier_run_learnt_is_known_from_the_beginning() {
    for seed in SEEDS {
        let mut first = TestWorld::new(seed, 0.01);
        first.mix(80, true);
        let known = first.kept();
        assert!(known.iter().all(Option::is_some));
        let mut second = TestWorld::knowing(seed, 0.01, &known);
        let start = second.mean_error();
        let mut fresh = TestWorld::new(seed, 0.01);
        second.mix(6, false);
        fresh.mix(6, false);
        let ran = |job: &u32| fresh.learner.phase_of(TaskId(*job)).is_some();
        let (mut one, mut other, mut count) = (0.0, 0.0, 0.0);
        for job in (0..12).filter(ran) {
            one += second.cpi_error(job);
            other += fresh.cpi_error(job);
            count += 1.0;
        }
        assert!(one < 0.5 * other, "{one} {other}; 5 % of it was found");
        check("mean error of solo cycles at the start", start, 0.015);
        check("mean error of solo cycles", one / count, 0.013);
    }
}

#[test]
fn what_is_wrong_about_it_is_found_out() {
    let mut first = TestWorld::new(1, 0.01);
    first.mix(80, true);
    let known = first.kept();
    let changed = |change: fn(&mut EarlierPhase)| {
        let mut known = known.clone();
        known
            .iter_mut()
            .flatten()
            .flat_map(|earlier| &mut earlier.phases)
            .for_each(change);
        let mut world = TestWorld::knowing(1, 0.01, &known);
        world.mix(80, true);
        world.mean_error()
    };
    let right = first.mean_error();
    let slower = changed(|phase| scale(phase, 2.0));
    let faster = changed(|phase| scale(phase, 0.5));
    let a_bit = changed(|phase| scale(phase, 1.2));
    let flat = changed(|phase| (phase.asks.penalty, phase.asks.steepness) = (0.0, 0.0));
    for wrong in [slower, faster, a_bit, flat] {
        check("solo cycles more wrong than without", wrong - right, 0.001);
    }
    // Impossible values are rejected.
    let odd = changed(|phase| phase.solo_cpi = f64::NAN);
    assert_eq!(odd, changed(|phase| phase.asks.ghz = 0.0));
    assert_eq!(odd, right);
}

fn scale(phase: &mut EarlierPhase, by: f64) {
    phase.asks.own *= by;
    phase.solo_cpi *= by;
}

#[test]
fn what_was_never_measured_is_not_kept() {
    let mut world = TestWorld::new(1, 0.01);
    world.mix(20, false);
    assert!(world.kept().iter().all(Option::is_none));
}
