//! A world in a process of its own as a fixture.

use crate::fixture::{Fixture, JobAction, ScenarioJob, ScenarioSkip, name};
use cosched_core::{CpuSet, Nanos, TaskId};
use cosched_foreign::{Command, ForeignWorld, WorldJob};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// What the jobs of the scenarios are given: a world of its own kind has its own way to say what a job does.
#[derive(Clone, Debug, Default)]
pub struct WorldJobs(BTreeMap<String, Map<String, Value>>);

/// A file that does not say what jobs are given.
#[derive(Debug, thiserror::Error)]
pub enum WorldJobsError {
    /// It can't be read.
    #[error("{file}: {why}")]
    Read {
        /// The file.
        file: String,
        /// The reason.
        why: std::io::Error,
    },
    /// It is no such file.
    #[error("{file}: {why}")]
    Text {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
}

/// The tables that a file may have.
const KINDS: [&str; 6] = ["work", "endless", "fails", "crashes", "unstartable", "naps"];

impl WorldJobs {
    /// Reads a TOML file with a table for each kind of job: `work`, `endless`, `fails`, `crashes`, `unstartable` and `naps`. In
    /// `work`, a value `"{s}"` is the time that the job takes alone, in seconds, `"{ms}"` in milliseconds, `"{ns}"` in
    /// nanoseconds. Without a table, the scenarios with such jobs are skipped.
    ///
    /// # Errors
    /// The file can't be read, or has another table.
    pub fn read(path: &Path) -> Result<WorldJobs, WorldJobsError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|why| WorldJobsError::Read {
            file: file.clone(),
            why,
        })?;
        let wrong = |why: String| WorldJobsError::Text {
            file: file.clone(),
            why,
        };
        let tables: BTreeMap<String, Map<String, Value>> =
            toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match tables.keys().find(|kind| !KINDS.contains(&kind.as_str())) {
            Some(kind) => Err(wrong(format!(
                "there is no kind of job `{kind}`; there are {}",
                KINDS.join(", ")
            ))),
            None => Ok(WorldJobs(tables)),
        }
    }

    fn given(&self, does: JobAction) -> Result<Map<String, Value>, ScenarioSkip> {
        let kind = match does {
            JobAction::Work(_) => "work",
            JobAction::Endless => "endless",
            JobAction::Fails => "fails",
            JobAction::Crashes => "crashes",
            JobAction::Unstartable => "unstartable",
            JobAction::Naps => "naps",
        };
        let table = self.0.get(kind);
        let mut given = table
            .ok_or_else(|| ScenarioSkip(format!("there is no table `{kind}`")))?
            .clone();
        if let JobAction::Work(ms) = does {
            given
                .values_mut()
                .for_each(|value| set_time(value, ms.into()));
        }
        Ok(given)
    }
}

/// Puts a time where the value stands for one.
fn set_time(value: &mut Value, ms: u64) {
    match value.as_str() {
        Some("{s}") => *value = (ms as f64 / 1e3).into(),
        Some("{ms}") => *value = ms.into(),
        Some("{ns}") => *value = (ms * 1_000_000).into(),
        _ => {}
    }
}

/// A world behind a command.
#[derive(Clone)]
pub struct ForeignFixture {
    command: Command,
    jobs: WorldJobs,
}

impl ForeignFixture {
    /// A world whose jobs are given this.
    pub fn new(command: Command, jobs: WorldJobs) -> ForeignFixture {
        ForeignFixture { command, jobs }
    }
}

impl Fixture for ForeignFixture {
    type Backend = ForeignWorld;

    const AFTER_STOP: Nanos = Nanos::ZERO;
    const CLOSE: Nanos = Nanos::ZERO;
    const LONG: u64 = 40;
    const LEAST_SHARE: f64 = 0.98;
    const NOT_REPEATABLE: Option<&'static str> = None;

    fn backend(&self, jobs: &[ScenarioJob]) -> Result<ForeignWorld, ScenarioSkip> {
        let mut told = Vec::new();
        for (id, job) in jobs.iter().enumerate() {
            told.push(WorldJob {
                name: name(id),
                cpus: job.cpus,
                given: self.jobs.given(job.does)?,
            });
        }
        let world = ForeignWorld::open(&self.command, 1, || None);
        let mut world = world.unwrap_or_else(|error| panic!("{error}"));
        world.add(told).unwrap_or_else(|error| panic!("{error}"));
        Ok(world)
    }

    fn cpus_of(backend: &mut ForeignWorld, task: usize, _wanted: Option<&CpuSet>) -> CpuSet {
        backend.cpus_of(TaskId(task as u32))
    }

    /// A world leaves no processes.
    fn nothing_stands_still(&self) {}
}
