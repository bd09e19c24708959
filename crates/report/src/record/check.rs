//! Values that no run can have. A record with one of them was damaged or changed by hand, and tables would show it as a figure.

use super::{Job, Record, RecordError};
use crate::figures::Figures;

/// Figures that follow from others are written with all their digits; so much is for the last ones.
const ROUNDING: f64 = 1e-6;

/// Checks all times, and what follows from them.
///
/// # Errors
/// A value can't be. The error names its key.
pub(super) fn check(record: &Record) -> Result<(), RecordError> {
    not_negative("quantum_s", Some(record.quantum_s))?;
    for (at, job) in record.jobs.iter().enumerate() {
        check_job(&format!("jobs[{at}]"), job)?;
    }
    for (at, job) in record.earlier_jobs.iter().enumerate() {
        let key = format!("earlier_jobs[{at}]");
        not_negative(&format!("{key}.runtime_s"), job.runtime_s)?;
        job.job
            .as_ref()
            .map_or(Ok(()), |job| check_job(&format!("{key}.job"), job))?;
    }
    not_negative("energy.joules", record.energy.joules)?;
    not_negative("overhead.cpu_share", record.overhead.cpu_share)?;
    check_metrics("metrics", &record.metrics)?;
    record
        .metrics_estimated
        .as_ref()
        .map_or(Ok(()), |metrics| {
            check_metrics("metrics_estimated", metrics)
        })?;

    let last = record
        .jobs
        .iter()
        .filter_map(|job| job.finish_s)
        .fold(0.0, f64::max);
    if let Some(turnaround) = record
        .metrics
        .get("turnaround_s")
        .filter(|turnaround| is_less(**turnaround, last))
    {
        let problem = format!("{turnaround}, but a job ended after {last} s");
        return Err(wrong("metrics.turnaround_s", problem));
    }
    let greatest = record
        .jobs
        .iter()
        .filter_map(|job| job.slowdown)
        .fold(0.0, f64::max);
    if let Some(worst) = record
        .metrics
        .get("worst_slowdown")
        .filter(|worst| is_less(**worst, greatest))
    {
        return Err(wrong(
            "metrics.worst_slowdown",
            format!("{worst}, but a job has a slowdown of {greatest}"),
        ));
    }
    Ok(())
}

fn check_job(key: &str, job: &Job) -> Result<(), RecordError> {
    let key = |name: &str| format!("{key}.{name}");
    for (name, value) in [
        ("arrival_s", Some(job.arrival_s)),
        ("start_s", job.start_s),
        ("finish_s", job.finish_s),
        ("cpu_s", job.cpu_s),
        ("user_s", job.user_s),
        ("system_s", job.system_s),
        ("ran_s", Some(job.ran_s)),
        ("waited_max_s", job.waited_max_s),
        ("ipc", job.ipc),
        ("progress", job.progress),
        ("progress_learnt", job.progress_learnt),
        (
            "expected.time_s",
            job.expected.map(|expected| expected.time_s),
        ),
    ] {
        not_negative(&key(name), value)?;
    }
    for (name, value) in [
        ("solo_s", job.solo_s),
        ("slowdown", job.slowdown),
        ("slowdown_estimate", job.slowdown_estimate),
    ] {
        not_negative(&key(name), value)?;
        if value == Some(0.0) && name != "solo_s" {
            return Err(wrong(
                &key(name),
                "expected a number above 0, found 0".to_owned(),
            ));
        }
    }
    for (name, before) in [("arrival_s", Some(job.arrival_s)), ("start_s", job.start_s)] {
        if let (Some(before), Some(finish)) = (before, job.finish_s)
            && is_less(finish, before)
        {
            return Err(wrong(
                &key("finish_s"),
                format!("{finish}, which is before its {name}, {before}"),
            ));
        }
    }
    if let (Some(slowdown), Some(solo), Some(turnaround)) =
        (job.slowdown, job.solo_s, job.turnaround_s())
        && solo > 0.0
        && (is_less(slowdown, turnaround / solo) || is_less(turnaround / solo, slowdown))
    {
        let problem = format!("{slowdown}, but it took {turnaround} s and takes {solo} s alone");
        return Err(wrong(&key("slowdown"), problem));
    }
    Ok(())
}

/// Metrics that are ratios of slowdowns, and so above 0.
const RATIOS: [&str; 5] = ["unfairness", "stp", "antt", "jain", "worst_slowdown"];

fn check_metrics(key: &str, metrics: &Figures<f64>) -> Result<(), RecordError> {
    for (name, value) in metrics.iter() {
        let Ok(value) = value else { continue };
        not_negative(&format!("{key}.{name}"), Some(*value))?;
        if *value == 0.0 && RATIOS.contains(&name) {
            return Err(wrong(
                &format!("{key}.{name}"),
                "expected a number above 0, found 0".to_owned(),
            ));
        }
    }
    Ok(())
}

fn not_negative(key: &str, value: Option<f64>) -> Result<(), RecordError> {
    match value {
        Some(value) if !value.is_finite() || value < 0.0 => Err(wrong(
            key,
            format!("expected a number that is not negative, found {value}"),
        )),
        _ => Ok(()),
    }
}

/// Whether a value is less than another by more than rounding.
fn is_less(value: f64, other: f64) -> bool {
    value < other - ROUNDING * other.abs().max(1e-3)
}

fn wrong(key: &str, problem: String) -> RecordError {
    RecordError::Value {
        key: key.to_owned(),
        problem,
    }
}
