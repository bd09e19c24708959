use super::*;
use crate::RunWarning;
use crate::info::RunInfo;
use crate::testing::{check_absences, finished, info, result, simulated};
use cosched_core::metric::METRICS;
use cosched_core::{Absence, Counter, EndedBy, Exit, Nanos, ProgressBasis, Reading};
use proptest::prelude::*;

fn host() -> RunRecord {
    let result = result();
    record(&result, &info(&result))
}

/// The version changes with every release; the format does not.
fn shown(record: &RunRecord) -> String {
    record
        .to_json()
        .replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn on_the_host() {
    insta::assert_snapshot!(shown(&host()));
}

#[test]
fn in_a_simulation() {
    let (result, info) = simulated();
    let record = record(&result, &info);
    insta::assert_snapshot!(shown(&record));
    assert_eq!(record.to_json(), super::record(&result, &info).to_json());
    assert_eq!(record.absent.why("started_at"), Some("simulated"));
    assert_eq!(record.overhead.decide_us.why("p50"), Some("simulated"));
}

#[test]
fn every_null_has_its_reason() {
    for record in [host(), record(&simulated().0, &simulated().1)] {
        check_absences(&serde_json::from_str(&record.to_json()).unwrap());
    }
}

#[test]
fn every_metric_is_in_it() {
    let record = host();
    let names: Vec<&str> = record.metrics.iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>()
    );
    let json: serde_json::Value = serde_json::from_str(&record.to_json()).unwrap();
    for metric in METRICS {
        assert!(
            json["metrics"].get(metric.name).is_some(),
            "{}",
            metric.name
        );
    }
}

#[test]
fn exit_statuses_are_those_of_a_shell() {
    assert_eq!(Exit::Code(3).status(), Some(3));
    assert_eq!(
        Exit::Signal {
            signal: 9,
            oom: true
        }
        .status(),
        Some(137)
    );
    assert_eq!(
        Exit::NotStarted("no such file".to_owned()).status(),
        Some(127)
    );
    assert_eq!(Exit::Unknown.status(), None);
    let mut result = result();
    result.tasks[0].exit = Some(Exit::Unknown);
    let record = record(&result, &info(&result));
    assert_eq!(
        record.jobs[0].absent.why("exit"),
        Some("ended, but its exit status is not known")
    );
    assert_eq!(record.jobs[3].absent.why("exit"), Some("did not start"));
    assert_eq!(
        record.jobs[2].absent.why("slowdown"),
        Some("the job failed")
    );
}

#[test]
fn of_very_many_jobs_that_never_started_the_first_are_kept() {
    let mut result = result();
    let never = result.tasks[3].clone();
    result.tasks.splice(3..3, (0..5_000).map(|_| never.clone()));
    let last = result.tasks[0].clone();
    result.tasks.push(last);
    let record = record(&result, &info(&result));
    assert_eq!(
        (record.totals.jobs, record.totals.not_started),
        (5_005, 5_001)
    );
    assert_eq!(record.jobs.len(), 1_004);
    assert_eq!(record.jobs[1_003].end.exit, Some(0));
    assert!(crate::headline_text(&record).contains("5,001 not started"));
}

#[test]
fn estimates_are_marked_as_such() {
    let mut result = result();
    result.tasks.truncate(2);
    let mut info = info(&result);
    for (task, job) in result.tasks.iter_mut().zip(&mut info.jobs) {
        (task.spec.solo.time, job.solo) = (None, None);
    }
    let estimated = record(&result, &info);
    // 50 quanta of 0.2 s alone, ended after 15 s and 20 s.
    assert_eq!(estimated.jobs[0].slowdown, None);
    assert_eq!(estimated.jobs[0].slowdown_estimate, Some(1.5));
    assert_eq!(estimated.metrics.get("unfairness"), None);
    assert_eq!(
        estimated
            .metrics_estimated
            .as_ref()
            .unwrap()
            .get("unfairness"),
        Some(&(2.0 / 1.5))
    );
    // Progress that only counts CPU time does not show slowdown.
    result.tasks[0].progress_basis = ProgressBasis::CpuTime;
    let unknown = record(&result, &info);
    assert_eq!(unknown.jobs[0].slowdown_estimate, None);
    assert_eq!(unknown.metrics_estimated, None);
}

#[test]
fn other_files_are_refused_with_what_was_expected() {
    let check = |text: &str, expected: &str| {
        let error = RunRecord::from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("{}", "found no `schema`");
    check(r#"{"schema":"cosched.run/1"}"#, "found `cosched.run/1`");
    check("nonsense", "line 1: expected");
    check(
        "{\"schema\":\"cosched.run/2\",\n\"policy\":3}",
        "line 2, key `policy`: invalid type: integer `3`, expected a string",
    );
    let broken = host().to_json().replace("\"cpus\": 1,", "\"cpus\": -1,");
    check(
        &broken,
        "key `jobs[0].cpus`: invalid value: integer `-1`, expected u32",
    );
}

#[test]
fn a_later_record_with_more_keys_is_read() {
    let text = host()
        .to_json()
        .replacen("\"policy\"", "\"new_key\": {\"a\": [1]}, \"policy\"", 1);
    assert_eq!(RunRecord::from_json(&text).unwrap(), host());
}

fn reading() -> impl Strategy<Value = Reading<f64>> {
    prop_oneof![
        3 => (0.0f64..1e12).prop_map(Reading::Value),
        1 => Just(Reading::Absent(Absence::CountersLost)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the figures, a record reads back to the same bits and keeps its nulls and reasons in step.
    #[test]
    fn round_trip(
        times in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0i32..256, reading()), 0..8),
        turnaround in any::<u64>(),
        energy in reading(),
        seed in any::<u64>(),
        signal in prop::option::of(1i32..64),
        name in "\\PC{0,12}",
    ) {
        let mut result = result();
        result.tasks = (times.iter().enumerate())
            .map(|(ix, &(finish, solo, cpu, code, progress))| {
                let mut task = finished(ix as u32, &format!("{name}-{ix}"), 0.0, 0.0);
                task.finished = Some(Nanos(finish));
                task.spec.solo.time = (solo % 3 > 0).then_some(Nanos(solo));
                task.cpu_time = Reading::Value(Nanos(cpu));
                task.counts[Counter::Instructions] = Reading::Value(cpu);
                task.exit = (code != 7).then_some(Exit::Code(code % 3));
                task.progress = progress;
                task
            })
            .collect();
        // No run ends before its jobs.
        let last = times.iter().map(|(finish, ..)| *finish).max().unwrap_or(0);
        result.turnaround = Nanos(turnaround.max(last));
        result.energy_j = energy;
        result.ended_by = signal.map_or(EndedBy::Completion, EndedBy::Signal);
        let mut info = RunInfo { seed, ..info(&result) };
        info.warnings.push(RunWarning::SoloFailed { job: name });
        let record = record(&result, &info);
        let text = record.to_json();
        let back = RunRecord::from_json(&text).unwrap();
        prop_assert_eq!(&back, &record);
        prop_assert_eq!(back.to_json(), text);
        check_absences(&serde_json::from_str(&record.to_json()).unwrap());
    }
}
