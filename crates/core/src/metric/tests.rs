use super::*;
use crate::task::{Exit, TaskId, TaskSpec};
use crate::units::{Absence, Nanos};
use crate::{Counts, ProgressBasis, TaskResult};
use proptest::prelude::*;

fn task(turnaround_s: f64, solo_s: f64, ipc: f64, wait_s: f64) -> Outcome {
    Outcome {
        turnaround: Reading::Value(Nanos::from_s(turnaround_s)),
        solo: Reading::Value(Nanos::from_s(solo_s)),
        ipc: Reading::Value(ipc),
        waited_max: Nanos::from_s(wait_s),
    }
}

fn run(tasks: Vec<Outcome>) -> Outcomes {
    Outcomes {
        tasks,
        turnaround: Nanos::from_s(30.0),
        energy_j: Reading::Value(600.0),
    }
}

fn value(name: &str, outcomes: &Outcomes) -> f64 {
    metric(name)
        .unwrap()
        .of(outcomes)
        .value()
        .unwrap_or_else(|| panic!("{name} is absent"))
}

/// By hand: slowdowns 2, 1.25 and 4; speeds 0.5, 0.8 and 0.25, their sum 1.55, their squares 0.25 + 0.64 + 0.0625.
#[test]
fn by_hand() {
    let run = run(vec![
        task(20.0, 10.0, 0.5, 3.0),
        task(25.0, 20.0, 1.5, 7.5),
        task(30.0, 7.5, 2.5, 0.0),
    ]);
    let check = |name: &str, expected: f64| {
        let got = value(name, &run);
        assert!(
            (got - expected).abs() <= 1e-12 * expected,
            "{name}: {got}, expected {expected}"
        );
    };
    check("turnaround_s", 30.0);
    check("unfairness", 3.2);
    check("stp", 1.55);
    check("antt", 7.25 / 3.0);
    check("jain", 1.55 * 1.55 / (3.0 * 0.9525));
    check("mean_ipc", 1.5);
    check("worst_slowdown", 4.0);
    check("max_wait_s", 7.5);
    check("energy_j", 600.0);
    check("edp_js", 18_000.0);
}

/// Perf&Fair reports unfairness as per cent above 1: 18.5 % is 1.185.
#[test]
fn one_task_is_fair_to_itself() {
    let run = run(vec![task(18.0, 12.0, 1.0, 0.0)]);
    assert_eq!(value("unfairness", &run), 1.0);
    assert_eq!(value("jain", &run), 1.0);
    assert_eq!(value("antt", &run), 1.5);
}

#[test]
fn what_is_missing_is_absent_with_its_reason() {
    let mut one = run(vec![task(2.0, 1.0, 1.0, 0.0), task(2.0, 1.0, 1.0, 0.0)]);
    one.tasks[1].solo = Reading::Absent(Absence::NoSoloTime);
    one.tasks[0].ipc = Reading::Absent(Absence::NoCounters);
    let mut every = one.clone();
    every.tasks[0].solo = Reading::Absent(Absence::NoSoloTime);
    every.tasks[1].ipc = Reading::Absent(Absence::NoCounters);
    every.energy_j = Reading::Absent(Absence::NoEnergyMeter);
    for metric in METRICS {
        let (some, all, unmeasured) = (metric.of(&one), metric.of(&every), metric.of(&run(vec![])));
        match metric.needs {
            Needs::Nothing | Needs::Waits => assert!(
                some.is_value() && all.is_value() && unmeasured.is_value(),
                "{}",
                metric.name
            ),
            Needs::Slowdowns => {
                assert_eq!(
                    some,
                    Reading::Absent(Absence::SomeTasksLackIt),
                    "{}",
                    metric.name
                );
                assert_eq!(all, Reading::Absent(Absence::NoSoloTime), "{}", metric.name);
                assert_eq!(
                    unmeasured,
                    Reading::Absent(Absence::NotStarted),
                    "{}",
                    metric.name
                );
            }
            Needs::Counters => {
                assert_eq!(
                    some,
                    Reading::Absent(Absence::SomeTasksLackIt),
                    "{}",
                    metric.name
                );
                assert_eq!(all, Reading::Absent(Absence::NoCounters), "{}", metric.name);
            }
            Needs::Energy => assert_eq!(
                all,
                Reading::Absent(Absence::NoEnergyMeter),
                "{}",
                metric.name
            ),
        }
    }
}

/// If all jobs failed, the figures over slowdowns are absent because of failure, whatever the kind of failure.
#[test]
fn jobs_that_all_failed_are_told_as_failed() {
    let mut every = run(vec![task(2.0, 1.0, 1.0, 0.0), task(2.0, 1.0, 1.0, 0.0)]);
    every
        .tasks
        .iter_mut()
        .for_each(|task| task.turnaround = Reading::Absent(Absence::Failed));
    for metric in METRICS
        .iter()
        .filter(|metric| metric.needs == Needs::Slowdowns)
    {
        assert_eq!(
            metric.of(&every),
            Reading::Absent(Absence::Failed),
            "{}",
            metric.name
        );
    }
}

/// A task that was dropped before its start does not hide the reason why the others have no IPC.
#[test]
fn tasks_that_did_not_start_do_not_hide_why_there_is_no_ipc() {
    let mut one = run(vec![task(2.0, 1.0, 1.0, 0.0), task(2.0, 1.0, 1.0, 0.0)]);
    one.tasks[0].ipc = Reading::Absent(Absence::NotStarted);
    assert_eq!(mean_ipc(&one), Reading::Absent(Absence::SomeTasksLackIt));
    one.tasks[1].ipc = Reading::Absent(Absence::NoCounters);
    assert_eq!(mean_ipc(&one), Reading::Absent(Absence::NoCounters));
    one.tasks[1].ipc = Reading::Absent(Absence::NotStarted);
    assert_eq!(mean_ipc(&one), Reading::Absent(Absence::NotStarted));
}

#[test]
fn no_time_gives_no_slowdown() {
    let mut outcome = task(1.0, 0.0, 1.0, 0.0);
    assert_eq!(outcome.slowdown(), Reading::Absent(Absence::NoSoloTime));
    outcome = task(0.0, 1.0, 1.0, 0.0);
    assert_eq!(outcome.slowdown(), Reading::Absent(Absence::NotYetMeasured));
}

#[test]
fn only_a_task_that_did_its_work_has_a_turnaround() {
    let mut result = TaskResult {
        spec: TaskSpec {
            arrives: Nanos::from_s(1.0),
            ..TaskSpec::new(0, "a")
        },
        started: Some(Nanos::from_s(2.0)),
        finished: Some(Nanos::from_s(5.0)),
        exit: Some(Exit::Code(0)),
        timed_out: false,
        told_to_end: false,
        ended_by_user: false,
        cpu_time: Reading::Value(Nanos::from_s(2.5)),
        waited_max: Nanos::ZERO,
        ran: Nanos::from_s(3.0),
        shared: false,
        counts: Counts::absent(Absence::NoCounters),
        multiplexed: false,
        resources: crate::resources::Resources::absent(Absence::NotTold),
        progress: Reading::Absent(Absence::NotYetMeasured),
        progress_basis: ProgressBasis::CpuTime,
        progress_learnt: Reading::Absent(Absence::NotYetMeasured),
        runs: 1,
        width: Reading::Value(1),
        learnt: None,
        beside: None,
    };
    assert_eq!(result.spec.id, TaskId(0));
    let turnaround =
        |result: &TaskResult| Outcome::of(result, Reading::Absent(Absence::NoSoloTime)).turnaround;
    assert_eq!(turnaround(&result), Reading::Value(Nanos::from_s(4.0)));
    for exit in [
        Exit::Code(1),
        Exit::Signal {
            signal: 9,
            oom: false,
        },
        Exit::ToldToEnd,
    ] {
        result.exit = Some(exit);
        assert_eq!(turnaround(&result), Reading::Absent(Absence::Failed));
    }
    (result.exit, result.finished) = (None, None);
    assert_eq!(turnaround(&result), Reading::Absent(Absence::NotEnded));
    (result.exit, result.finished, result.started) = (None, None, None);
    assert_eq!(turnaround(&result), Reading::Absent(Absence::NotStarted));
}

#[test]
fn names_are_unique_and_texts_are_there() {
    for (ix, metric) in METRICS.iter().enumerate() {
        assert!(
            METRICS[..ix].iter().all(|other| other.name != metric.name),
            "{}",
            metric.name
        );
        for text in [
            metric.unit,
            metric.meaning,
            metric.hint,
            metric.equation,
            metric.source,
        ] {
            assert!(!text.is_empty(), "{}", metric.name);
        }
        assert!(
            metric.meaning.len() <= 80 && !metric.meaning.contains('\n'),
            "{}",
            metric.name
        );
    }
    assert!(metric("no-such-metric").is_none());
}

fn mixes() -> impl Strategy<Value = Outcomes> {
    prop::collection::vec(
        (1u64..1 << 40, 1u64..1 << 40, 0.01f64..8.0, 0u64..1 << 40),
        1..40,
    )
    .prop_map(|tasks| {
        let tasks = tasks
            .into_iter()
            .map(|(turnaround, solo, ipc, wait)| Outcome {
                turnaround: Reading::Value(Nanos(turnaround)),
                solo: Reading::Value(Nanos(solo)),
                ipc: Reading::Value(ipc),
                waited_max: Nanos(wait),
            })
            .collect();
        run(tasks)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn within_their_bounds(run in mixes()) {
        let n = run.tasks.len() as f64;
        let slack = 1.0 + 1e-9;
        for metric in METRICS {
            let value = metric.of(&run).value();
            prop_assert!(value.is_some_and(|value| value.is_finite() && value >= 0.0), "{}", metric.name);
        }
        prop_assert!(value("unfairness", &run) >= 1.0);
        let jain = value("jain", &run);
        prop_assert!(jain <= slack && jain * n * slack >= 1.0, "{}", jain);
        // The mean is at most the maximum, and the arithmetic mean is at least the harmonic mean.
        prop_assert!(value("antt", &run) <= value("worst_slowdown", &run) * slack);
        prop_assert!(value("antt", &run) * value("stp", &run) * slack >= n);
    }

    /// Doubling every solo time is exact. It halves every slowdown and changes no fairness metric.
    #[test]
    fn fairness_does_not_depend_on_the_scale(run in mixes()) {
        let mut doubled = run.clone();
        for task in &mut doubled.tasks {
            task.solo = task.solo.map(|solo| Nanos(solo.0 * 2));
        }
        prop_assert_eq!(value("unfairness", &doubled), value("unfairness", &run));
        prop_assert_eq!(value("jain", &doubled), value("jain", &run));
        prop_assert_eq!(value("worst_slowdown", &doubled) * 2.0, value("worst_slowdown", &run));
        prop_assert_eq!(value("stp", &doubled), value("stp", &run) * 2.0);
    }

    /// Equal slowdowns are fair, whatever their value.
    #[test]
    fn equal_slowdowns_are_fair(n in 1usize..50, factor in 1u64..1000, solo in 1u64..1 << 30) {
        let task = |ix: usize| {
            let solo = solo * (1 << (ix % 8));
            let times = (Reading::Value(Nanos(solo * factor)), Reading::Value(Nanos(solo)));
            Outcome { turnaround: times.0, solo: times.1, ipc: Reading::Value(1.0), waited_max: Nanos::ZERO }
        };
        let run = run((0..n).map(task).collect());
        prop_assert_eq!(value("unfairness", &run), 1.0);
        prop_assert!((value("jain", &run) - 1.0).abs() < 1e-12);
        prop_assert!((value("antt", &run) - factor as f64).abs() < 1e-9 * factor as f64);
    }

    /// If one task lacks its slowdown, every metric over slowdowns is absent, and no other metric is.
    #[test]
    fn one_missing_solo_time(run in mixes(), which in 0usize..40) {
        let mut holed = run.clone();
        let which = which % holed.tasks.len();
        holed.tasks[which].solo = Reading::Absent(Absence::NoSoloTime);
        for metric in METRICS {
            if metric.needs == Needs::Slowdowns {
                prop_assert!(!metric.of(&holed).is_value());
            } else {
                prop_assert_eq!(metric.of(&holed), metric.of(&run));
            }
        }
    }
}
