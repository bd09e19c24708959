use super::*;
use crate::model::bus;
use crate::model::objective::Objective;
use crate::model::power::PowerModel;
use crate::model::samples::{cases, demand};
use proptest::prelude::*;

/// The bound that the module states.
const BOUND: f64 = 0.01;

/// Throughputs of a set of demands by the table and exactly, and the load.
fn both(table: &BusAdmissionTable, solo: &[f64]) -> (BusLoad, f64, f64) {
    let mut load = BusLoad::new();
    for &b in solo {
        assert!(load.add(table, table.class_of(b).unwrap()));
    }
    let got = load.throughput(table);
    (load, got, bus::throughput(solo).unwrap())
}

/// Checks the throughput, and that the exact throughput with a task at the ceiling is the required one.
fn check(table: &BusAdmissionTable, solo: &[f64], gain: f64) {
    let (load, got, now) = both(table, solo);
    assert!(
        (got / now - 1.0).abs() < BOUND,
        "{} tasks: {got}, expected {now}",
        solo.len()
    );

    let needed = now * gain;
    let with = |b: f64| {
        let all: Vec<f64> = solo.iter().copied().chain([b]).collect();
        bus::throughput(&all).unwrap()
    };
    let says = || format!("{} tasks, gain {gain}", solo.len());
    match table.ceiling(&load, Gain::of(gain).unwrap()) {
        // Nothing may fit only if not even a task without demand is worth it, within the bound.
        None => assert!(
            now + 1.0 < needed * (1.0 + BOUND),
            "nothing fits: {}",
            says()
        ),
        Some(DemandClass::HIGHEST) => {
            assert!(
                with(table.demand(DemandClass::HIGHEST)) > needed * (1.0 - BOUND),
                "all fit: {}",
                says()
            );
        }
        Some(class) => {
            let then = with(table.demand(class));
            assert!(
                (then / needed - 1.0).abs() < BOUND,
                "{then}, needed {needed}: {}",
                says()
            );
        }
    }
}

#[test]
fn mixtures_that_are_hard_stay_within_the_bound() {
    let table = BusAdmissionTable::new();
    let of_odds = |odds: f64| odds / (1.0 + odds);
    // A few tasks that saturate the bus beside many with a small demand, and the reverse: there the throughput depends
    // the most on each demand. The odds lie between classes.
    for crowd in -42..10 {
        for others in (-42..10).step_by(3) {
            for (few, many) in [
                (0, 1),
                (1, 1),
                (1, 30),
                (1, 511),
                (3, 200),
                (100, 100),
                (511, 1),
                (0, 2000),
            ] {
                let step = 2.0_f64.powf(0.5 / 64.0);
                let crowd = of_odds(step * f64::from(crowd).exp2());
                let other = of_odds(step * 1.3 * f64::from(others).exp2());
                let solo: Vec<f64> = (0..few + many)
                    .map(|i| if i < few { crowd } else { other })
                    .collect();
                check(
                    &table,
                    &solo,
                    1.0 + f64::from((crowd.to_bits() % 97) as u32) / 97.0,
                );
            }
        }
    }
}

#[test]
fn ceilings_of_the_papers_machine() {
    let table = BusAdmissionTable::new();
    let power = PowerModel::new([26.6, 22.6, 12.0, 12.3]).unwrap();
    for objective in [
        Objective::Energy,
        Objective::EnergyDelay,
        Objective::Throughput,
    ] {
        for running in 1..=8 {
            for percent in 0..=99 {
                let gain = objective
                    .gain(power.watts(running), power.watts(running + 1))
                    .unwrap();
                check(&table, &vec![f64::from(percent) / 100.0; running], gain);
            }
        }
    }
}

#[test]
fn adding_and_removing_leaves_no_trace() {
    let table = BusAdmissionTable::new();
    let classes = [0.0, 1e-12, 0.3, 0.97, 1.0].map(|b| table.class_of(b).unwrap());
    let mut load = BusLoad::new();
    for round in 0..10_000 {
        assert!(load.add(&table, classes[round % 5]));
        assert!(load.add(&table, classes[(round * 7 + 3) % 5]));
        assert!(load.remove(&table, classes[round % 5]));
        assert!(load.remove(&table, classes[(round * 7 + 3) % 5]));
    }
    assert_eq!(load, BusLoad::new());
    assert_eq!(load.throughput(&table), 0.0);
}

#[test]
fn wrong_changes_are_refused_and_leave_the_load_as_it_was() {
    let table = BusAdmissionTable::new();
    let (low, high) = (table.class_of(0.1).unwrap(), table.class_of(0.9).unwrap());
    let mut load = BusLoad::new();
    assert!(load.add(&table, low));
    let before = load.clone();
    assert!(!load.remove(&table, high));
    assert_eq!(load, before);
    for _ in 1..MOST_TASKS {
        assert!(load.add(&table, DemandClass::HIGHEST));
    }
    let before = load.clone();
    assert!(!load.add(&table, low));
    assert_eq!(load, before);
    assert!(load.throughput(&table) >= 1.0);
}

#[test]
fn extremes() {
    let table = BusAdmissionTable::new();
    // Two thousand tasks with the greatest demand together do the work of one.
    let (load, got, _) = both(&table, &vec![1.0; MOST_TASKS as usize]);
    assert!((got - 1.0).abs() < BOUND, "{got}");
    assert_eq!(table.ceiling(&load, Gain::of(3.0).unwrap()), None);
    assert_eq!(table.ceiling(&load, Gain::of(1e9).unwrap()), None);
    assert_eq!(
        table.ceiling(&load, Gain::of(0.0).unwrap()),
        Some(DemandClass::HIGHEST)
    );
    // Tasks without demand: one more adds 1 to 3.
    let (load, got, _) = both(&table, &[0.0; 3]);
    assert_eq!(got, 3.0);
    assert_eq!(table.ceiling(&load, Gain::of(1.4).unwrap()), None);
    assert_eq!(table.ceiling(&load, Gain::NONE), Some(DemandClass::HIGHEST));
    assert!(Gain::of(f64::NAN).is_err() && Gain::of(-1.0).is_err());
}

#[test]
fn classes_cover_all_demands_in_order() {
    let table = BusAdmissionTable::new();
    for number in 0..=DemandClass::HIGHEST.number() {
        let class = DemandClass::from_number(number).unwrap();
        assert_eq!(class.number(), number);
        let demand = table.demand(class);
        assert_eq!(table.class_of(demand).unwrap(), class, "{demand}");
    }
    assert_eq!(
        DemandClass::from_number(DemandClass::HIGHEST.number() + 1),
        None
    );
    let mut last = DemandClass::ZERO;
    for step in 0..=10_000 {
        let class = table.class_of(f64::from(step) / 1e4).unwrap();
        assert!(class >= last);
        last = class;
    }
    assert!(
        table.class_of(f64::NAN).is_err()
            && table.class_of(1.1).is_err()
            && table.class_of(-0.1).is_err()
    );
    assert_eq!(
        table.class_of(f64::from_bits(1)).unwrap(),
        DemandClass::ZERO
    );
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn mixtures_stay_within_the_bound(solo in prop::collection::vec(demand(46, 10), 1..300), gain in 1.0..2.0) {
        check(&BusAdmissionTable::new(), &solo, gain);
    }

    #[test]
    fn ordinary_demands_stay_within_the_bound(solo in prop::collection::vec(0.0..0.99, 1..64), gain in 1.0..1.5) {
        check(&BusAdmissionTable::new(), &solo, gain);
    }

    #[test]
    fn the_throughput_with_more_is_that_after_adding_them(
        solo in prop::collection::vec(demand(46, 10), 0..50), more in demand(46, 10), copies in 0u32..5,
    ) {
        let table = BusAdmissionTable::new();
        let (mut load, ..) = both(&table, &solo);
        let class = table.class_of(more).unwrap();
        let with = load.throughput_with(&table, class, copies);
        (0..copies).for_each(|_| assert!(load.add(&table, class)));
        prop_assert_eq!(with, load.throughput(&table));
    }

    #[test]
    fn a_greater_gain_never_raises_the_ceiling(
        solo in prop::collection::vec(demand(20, 9), 1..50), gain in 1.0..2.0, more in 0.01..0.5,
    ) {
        let table = BusAdmissionTable::new();
        let (load, ..) = both(&table, &solo);
        let high = table.ceiling(&load, Gain::of(gain).unwrap()).map_or(0, |class| class.number() + 1);
        let low = table.ceiling(&load, Gain::of(gain + more).unwrap()).map_or(0, |class| class.number() + 1);
        prop_assert!(low <= high, "{} {}", low, high);
    }
}
