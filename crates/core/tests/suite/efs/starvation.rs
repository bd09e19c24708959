//! The bound on waiting, and the lease of a starved task.

use super::log::{BUS, LEAST_SLICE, QUANTUM, TurnLog, four, hogs, run_log, simple};
use crate::memory::Work;
use cosched_core::model::starvation::Starvation;
use cosched_core::*;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

#[test]
fn the_bounds_of_starvation_are_the_users() {
    let longest = |settings: &[(&str, &str)]| {
        let (log, _) = simple(four(), hogs(4, 4_000), settings);
        *log.longest.values().max().unwrap()
    };
    let usual = longest(&[]);
    assert!(longest(&[("c_global", "1"), ("c_local", "1")]) < usual);
    assert!(longest(&[("c_global", "15")]) > usual);
}

#[test]
fn the_starved_runs_at_once_for_its_slice_and_all_are_judged_again() {
    // A task that has not run for a period counts as starved; three hogs and a compute-bound task.
    let mut work = hogs(3, 60_000);
    work.push(Work::ms(60_000).reads(0));
    let config = RunConfig {
        max_pause: Nanos::MAX,
        ..RunConfig::default()
    };
    let (log, _) = run_log(
        four(),
        work,
        |_| {},
        &[("c_global", "1")],
        &config,
        Some(20),
    );
    let starved: Vec<&TurnLog> = log
        .turns
        .iter()
        .filter(|turn| !turn.starved.is_empty())
        .collect();
    assert!(starved.len() > 20, "{}", starved.len());
    for turn in starved {
        let [(task, end)] = turn.starved[..] else {
            panic!("one at a time: {:?}", turn.starved)
        };
        // With one task on its CPU its lag is 0: the least slice (ours).
        assert_eq!(end - turn.at, LEAST_SLICE);
        assert_eq!(turn.until, end);
        // The other hogs were stopped, the compute-bound task was not.
        assert_eq!(turn.runs.keys().collect::<Vec<_>>(), [&task, &TaskId(3)]);
    }
}

#[test]
fn the_slice_of_the_starved_is_as_long_as_its_lag_up_to_a_period() {
    // Two hogs and two light tasks on two CPUs; any lag is too large.
    let mut work = hogs(2, 60_000);
    work.extend((0..2).map(|_| Work::ms(60_000).reads(2)));
    let config = RunConfig {
        max_pause: Nanos::MAX,
        ..RunConfig::default()
    };
    let (log, _) = run_log(
        Machine::uniform("two", 2, 1),
        work,
        |_| {},
        &[("c_local", "0")],
        &config,
        Some(10),
    );
    let slices: BTreeSet<Nanos> = log
        .turns
        .iter()
        .flat_map(|turn| turn.starved.iter().map(|(_, end)| *end - turn.at))
        .collect();
    assert!(!slices.is_empty());
    assert!(
        slices
            .iter()
            .all(|&slice| slice >= LEAST_SLICE && slice <= QUANTUM),
        "{slices:?}"
    );
    assert!(
        slices.iter().any(|&slice| slice > LEAST_SLICE),
        "{slices:?}"
    );
    // A slice that is longer than a tick is not cut by the tick.
    for (turn, next) in log.turns.iter().zip(&log.turns[1..]) {
        for (task, end) in &turn.starved {
            assert!(next.runs.contains_key(task) || next.at >= *end);
        }
    }
}

#[test]
fn a_light_weight_does_not_wait_beyond_the_bound() {
    // By its weight alone it would wait for 15 quanta after each least slice.
    let work = || vec![Work::ms(1_000_000).reads(1), Work::ms(1_000_000).reads(1)];
    let longest = |local: &str, global: &str| {
        let settings = [("c_local", local), ("c_global", global)];
        let nice = |specs: &mut Vec<TaskSpec>| specs[1].weight = weight_of_nice(19);
        let config = RunConfig {
            max_pause: Nanos::MAX,
            ..RunConfig::default()
        };
        let (log, _) = run_log(
            Machine::uniform("one", 1, 1),
            work(),
            nice,
            &settings,
            &config,
            Some(60),
        );
        log.longest[&TaskId(1)]
    };
    let unbounded = longest("1000", "1000");
    assert!(unbounded > Nanos(10 * QUANTUM.0), "{unbounded:?}");
    // While it is not the first of its queue it is not starved, however soon that would be (EFS, section 4.3).
    assert!(longest("1000", "0") >= unbounded);
    let rule = Starvation {
        local_factor: 0,
        global_factor: 0,
        ..Starvation::for_quantum(QUANTUM.0)
    };
    assert!(longest("0", "0") <= bound(&rule, 2, 1.0));
}

/// The bound on waiting that the policy states: detection, the starved tasks before it, and one quantum.
fn bound(rule: &Starvation, n: u64, weight_ratio: f64) -> Nanos {
    let period = rule.period_ns(n);
    let factor = rule.local_factor.max(rule.global_factor) as f64 * weight_ratio;
    Nanos((factor * period as f64) as u64 + n * period + QUANTUM.0)
}

/// A task: its reads per microsecond, nice value, CPUs, and the bits of its mask.
type Job = (u64, i8, u32, Option<u32>);

fn job() -> impl Strategy<Value = Job> {
    let reads = prop_oneof![2 => Just(BUS), 1 => 0..=BUS, 1 => Just(0)];
    let nice = prop_oneof![4 => Just(0i8), 1 => -3i8..=3];
    let cpus = prop_oneof![5 => Just(1u32), 1 => 2u32..=3];
    let mask = prop_oneof![3 => Just(None), 1 => any::<u32>().prop_map(Some)];
    (reads, nice, cpus, mask)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        rng_seed: RngSeed::Fixed(4_300),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nobody_waits_longer_than_the_stated_bound(
        cores in 1u32..=4,
        threads in 1u32..=2,
        jobs in proptest::collection::vec(job(), 2..12),
        c_local in 0u64..6,
        c_global in 0u64..4,
    ) {
        let machine = Machine::uniform("bound", cores, threads);
        let all: Vec<CpuId> = machine.cpus.iter().map(|cpu| cpu.id).collect();
        let work = jobs.iter().map(|job| Work::ms(100_000_000).reads(job.0)).collect();
        let change = |specs: &mut Vec<TaskSpec>| {
            for (spec, &(_, nice, cpus, mask)) in specs.iter_mut().zip(&jobs) {
                spec.weight = weight_of_nice(nice);
                spec.cpus = cpus.min(all.len() as u32);
                spec.allowed = mask.map(|bits| {
                    let chosen = all.iter().enumerate().filter(|(n, _)| bits >> n & 1 != 0).map(|(_, &cpu)| cpu);
                    let mut mask: CpuSet = chosen.collect();
                    mask.extend(all.iter().copied().take(spec.cpus as usize));
                    mask
                });
            }
        };
        let (local, global) = (c_local.to_string(), c_global.to_string());
        let settings = [("c_local", local.as_str()), ("c_global", global.as_str())];
        let config = RunConfig { max_pause: Nanos::MAX, ..RunConfig::default() };
        let (log, _) = run_log(machine, work, change, &settings, &config, Some(40));
        let rule = Starvation {
            local_factor: c_local,
            global_factor: c_global,
            ..Starvation::for_quantum(QUANTUM.0)
        };
        let least_nice = jobs.iter().map(|job| job.1).min().unwrap();
        for (task, &waited) in &log.longest {
            let nice = jobs[task.0 as usize].1;
            // The policy rounds weights.
            let ratio = weight_of_nice(least_nice) / weight_of_nice(nice) * 1.000_001;
            let bound = bound(&rule, jobs.len() as u64, ratio);
            prop_assert!(waited <= bound, "{task}: {waited:?}, bound {bound:?}");
        }
    }
}
