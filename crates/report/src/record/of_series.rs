//! The record of a run that left none, because it was killed or goes on, from its series.

use super::{JobRecord, Rebuilt, RunRecord, record};
use crate::info::{JobInfo, RunInfo};
use crate::series::{SeriesError, SeriesHeader, SeriesJob, SeriesReader, SeriesRun};
use crate::source::EnergySource;
use cosched_core::{Absence, Capabilities, Reading, TaskSpec};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

/// Why a run has no record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoRecord {
    /// It was killed, or it could not write one, as on a full disk. Its series does not say which.
    Killed,
    /// It still runs.
    GoesOn,
}

impl NoRecord {
    /// Return the end of the run, for `finished_by`.
    fn finished_by(self) -> &'static str {
        match self {
            NoRecord::Killed => "killed",
            NoRecord::GoesOn => "goes-on",
        }
    }

    /// Return why a job that ran last has no end.
    fn without_end(self) -> &'static str {
        match self {
            NoRecord::Killed => "lost: its end is unknown",
            NoRecord::GoesOn => "still running",
        }
    }

    /// Return why a value is absent that only the run itself could record.
    fn not_kept(self) -> &'static str {
        match self {
            NoRecord::Killed => "the run left no record of this",
            NoRecord::GoesOn => "the run has not ended",
        }
    }
}

/// Build the record of a run that was killed or goes on, as far as its series has it.
///
/// `log_of` returns the files of a job's standard output and standard error, by its name. `ran` says which jobs were
/// found running after the run: the series may lack a job that started just before the run was killed.
///
/// A job that ran when the run was killed is `lost`. Its figures reach to its last sample, like those of a job that goes
/// on, and the batch has no turnaround. A job that was started several times has the figures that a record gives: those of
/// its first run if that ended by itself, else those of its last attempt.
///
/// # Errors
/// The series cannot be read. A last line that was cut off is no error.
pub fn record_of_series<R: BufRead>(
    series: SeriesReader<R>,
    why: NoRecord,
    log_of: impl Fn(&str) -> (Option<String>, Option<String>),
    ran: impl Fn(&str) -> bool,
) -> Result<RunRecord, SeriesError> {
    let run = SeriesRun::read(series)?;
    let mut made = record(&run.result(), &run_info(&run.header, log_of));
    let names = run.header.tasks.iter().map(|task| &*task.name);
    let by_name: HashMap<&str, &SeriesJob> = names.zip(&run.jobs).collect();
    for job in &mut made.jobs {
        let of_series = by_name[&*job.name];
        if of_series.end.is_none() {
            let has_run = of_series.started.is_some() || ran(&job.name);
            amend_job(job, of_series, has_run, why);
        }
    }
    amend(&mut made, why);
    made.rebuilt = Some(Rebuilt {
        until_s: run.until().as_s(),
        cut_off: run.cut_off,
        by_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    made.cosched_version = run.header.cosched_version;
    made.warnings = run.warnings;
    Ok(made)
}

/// Mark what is not known of a job that has not ended.
fn amend_job(job: &mut JobRecord, of_series: &SeriesJob, has_run: bool, why: NoRecord) {
    let absent = &mut job.absent;
    if has_run {
        job.lost = why == NoRecord::Killed;
        for name in ["end_s", "exit", "exit_text"] {
            absent.lack(name, why.without_end());
        }
    }
    if of_series.started.is_some() {
        absent.lack("width", why.not_kept());
        absent.lack("progress", why.not_kept());
    } else if job.lost {
        absent.lack("waited_max_s", why.not_kept());
    }
}

/// Return what the header says of the run.
fn run_info(
    header: &SeriesHeader,
    log_of: impl Fn(&str) -> (Option<String>, Option<String>),
) -> RunInfo {
    let mut jobs = Vec::new();
    for task in &header.tasks {
        let (log, log_stderr) = log_of(&task.name);
        jobs.push(JobInfo {
            seq: task.seq.unwrap_or(u64::from(task.task) + 1),
            command: task.command.clone(),
            given: task.given.clone(),
            log,
            log_stderr,
            ..JobInfo::of(&TaskSpec::new(task.task, &task.name))
        });
    }
    let started_at = header.started_at.as_deref();
    RunInfo {
        run_id: header.run_id.clone(),
        setting: header.setting.clone(),
        policy: header.policy.clone(),
        backend: header.backend,
        machine: Arc::new(header.machine.clone()),
        seed: header.seed,
        quantum: header.quantum_ns,
        started_at: started_at.and_then(|at| humantime::parse_rfc3339(at).ok()),
        jobs,
        capabilities: Capabilities::default(),
        counters: None,
        freezing: None,
        cpu_share: Reading::Absent(Absence::NotYetMeasured),
        machine_use: Reading::Absent(Absence::NotYetMeasured),
        earlier: header.earlier_jobs.clone(),
        energy_source: EnergySource::Absent,
        warnings: Vec::new(),
    }
}

/// Mark what only a record has which the run itself wrote.
fn amend(made: &mut RunRecord, why: NoRecord) {
    if made.jobs.iter().any(|job| job.end.end_s.is_none()) {
        made.metrics.lose("turnaround_s", why.not_kept());
        made.metrics.lose("edp_js", why.not_kept());
    }
    made.finished_by = why.finished_by().to_owned();
    let absent = &mut made.absent;
    for name in ["signal", "counters", "freezing", "plans"] {
        absent.lack(name, why.not_kept());
    }
    absent.forget("rebuilt");
}

#[cfg(test)]
#[path = "of_series_tests.rs"]
mod tests;
