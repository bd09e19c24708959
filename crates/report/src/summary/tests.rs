//! Summaries of runs of every kind.

use super::*;
use crate::record::{JobTotals, record};
use crate::source::EnergySource;
use crate::testing::{finished, info, result, simulated};
use cosched_core::metric::METRICS;
use cosched_core::{
    Absence, Capabilities, Capability, Counter, Counts, Exit, Nanos, PlanCounts, ProgressBasis,
    Reading, RunResult, TaskResult,
};

/// A new unit in the table of metrics needs a form in the summary.
const UNITS: &[&str] = &["s", "1", "instructions/cycle", "J", "J s"];

fn host() -> RunRecord {
    let result = result();
    record(&result, &info(&result))
}

fn plain_summary(record: &RunRecord, width: usize) -> String {
    summary(
        record,
        &SummaryOptions {
            width,
            verbose: true,
            ..SummaryOptions::default()
        },
    )
}

/// A record with `jobs` jobs, `copies` of each kind.
fn many(jobs: u32, copies: u32) -> RunRecord {
    let task = |id: u32| {
        let mut task = finished(
            id,
            &format!("job{}-{}", id / copies, id % copies),
            f64::from(id % 7 + 1),
            1.0,
        );
        if id % 97 == 5 {
            task.exit = Some(Exit::Code(3));
        }
        task
    };
    let result = RunResult {
        tasks: (0..jobs).map(task).collect::<Vec<TaskResult>>(),
        ..result()
    };
    record(&result, &info(&result))
}

#[test]
fn of_a_run_on_the_host() {
    insta::assert_snapshot!(plain_summary(&host(), 100));
}

/// What a person reads first: no setting, no reasons for what is absent, and the result in the last line.
#[test]
fn in_brief() {
    let mut record = host();
    record.warnings.truncate(1);
    insta::assert_snapshot!(summary(&record, &SummaryOptions::default()));
}

/// A batch of short jobs has a table only if somebody asked for slowdowns.
#[test]
fn of_short_jobs_there_is_one_line() {
    let mut record = host();
    record.warnings.clear();
    record.jobs.truncate(2);
    record.totals = JobTotals {
        jobs: 2,
        succeeded: 2,
        ..JobTotals::default()
    };
    for job in &mut record.jobs {
        job.end.end_s = job.end.start_s.map(|start_s| start_s + 0.9);
    }
    let brief = |record: &RunRecord| summary(record, &SummaryOptions::default());
    assert_eq!(
        brief(&record),
        "2 succeeded in 20.0 s; the halt rule ended the run\n"
    );
    record.setting.options.solo = Some("measure".to_owned());
    assert!(brief(&record).starts_with("JOB "));
}

#[test]
fn failures_have_the_last_line_of_their_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("check.err");
    std::fs::write(&file, "one\ntwo\u{1b}\n\n").unwrap();
    let mut record = host();
    let failed = record.jobs.iter_mut().find(|job| job.failed()).unwrap();
    failed.log_stderr = Some(file.display().to_string());
    let text = summary(&record, &SummaryOptions::default());
    let lines = "\nfailed: check (SIGSEGV after 1.25 s): ./check --input 'a b'\n    two\\x1b\n2 succeeded, 1 failed, ";
    assert!(text.contains(lines), "{text}");
    failed_in_time(&mut record);
    let text = summary(&record, &SummaryOptions::default());
    assert!(
        text.contains("failed: check (timed out with SIGSEGV after 1.25 s)"),
        "{text}"
    );
    assert!(
        text.contains("\n2 succeeded, 1 timed out, 1 not started in 20.0 s"),
        "{text}"
    );
}

fn failed_in_time(record: &mut RunRecord) {
    for job in &mut record.jobs {
        job.end.timed_out = job.failed();
    }
    record.totals.timed_out = record.totals.failed;
}

/// Other programs disturb nearly every run. It matters to who measures.
#[test]
fn disturbances_are_counted_for_who_measures() {
    let mut record = host();
    record.warnings.truncate(1);
    record.warnings[0].code = "disturbed".to_owned();
    let brief = |record: &RunRecord| summary(record, &SummaryOptions::default());
    assert!(!brief(&record).contains("warning"));
    record.setting.options.solo = Some("file".to_owned());
    assert!(brief(&record).contains("\n1 warning above and in the record\n"));
}

#[test]
fn of_a_simulation() {
    let (result, info) = simulated();
    let text = plain_summary(&record(&result, &info), 100);
    assert!(text.starts_with("SIMULATED on two cores"));
    insta::assert_snapshot!(text);
}

#[test]
fn plans_are_told_and_when_they_were_given_up() {
    let (mut result, info) = simulated();
    let text = |result: &RunResult| plain_summary(&record(result, &info), 120);
    assert!(!text(&result).contains("plan"));
    result.plans = Some(PlanCounts {
        installed: 1_234,
        adopted: 1_234,
        given_up: None,
        occupation: None,
    });
    assert!(
        text(&result).contains("\ncarried out as plans: 1,234 plans installed, 1,234 adopted\n")
    );
    result.plans = Some(PlanCounts {
        installed: 2,
        adopted: 1,
        given_up: Some(Nanos::from_ms(2_500)),
        occupation: None,
    });
    let line = "carried out as plans: 2 plans installed, 1 adopted; given up after 2.50 s, from then on decisions were";
    assert!(text(&result).contains(line), "{}", text(&result));
}

#[test]
fn on_a_machine_without_counters_or_solo_times() {
    let mut result = result();
    result.tasks.truncate(2);
    for task in &mut result.tasks {
        task.counts = Counts::absent(Absence::NoCounters);
        task.progress_basis = ProgressBasis::CpuTime;
        task.spec.solo.time = None;
    }
    result.energy_j = Reading::Absent(Absence::NoEnergyMeter);
    let mut info = info(&result);
    info.jobs[0].solo = None;
    info.counters = None;
    let off = [
        Capability::Ipc,
        Capability::Counter(Counter::L1Accesses),
        Capability::Counter(Counter::MmReads),
    ]
    .map(|capability| (capability, Absence::NoCounters));
    info.capabilities = Capabilities {
        missing: off
            .into_iter()
            .chain([(Capability::Energy, Absence::NoEnergyMeter)])
            .collect(),
    };
    insta::assert_snapshot!(plain_summary(&record(&result, &info), 80));
}

#[test]
fn whoever_asked_for_solo_times_is_told_why_metrics_are_missing() {
    let mut result = result();
    for task in &mut result.tasks {
        task.progress_basis = ProgressBasis::CpuTime;
    }
    let mut record = record(&result, &info(&result));
    let brief = |record: &RunRecord| {
        summary(
            record,
            &SummaryOptions {
                width: 200,
                ..SummaryOptions::default()
            },
        )
    };
    assert!(!brief(&record).contains("not known"), "{}", brief(&record));
    record.setting.options.solo = Some("measure".to_owned());
    let line =
        "\nnot known: unfairness, STP, ANTT, Jain's index, worst slowdown (some jobs lack it)\n";
    assert!(brief(&record).contains(line), "{}", brief(&record));
    record.setting.options.solo = None;
    record.backend = BackendKind::Sim;
    assert!(brief(&record).contains(line), "{}", brief(&record));
}

/// How long a job was in the queue is shown if it was long, and of jobs of which it is known.
#[test]
fn time_in_the_queue() {
    let mut record = host();
    let header = |record: &RunRecord| {
        plain_summary(record, 100)
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(!header(&record).contains("QUEUED"), "nobody was");
    record.jobs[0].end.start_s = Some(0.9);
    assert!(
        !header(&record).contains("QUEUED"),
        "less than a twentieth of 20 s"
    );
    record.jobs[0].end.start_s = Some(2.5);
    record.jobs[1].end.start_s = Some(1.0);
    record.jobs[1].end.runs = Some(2);
    insta::assert_snapshot!(plain_summary(&record, 100));
    assert!(
        !plain_summary(&record, 30).contains("QUEUED"),
        "it goes where there is no room"
    );
}

#[test]
fn estimates_are_marked() {
    let mut result = result();
    result.tasks.truncate(2);
    result
        .tasks
        .iter_mut()
        .for_each(|task| task.spec.solo.time = None);
    let mut info = info(&result);
    info.jobs[0].solo = None;
    insta::assert_snapshot!(plain_summary(&record(&result, &info), 80));
}

#[test]
fn of_a_thousand_jobs() {
    insta::assert_snapshot!(plain_summary(&many(1_000, 250), 100));
}

#[test]
fn of_a_thousand_different_jobs() {
    let text = plain_summary(&many(1_000, 1), 100);
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.contains("and 969 more jobs;"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn tables_fit_the_width() {
    let mut missing = host();
    missing.jobs[1].end.exit_text = format!(
        "not started: {}: No such file or directory",
        "/tmp".repeat(40)
    );
    for record in [host(), many(1_000, 250), many(1_000, 1), missing] {
        for width in 60..140 {
            for line in plain_summary(&record, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    insta::assert_snapshot!(plain_summary(&host(), 60));
    assert!(plain_summary(&host(), 0).contains("mcf-1"));
}

#[test]
fn colour_only_when_asked_for() {
    assert!(!plain_summary(&host(), 80).contains('\u{1b}'));
    let coloured = summary(
        &host(),
        &SummaryOptions {
            colour: true,
            verbose: true,
            ..SummaryOptions::default()
        },
    );
    assert!(coloured.contains("\u{1b}[31mfailed: check"));
    let stripped = coloured
        .replace("\u{1b}[31m", "")
        .replace("\u{1b}[1m", "")
        .replace("\u{1b}[0m", "");
    assert_eq!(stripped, plain_summary(&host(), 80));
}

#[test]
fn names_do_not_drive_the_terminal() {
    let mut record = host();
    record.jobs[0].name = "\u{1b}]0;title\u{7}".to_owned();
    record.policy = "\u{1b}[2J".to_owned();
    assert!(!plain_summary(&record, 80).contains('\u{1b}'));
}

#[test]
fn jobs_that_ran_again_are_counted() {
    let mut record = host();
    record.jobs[0].end.runs = Some(3);
    let text = plain_summary(&record, 200);
    assert!(
        text.contains(
            "\n1 job ran more than once, 3 times in all; the figures are of one run of each\n"
        ),
        "{text}"
    );
}

#[test]
fn every_metric_that_is_known_is_explained() {
    let (result, mut info) = simulated();
    info.energy_source = EnergySource::Modelled;
    let result = RunResult {
        energy_j: Reading::Value(10.0),
        turnaround: Nanos::from_s(20.0),
        ..result
    };
    let text = plain_summary(&record(&result, &info), 200);
    for metric in METRICS {
        assert!(text.contains(metric.hint), "{}", metric.name);
        assert!(UNITS.contains(&metric.unit), "{}", metric.unit);
    }
    assert!(text.contains("from a power model"));
    assert!(!text.contains("not known"));
}

#[test]
fn jobs_of_earlier_runs_are_counted_apart() {
    let mut record = host();
    let text = plain_summary(&record, 200);
    assert!(!text.contains("earlier"), "{text}");
    record.totals.earlier = 18;
    let text = plain_summary(&record, 200);
    assert!(text.contains("18 done earlier"), "{text}");
    assert!(
        text.contains("over the 4 jobs of this run, without those done earlier"),
        "{text}"
    );
}

#[test]
fn an_empty_run() {
    let result = RunResult {
        tasks: vec![],
        ..result()
    };
    let text = plain_summary(&record(&result, &info(&super::tests::result())), 80);
    assert!(
        text.ends_with("\n0 succeeded in 20.0 s; the halt rule ended the run\n"),
        "{text}"
    );
}
