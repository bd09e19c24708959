//! Which task runs when: quanta, free CPUs, gangs, sleeping tasks and bounded pauses.

use super::support::{finish_ms, world};
use crate::memory::{Act, Work, run_policy, run_specs};
use cosched_core::*;

#[test]
fn every_policy_ends_every_batch() {
    for entry in POLICIES {
        for (cores, jobs) in [(1, 1), (1, 5), (2, 2), (2, 8), (4, 7), (3, 0)] {
            let work = (0..jobs)
                .map(|i| Work::ms(300 + 170 * i).reads(i))
                .collect();
            let mut world = world(cores, work);
            let result = run_policy(&mut world, entry.name, &[], &RunConfig::default());
            assert_eq!(result.policy_faults, 0, "{}", entry.name);
            assert_eq!(result.ended_by, EndedBy::Completion);
            for task in &result.tasks {
                assert_eq!(
                    task.exit,
                    Some(Exit::Code(0)),
                    "{} {cores} {jobs}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn fifo_runs_each_to_its_end_in_order() {
    let mut world = world(
        2,
        vec![Work::ms(300), Work::ms(100), Work::ms(100), Work::ms(100)],
    );
    let result = run_policy(&mut world, "fifo", &[], &RunConfig::default());
    assert_eq!(finish_ms(&result), [300, 100, 200, 300]);
    assert!(
        world
            .acts
            .iter()
            .all(|(_, act)| matches!(act, Act::Start(_))),
        "nothing is stopped or moved"
    );
}

#[test]
fn round_robin_shares_by_quantum() {
    let mut world = world(1, vec![Work::ms(400), Work::ms(400)]);
    let result = run_policy(&mut world, "round-robin", &[], &RunConfig::default());
    assert_eq!(finish_ms(&result), [600, 800]);
    assert_eq!(result.tasks[0].waited_max, Nanos::from_ms(200));
}

/// If more than half of the tasks have a CPU, some keep it. They must not be the same ones each time.
#[test]
fn equal_tasks_get_equal_turns() {
    for policy in ["round-robin", "bandwidth", "fair", "perf-fair"] {
        for (cores, tasks) in [(2, 3), (3, 5), (4, 5), (4, 6), (4, 7), (4, 11)] {
            let mut world = world(cores, vec![Work::ms(6_000); tasks]);
            world
                .capabilities
                .missing
                .insert(Capability::Ipc, Absence::NoCounters);
            let result = run_policy(&mut world, policy, &[], &RunConfig::default());
            let finish = finish_ms(&result);
            let spread = finish.iter().max().unwrap() - finish.iter().min().unwrap();
            assert!(
                spread <= 3 * 200,
                "{policy}, {tasks} on {cores}: {finish:?}"
            );
        }
    }
}

#[test]
fn a_freed_cpu_is_filled_at_once_and_only_that() {
    let mut world = world(
        2,
        vec![
            Work::ms(1_000),
            Work::ms(50),
            Work::ms(1_000),
            Work::ms(1_000),
        ],
    );
    run_policy(&mut world, "round-robin", &[], &RunConfig::default());
    let at_50: Vec<&Act> = world
        .acts
        .iter()
        .filter(|(at, _)| *at == Nanos::from_ms(50))
        .map(|(_, act)| act)
        .collect();
    assert_eq!(at_50, [&Act::Start(2)]);
}

#[test]
fn no_cpu_idles_while_a_task_waits() {
    for policy in ["fifo", "round-robin", "bandwidth", "fair"] {
        let mut world = world(2, (0..6).map(|i| Work::ms(200 + 90 * i)).collect());
        let capabilities = &mut world.capabilities.missing;
        capabilities.insert(Capability::Ipc, Absence::NoCounters);
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        let total: u64 = (0..6).map(|i| 200 + 90 * i).sum();
        assert!(
            result.turnaround < Nanos::from_ms(total / 2 + 650),
            "{policy}: {:?}",
            result.turnaround
        );
    }
}

#[test]
fn a_gang_gets_its_cpus_together_and_starves_nobody() {
    for entry in POLICIES {
        let mut world = world(4, (0..6).map(|i| Work::ms(500 + 10 * i)).collect());
        let mut specs = world.specs();
        specs[2].cpus = 3;
        specs[4].cpus = 4;
        let result = run_specs(
            &mut world,
            specs,
            entry.name,
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{}",
            entry.name
        );
        assert_eq!(result.policy_faults, 0);
    }
}

#[test]
fn a_bounded_pause_is_kept() {
    // Three jobs take turns of 10 s on one CPU.
    let longest_pause = |max_pause_s: u64| {
        let mut world = world(1, (0..3).map(|_| Work::ms(40_000)).collect());
        let config = RunConfig {
            max_pause: Nanos::from_ms(1_000 * max_pause_s),
            ..RunConfig::default()
        };
        let params = [("quantum_s", "10"), ("lead_max_percent", "1000000")];
        let result = run_policy(&mut world, "perf-fair", &params, &config);
        result
            .tasks
            .iter()
            .map(|task| task.waited_max)
            .max()
            .unwrap()
    };
    let (bounded, free) = (longest_pause(5), longest_pause(3_600));
    assert!(bounded <= Nanos::from_ms(5_000 + 10_000), "{bounded:?}");
    assert!(
        free > Nanos::from_ms(5_000 + 10_000),
        "without the bound the pauses are longer: {free:?}"
    );
}

#[test]
fn a_task_that_sleeps_gives_way_and_gets_its_turn_again() {
    let ms = Nanos::from_ms;
    for policy in ["round-robin", "bandwidth", "fair", "perf-fair"] {
        let mut world = world(1, vec![Work::ms(300), Work::ms(300)]);
        // It falls asleep on its CPU and is then frozen, so that its wake-up is invisible; the second nap is a stale
        // event.
        world.naps = vec![
            (ms(100), Event::Slept(TaskId(0))),
            (ms(250), Event::Slept(TaskId(0))),
        ];
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        assert_eq!(result.policy_faults, 0, "{policy}");
        assert_eq!(result.turnaround, ms(600), "{policy}");
    }
}

#[test]
fn many_short_jobs_do_not_put_off_the_end_of_the_quantum() {
    for policy in ["fifo", "linux"] {
        let mut work: Vec<Work> = (0..10).map(|_| Work::ms(150)).collect();
        work[0] = Work::ms(1_450);
        let mut world = world(2, work);
        let config = RunConfig {
            jobs: 2,
            ..RunConfig::default()
        };
        let result = run_policy(&mut world, policy, &[], &config);
        assert!(
            result.overhead.quanta >= 6,
            "{policy}: {}",
            result.overhead.quanta
        );
    }
}

#[test]
fn the_kernel_baseline_runs_everything_at_once() {
    let mut world = world(2, (0..4).map(|_| Work::ms(500)).collect());
    let result = run_policy(&mut world, "linux", &[], &RunConfig::default());
    assert_eq!(result.turnaround, Nanos::from_ms(1_000));
    assert_eq!(world.acts.len(), 4, "started once, never touched again");
}
