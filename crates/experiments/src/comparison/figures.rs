//! The figures of single runs.

use crate::comparison::design::CandidateRun;
use cosched_report::{BackendKind, JobRecord, RunRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Which run it was.
    pub trial: CandidateRun,
    /// The policy that decided, never `auto`; `None` of a command.
    pub policy: Option<String>,
    /// Metrics by their names in the run record; those without a value are left out.
    pub figures: BTreeMap<String, f64>,
    /// Why metrics have no value, by their names.
    pub absent: BTreeMap<String, String>,
    /// The number of jobs that did not end well. A command is one job.
    pub failed: usize,
    /// Reasons to doubt its figures, in sentences.
    pub doubts: Vec<String>,
    /// The machine that it ran on.
    #[serde(skip)]
    pub machine: String,
}

impl Default for CandidateRun {
    fn default() -> CandidateRun {
        CandidateRun {
            block: 1,
            mix: 0,
            candidate: 0,
        }
    }
}

/// The only metric of a command.
const TIME: &str = "turnaround_s";

/// Ends of runs that were cut short.
const CUT: [&str; 7] = [
    "deadline",
    "drain",
    "allocation",
    "nodes",
    "signal",
    "killed",
    "goes-on",
];

/// Warnings that make the figures of a run doubtful.
const DOUBTS: [&str; 8] = [
    "disturbed",
    "cpus-collide",
    "cpus-shared",
    "cpus-gained",
    "cpus-offline",
    "steps-back",
    "paused",
    "job-limit",
];

impl RunFigures {
    /// The result from a run record; `None` if the run was cut short.
    pub fn of_record(trial: CandidateRun, record: &RunRecord) -> Option<RunFigures> {
        if CUT.contains(&record.finished_by.as_str()) {
            return None;
        }
        let mut outcome = RunFigures {
            trial,
            policy: Some(record.policy.clone()),
            failed: record.totals.failed + record.totals.unfinished,
            machine: record.machine.clone(),
            ..RunFigures::default()
        };
        for (name, value) in record.metrics.iter() {
            match value {
                Ok(value) => drop(outcome.figures.insert(name.to_owned(), *value)),
                Err(why) => drop(outcome.absent.insert(name.to_owned(), why.to_owned())),
            }
        }
        if outcome.failed > 0 {
            let first = failed(record).map_or("a job", |job| &job.name);
            outcome.doubts.push(format!(
                "jobs failed, {first} first; compared only with runs in which as many failed"
            ));
        }
        if record.backend == BackendKind::Host {
            for warning in &record.warnings {
                if DOUBTS.contains(&warning.code.as_str()) {
                    outcome.doubts.push(warning.text.clone());
                }
            }
        }
        Some(outcome)
    }

    /// The result from the record of a command, which ran as the only job: its time.
    pub fn of_command(trial: CandidateRun, record: &RunRecord) -> Option<RunFigures> {
        let mut outcome = RunFigures::of_record(trial, record)?;
        outcome.policy = None;
        outcome.figures.retain(|name, _| name == TIME);
        outcome.absent.clear();
        if let Some(job) = failed(record) {
            let how = failure_text(job);
            outcome.doubts = vec![format!(
                "the command failed ({how}), so it is compared with nothing"
            )];
        }
        Some(outcome)
    }

    /// Whether both runs did the same part of the batch. A batch that fails early is not fast. How much a failed command did is
    /// unknown, so it never did the same.
    pub fn did_as_much_as(&self, other: &RunFigures) -> bool {
        if self.is_command() || other.is_command() {
            self.failed == 0 && other.failed == 0
        } else {
            self.failed == other.failed
        }
    }

    /// Whether it is the run of a command.
    pub fn is_command(&self) -> bool {
        self.policy.is_none()
    }

    /// The value of a metric.
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied()
    }
}

/// The first job that did not end well.
fn failed(record: &RunRecord) -> Option<&JobRecord> {
    record.jobs.iter().find(|job| job.end.exit != Some(0))
}

/// How a job failed, with the last line of its standard error.
fn failure_text(job: &JobRecord) -> String {
    let how = job.end_text();
    match job.last_error() {
        Some(error) => format!("{how}: {error}"),
        None => how,
    }
}
