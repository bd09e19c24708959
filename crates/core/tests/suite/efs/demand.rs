//! A task's demand for the bus: assumed, counted or stated.

use super::log::{BUS, Log, four, hogs, run_log, simple};
use crate::memory::{Memory, Work, run_specs};
use cosched_core::model::bus_admission_table::{BusAdmissionTable, DemandClass};
use cosched_core::*;
use std::collections::BTreeSet;

#[test]
fn when_counters_are_lost_the_last_demands_hold() {
    let mut world = Memory::new(four(), hogs(4, 2_000));
    world.bus_per_us = Some(BUS);
    world.counters_until = Some(Nanos::from_ms(1_500));
    let (mut log, specs) = (Log::default(), world.specs());
    let result = run_specs(
        &mut world,
        specs,
        "efs",
        &[],
        &RunConfig::default(),
        &mut log,
    );
    assert!(result.tasks.iter().all(|task| task.finished.is_some()));
    assert!(
        log.turns[1..].iter().all(|turn| turn.runs.len() == 1),
        "{:?}",
        log.sets()
    );
}

#[test]
fn demands_are_published_when_they_move() {
    let mut work = hogs(1, 4_000);
    work.extend((0..3).map(|_| Work::ms(4_000).reads(1)));
    let (log, _) = simple(four(), work, &[]);
    let published: Vec<&BusAdmission> = log
        .turns
        .iter()
        .filter_map(|turn| turn.admission.as_ref())
        .collect();
    assert!(
        published.len() >= 2 && published.len() <= 8,
        "{}",
        published.len()
    );
    let table = BusAdmissionTable::new();
    let demand = |demand: &Demand| table.demand(DemandClass::from_number(demand.class).unwrap());
    // The first guess, then the measurement.
    assert!(
        published[0]
            .demands
            .iter()
            .all(|first| (demand(first) - 0.25).abs() < 0.002)
    );
    let last: Vec<f64> = published
        .last()
        .unwrap()
        .demands
        .iter()
        .map(demand)
        .collect();
    assert!(
        last[0] > 0.97 && last[1..].iter().all(|&demand| demand < 0.08),
        "{last:?}"
    );
    // Throughput must compensate for the power of each further core: 49.2, 61.2, 73.5, 85.8 W.
    let gains = published
        .last()
        .unwrap()
        .gains
        .iter()
        .map(|&gain| f64::from(gain) / f64::from(1 << 20));
    for (gain, exact) in gains.zip([61.2 / 49.2, 73.5 / 61.2, 85.8 / 73.5]) {
        assert!((gain - exact).abs() < 1e-5, "{gain}, exactly {exact}");
    }
}

/// EFS, Eq. 25, sections 5.1 and 4.3.
#[test]
fn the_defaults_are_the_paper_s() {
    let params = Params::resolve("efs", find_policy("efs").unwrap().params, &[]).unwrap();
    let power = [
        ("p0_w", 26.6),
        ("p1_w", 22.6),
        ("p2_w", 12.0),
        ("p_more_w", 12.3),
    ];
    let others = [
        ("mu_trans_per_us", 150.0),
        ("c_local", 20.0),
        ("c_global", 5.0),
    ];
    for (name, value) in power.into_iter().chain(others) {
        assert_eq!(params.number(name), value, "{name}");
    }
}

#[test]
fn reads_from_memory_are_required_and_traffic_wanted() {
    let entry = find_policy("efs").unwrap();
    let params = Params::resolve("efs", entry.params, &[]).unwrap();
    let missing = |capability| {
        let mut capabilities = Capabilities::default();
        capabilities.missing.insert(capability, Absence::NoCounters);
        entry.shortfalls(&params, &capabilities)[..].to_vec()
    };
    assert!(matches!(
        missing(Capability::Counter(Counter::MmReads))[..],
        [Shortfall {
            importance: Importance::Required,
            ..
        }]
    ));
    assert!(matches!(
        missing(Capability::Traffic)[..],
        [Shortfall {
            importance: Importance::Wanted(_),
            ..
        }]
    ));
    // With stated demands, nothing needs to be counted.
    let given = Params::resolve(
        "efs",
        entry.params,
        &[("demand".to_owned(), "given".to_owned())],
    )
    .unwrap();
    for capability in [Capability::Counter(Counter::MmReads), Capability::Traffic] {
        let mut capabilities = Capabilities::default();
        capabilities.missing.insert(capability, Absence::NoCounters);
        assert!(entry.shortfalls(&given, &capabilities).is_empty());
    }
}

#[test]
fn given_demands_go_before_what_is_counted() {
    let given = |milli: u16, reads: u64| {
        let work = (0..4).map(|_| Work::ms(4_000).reads(reads)).collect();
        let say = |specs: &mut Vec<TaskSpec>| {
            specs
                .iter_mut()
                .for_each(|spec| spec.bus_use_milli = Some(milli))
        };
        run_log(
            four(),
            work,
            say,
            &[("demand", "given")],
            &RunConfig::default(),
            None,
        )
        .0
    };
    // Four tasks with a stated demand of the whole bus run one at a time from the start, although they read next to
    // nothing.
    let log = given(1_000, 1);
    assert!(
        log.sets().iter().all(|set| set.len() == 1),
        "{:?}",
        log.sets()
    );
    for wait in log.turns.iter().flat_map(|turn| &turn.waits) {
        assert!(
            matches!(
                wait.reason,
                WaitReason::BusFull {
                    basis: DemandBasis::Given,
                    ..
                }
            ),
            "{wait:?}"
        );
    }
    let ran: BTreeSet<u32> = log.sets().into_iter().flatten().collect();
    assert_eq!(ran.len(), 4);
    // Four tasks with a stated demand of a fifth all run, although each fills the bus.
    assert!(given(200, BUS).sets().iter().all(|set| set.len() == 4));
}

#[test]
fn without_a_given_demand_a_task_stays_where_it_starts() {
    let work = (0..4).map(|_| Work::ms(2_000).reads(BUS)).collect();
    let say = |specs: &mut Vec<TaskSpec>| specs[0].bus_use_milli = Some(1_000);
    let (log, _) = run_log(
        four(),
        work,
        say,
        &[("demand", "given")],
        &RunConfig::default(),
        None,
    );
    // A quarter of the bus each: they fit beside each other, but not all beside a task that fills the bus.
    assert!(
        log.sets()
            .iter()
            .any(|set| set.len() == 3 && !set.contains(&0)),
        "{:?}",
        log.sets()
    );
    let of_others = log
        .turns
        .iter()
        .flat_map(|turn| &turn.waits)
        .filter(|wait| wait.task != TaskId(0));
    for wait in of_others {
        let assumed = matches!(
            wait.reason,
            WaitReason::BusFull {
                basis: DemandBasis::Assumed,
                demand_milli: 245..=255,
                ..
            }
        );
        assert!(
            assumed || matches!(wait.reason, WaitReason::Order { .. }),
            "{wait:?}"
        );
    }
}
