//! The series beside the run record: which task ran where, what was measured, and why each task waited, quantum by
//! quantum.
//!
//! Append-only JSON Lines. The first line is an object, the header; every other line is an array that begins with a
//! letter for its kind and the time in nanoseconds from the start of the run. The header names the columns, so a reader
//! needs no other text. Only what changed is written: a placement when it differs from the task's last, a reason to
//! wait when its code differs, a reason of absence when it does.
//!
//! Within version 1 new kinds of line and new columns at the end of a line may be added; a reader ignores what it does
//! not know.

pub(crate) mod in_order;
pub(crate) mod measured;
mod reader;
pub(crate) mod replay;
mod row;
mod run;
#[cfg(test)]
mod tests;
mod writer;

use crate::info::{JobInfo, RunInfo};
use crate::record::{EarlierJob, RunRecord, rfc3339};
use crate::setting::{JobGiven, RunSetting};
use crate::source::BackendKind;
use cosched_core::{Machine, Nanos, TaskSpec, Width};
pub use reader::{SeriesError, SeriesFile, SeriesReader};
pub use row::{CpuMode, KINDS, SampleRow, SeriesRow, SeriesRowKind};
pub(crate) use run::{SeriesJob, SeriesRun};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use writer::SeriesWriter;

/// The format's name and version.
pub const SERIES_SCHEMA: &str = "cosched.series/2";

/// The first line of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesHeader {
    /// [`SERIES_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// Unique identity of the run on its host; null in a simulation.
    pub run_id: Option<String>,
    /// How the run was started, as in the run record.
    pub setting: RunSetting,
    /// The policy that decided, never `auto`.
    pub policy: String,
    /// Real processes, or a simulation.
    pub backend: BackendKind,
    /// Seed of the run's generator.
    pub seed: u64,
    /// The unit of progress in nanoseconds.
    pub quantum_ns: Nanos,
    /// When the run began, RFC 3339 in UTC; null in a simulation.
    pub started_at: Option<String>,
    /// The columns of each kind of line, by its letter.
    pub columns: BTreeMap<String, Vec<String>>,
    /// The machine, restricted to the CPUs that could be used.
    pub machine: Machine,
    /// Jobs of the batch that earlier runs did.
    /// The results in their records are left out.
    pub earlier_jobs: Vec<EarlierJob>,
    /// Every task, in the order of the tasks' numbers.
    pub tasks: Vec<SeriesTask>,
    /// Whether more tasks come in lines of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// A task as the header names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesTask {
    /// Its number, as in the lines.
    pub task: u32,
    /// Its unique name.
    pub name: String,
    /// Hardware threads that it needs at once.
    pub cpus: u32,
    /// Whether that was stated, or is measured.
    pub width: Width,
    /// Its weight; left out if it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// When it arrives, in nanoseconds from the start of the run.
    pub arrival_ns: Nanos,
    /// Its number in the job log, from 1.
    pub seq: Option<u64>,
    /// Its command as a shell would take it; null if it has none.
    pub command: Option<String>,
    /// What else it was given.
    #[serde(default, skip_serializing_if = "JobGiven::is_empty")]
    pub given: JobGiven,
}

impl SeriesHeader {
    /// The header for a run with these tasks.
    pub fn new<'a>(info: &RunInfo, tasks: impl IntoIterator<Item = &'a TaskSpec>) -> SeriesHeader {
        SeriesHeader {
            schema: SERIES_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: info.run_id.clone(),
            setting: info.setting.clone(),
            policy: info.policy.clone(),
            backend: info.backend,
            seed: info.seed,
            quantum_ns: info.quantum,
            started_at: info.started_at.map(rfc3339),
            columns: KINDS.iter().map(columns_of).collect(),
            machine: (*info.machine).clone(),
            earlier_jobs: info
                .earlier
                .iter()
                .map(EarlierJob::without_record)
                .collect(),
            tasks: tasks
                .into_iter()
                .map(|task| SeriesTask::new(task, info.jobs.get(task.id.0 as usize)))
                .collect(),
            open: false,
        }
    }
}

/// A kind of row, and the names of its columns.
fn columns_of(kind: &SeriesRowKind) -> (String, Vec<String>) {
    let names = kind.columns.iter();
    let names = names.map(|name| (*name).to_owned());
    (kind.code.to_owned(), names.collect())
}

impl SeriesTask {
    fn new(spec: &TaskSpec, job: Option<&JobInfo>) -> SeriesTask {
        SeriesTask {
            task: spec.id.0,
            name: spec.name.clone(),
            cpus: spec.cpus,
            width: spec.width,
            weight: spec.given_weight(),
            arrival_ns: spec.arrives,
            seq: job.map(|job| job.seq),
            command: job.and_then(|job| job.command.clone()),
            given: job.map(|job| job.given.clone()).unwrap_or_default(),
        }
    }
}

/// Whether a record and a series are of the same run. A simulated run has no identity; its jobs and settings show it.
pub fn is_of_run(record: &RunRecord, header: &SeriesHeader) -> bool {
    let names = record.jobs.iter().map(|job| &job.name);
    record.run_id == header.run_id
        && record.policy == header.policy
        && record.seed == header.seed
        && record.started_at == header.started_at
        && (record.run_id.is_some() || names.eq(header.tasks.iter().map(|task| &task.name)))
}
