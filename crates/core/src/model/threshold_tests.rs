use super::*;
use crate::model::bus::throughput;
use crate::model::samples::{cases, demand};
use proptest::prelude::*;

/// The oracle: the largest `b` that is still worth it, by halving the interval and predicting from scratch.
fn brute_force(running: &[f64], needed: f64) -> Admission {
    let with = |b: f64| {
        let all: Vec<f64> = running.iter().copied().chain([b]).collect();
        throughput(&all).unwrap()
    };
    if with(0.0) < needed {
        return Admission::Nothing;
    }
    if with(1.0) >= needed {
        return Admission::Everything;
    }
    let (mut fits, mut too_much) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (fits + too_much);
        if with(middle) >= needed {
            fits = middle
        } else {
            too_much = middle
        }
    }
    Admission::UpTo(fits)
}

fn i5() -> PowerModel {
    PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3]).unwrap()
}

#[test]
fn agrees_with_brute_force_on_the_papers_machine() {
    for objective in [
        Objective::Energy,
        Objective::EnergyDelay,
        Objective::Throughput,
    ] {
        for running in 1..=4 {
            for percent in 0..=100 {
                let running = vec![f64::from(percent) / 100.0; running];
                let power = i5();
                let gain = objective
                    .gain(power.watts(running.len()), power.watts(running.len() + 1))
                    .unwrap();
                let oracle = brute_force(&running, throughput(&running).unwrap() * gain);
                let ours = threshold(&running, &power, objective).unwrap();
                match (ours, oracle) {
                    (Admission::UpTo(a), Admission::UpTo(b)) => {
                        assert!(
                            (a - b).abs() < 1e-8,
                            "{objective:?} {running:?}: {a}, expected {b}"
                        );
                    }
                    // With a gain of exactly 1 the needed throughput may be the bound itself, give or take a rounding.
                    (a, b) => {
                        assert!(
                            (a.threshold() - b.threshold()).abs() < 1e-8,
                            "{objective:?} {running:?}: {a:?} {b:?}"
                        )
                    }
                }
            }
        }
    }
}

#[test]
fn limits() {
    let check = |running: &[f64], gain: f64, expected: Admission| {
        assert_eq!(
            threshold_for_gain(running, gain).unwrap(),
            expected,
            "{running:?} with gain {gain}"
        );
    };
    check(&[], 5.0, Admission::Everything);
    check(&[0.5], 2.1, Admission::Nothing);
    check(&[0.5], 1.0, Admission::Everything);
    check(&[0.5], 0.0, Admission::Everything);
    // Beside a task that always uses the bus, only a task that never uses it adds anything.
    check(&[1.0], 1.5, Admission::UpTo(0.0));
    check(&[1.0], 2.0, Admission::UpTo(0.0));
    check(&[1.0], 2.1, Admission::Nothing);
    check(&[1.0, 0.3], 1.0, Admission::Everything);
    check(&[0.0; 3], 4.0 / 3.0, Admission::Everything);
    check(&[0.0; 3], 1.4, Admission::Nothing);
    // A task that is exactly worth its core.
    check(&[0.5], 2.0, Admission::UpTo(0.0));
    assert!(Admission::UpTo(0.3).admits(0.3) && !Admission::UpTo(0.3).admits(0.31));
    assert!(!Admission::Nothing.admits(0.0) && Admission::Everything.admits(1.0));
}

#[test]
fn extreme_mixtures_have_a_threshold_that_holds() {
    let values = [
        0.0,
        1e-300,
        1e-16,
        1e-9,
        0.02,
        0.5,
        0.98,
        1.0 - 1e-7,
        1.0 - f64::EPSILON / 2.0,
    ];
    for first in 0..values.len() {
        for last in first..values.len() {
            for tasks in [1, 2, 64, 4096] {
                let running: Vec<f64> = (0..tasks)
                    .map(|i| values[first + i % (last - first + 1)])
                    .collect();
                let undisturbed = running.iter().filter(|&&b| b == 0.0).count() as f64;
                let now = throughput(&running).unwrap();
                for part in [0.001, 0.3, 0.9, 0.999] {
                    let needed = (undisturbed + 1.0) + part * (now - undisturbed);
                    let Admission::UpTo(b) = threshold_for_gain(&running, needed / now).unwrap()
                    else {
                        continue;
                    };
                    assert!((0.0..=1.0).contains(&b));
                    let with = |b: f64| {
                        throughput(&running.iter().copied().chain([b]).collect::<Vec<_>>()).unwrap()
                    };
                    // Where b has no digits left below 1, the needed throughput lies between its neighbours.
                    let (less, more) = (
                        with((b * (1.0 - 1e-9)).min(b - f64::EPSILON).max(0.0)),
                        with((b * (1.0 + 1e-9) + f64::EPSILON).min(1.0)),
                    );
                    let held = more <= needed * (1.0 + 1e-9) && less >= needed * (1.0 - 1e-9);
                    assert!(
                        held,
                        "{tasks} of {first} to {last}, part {part}: b {b}, {less} to {more}, needed {needed}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_machine_computes_the_same_bits() {
    let running = [0.57, 0.3, 0.8, 1e-9, 0.0, 1.0 - 1e-9, 0.123];
    assert_eq!(
        throughput(&running).unwrap().to_bits(),
        4_613_078_001_844_412_488
    );
    let threshold = threshold_for_gain(&running, 1.1).unwrap().threshold();
    assert_eq!(threshold.to_bits(), 4487589294355064277);
}

#[test]
fn bad_input_is_refused() {
    for gain in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(
            matches!(
                threshold_for_gain(&[0.5], gain),
                Err(ModelError::OutOfRange { .. })
            ),
            "{gain}"
        );
    }
    assert!(matches!(
        threshold_for_gain(&[0.5, 1.5], 1.0),
        Err(ModelError::ItemOutOfRange { index: 1, .. })
    ));
    assert!(Objective::Energy.gain(0.0, 1.0).is_err());
    assert!(Objective::Energy.gain(1.0, f64::NAN).is_err());
}

#[test]
fn throughput_asks_for_less_than_energy_delay_and_that_for_less_than_energy() {
    let at = |objective| {
        threshold(&[0.4, 0.4], &i5(), objective)
            .unwrap()
            .threshold()
    };
    let (energy, delay, work) = (
        at(Objective::Energy),
        at(Objective::EnergyDelay),
        at(Objective::Throughput),
    );
    assert!(energy < delay && delay < work, "{energy} {delay} {work}");
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn the_threshold_task_meets_the_equation_with_equality(
        running in prop::collection::vec(demand(45, 12), 1..150), part in 0.0_f64..1.0,
    ) {
        let now = throughput(&running).unwrap();
        // Every needed throughput for which there is a threshold: from 1 to one more than now.
        let needed: f64 = 1.0 + now * part;
        if let Admission::UpTo(b) = threshold_for_gain(&running, needed / now).unwrap() {
            let with: Vec<f64> = running.iter().copied().chain([b]).collect();
            // Near 1 the last digit of b is what limits the accuracy.
            let digits = f64::EPSILON / (1.0 - b).max(f64::EPSILON);
            let got: f64 = throughput(&with).unwrap();
            prop_assert!((got / needed - 1.0).abs() < 1e-9 + digits, "b {} gives {}, needed {}", b, got, needed);
        }
    }

    #[test]
    fn agrees_with_brute_force(running in prop::collection::vec(demand(12, 12), 1..20), gain in 0.9..2.1) {
        let oracle = brute_force(&running, throughput(&running).unwrap() * gain);
        let ours = threshold_for_gain(&running, gain).unwrap();
        prop_assert!((ours.threshold() - oracle.threshold()).abs() < 1e-8, "{:?}, expected {:?}", ours, oracle);
    }

    #[test]
    fn a_greater_gain_never_raises_the_threshold(
        running in prop::collection::vec(demand(20, 20), 1..20), gain in 1.0..2.0, more in 0.0..0.5,
    ) {
        let low = threshold_for_gain(&running, gain + more).unwrap().threshold();
        let high = threshold_for_gain(&running, gain).unwrap().threshold();
        prop_assert!(low <= high + 1e-12);
    }
}
