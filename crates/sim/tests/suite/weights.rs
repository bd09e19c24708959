//! Shares of the time by weight, on machines without contention.

use crate::support::*;
use cosched_core::*;
use cosched_sim::Sim;

const POLICIES_BY_WEIGHT: [&str; 5] = ["round-robin", "fair", "perf-fair", "even", "efs"];

fn times(cores: u32, weights: &[f64], policy: &str) -> Vec<f64> {
    times_with_arrival(cores, weights, 0, policy)
}

/// The time that each task was placed, in s, if tasks of these weights run under a policy for 400 s. Each has work for
/// longer, and needs nothing but a core. The last one arrives at a time in s.
fn times_with_arrival(cores: u32, weights: &[f64], arrival: u64, policy: &str) -> Vec<f64> {
    let jobs = weights.iter().map(|_| job(&compute(), 1_000_000));
    let config = config(&machine(cores, 1), jobs.collect());
    let mut specs = specs(&config);
    for (spec, &weight) in specs.iter_mut().zip(weights) {
        spec.weight = weight;
    }
    if let Some(last) = specs.last_mut() {
        last.arrives = Nanos::from_ms(1_000 * arrival);
    }
    let settings = RunConfig {
        deadline: Some(Nanos::from_ms(400_000)),
        traffic: true,
        ..RunConfig::default()
    };
    let entry = find_policy(policy).unwrap();
    let mut policy = (entry.build)(&config.machine.params_for(entry).unwrap());
    let mut sim = Sim::new(config).unwrap();
    let result = run(&mut sim, &mut *policy, &mut NullRecorder, specs, &settings).unwrap();
    result.tasks.iter().map(|task| task.ran.as_s()).collect()
}

/// Whether the times are within 5 % of these shares of all of them.
fn assert_shares(times: &[f64], shares: &[f64], what: &str) {
    let time: f64 = times.iter().sum();
    let all: f64 = shares.iter().sum();
    for (one, share) in times.iter().zip(shares) {
        let ratio = one / time * all / share;
        assert!((ratio - 1.0).abs() < 0.05, "{what}: {times:?}");
    }
}

#[test]
fn tasks_share_the_time_by_weight() {
    for policy in POLICIES_BY_WEIGHT {
        for (cores, each) in [(1, 1), (2, 2), (4, 3)] {
            // `efs` has a queue for each CPU, as the kernel has. Nine such tasks can't be divided evenly over four.
            if (policy, cores) == ("efs", 4) {
                continue;
            }
            let weights = [1.0, 2.0, 4.0].map(|weight| vec![weight; each]).concat();
            let times = times(cores, &weights, policy);
            assert_shares(&times, &weights, policy);
            let used: f64 = times.iter().sum::<f64>() / f64::from(cores);
            assert!(used > 395.0, "{policy}: {used} of 400 s");
        }
    }
}

#[test]
fn a_task_worth_more_than_a_cpu_has_one_and_the_others_share_the_rest() {
    for policy in POLICIES_BY_WEIGHT {
        assert_shares(
            &times(2, &[1.0, 2.0, 4.0], policy),
            &[1.0, 2.0, 3.0],
            policy,
        );
        let important = times(2, &[10.0, 1.0, 1.0, 1.0, 1.0], policy);
        assert_shares(&important, &[4.0, 1.0, 1.0, 1.0, 1.0], policy);
    }
}

#[test]
fn a_task_that_arrives_later_gets_its_share_from_then_on() {
    for policy in POLICIES_BY_WEIGHT {
        let times = |cores, weights: &[f64]| times_with_arrival(cores, weights, 200, policy);
        // 133, 67 and 0 s in the first half; 57, 29 and 114 s in the second.
        assert_shares(&times(1, &[2.0, 1.0, 4.0]), &[190.5, 95.2, 114.3], policy);
        // The first has a CPU. The others divide one by three, and then by four.
        let with_important = times(2, &[10.0, 1.0, 1.0, 1.0, 1.0]);
        assert_shares(&with_important, &[400.0, 116.7, 116.7, 116.7, 50.0], policy);
        // Pauses are bounded, so the lightest gets far more than its share. The last one is not made to wait for that.
        let beside_light = times(1, &[1.0, 0.001, 1.0]);
        assert!(beside_light[2] > 80.0, "{policy}: {beside_light:?}");
        // Before the last one comes, each has a CPU of its own.
        assert_shares(&times(2, &[2.0, 1.0, 1.0]), &[400.0, 300.0, 100.0], policy);
    }
}
