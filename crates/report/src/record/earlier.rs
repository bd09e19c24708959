//! Jobs of a resumed batch that ran in earlier runs.

use super::JobRecord;
use crate::figures::Absences;
use serde::{Deserialize, Serialize};

/// A job that was not started, because an earlier run did it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierJob {
    /// Its number in the job log, from 1.
    pub seq: u64,
    /// Its name.
    pub name: String,
    /// Its command as a shell would take it.
    pub command: Option<String>,
    /// When it was started, RFC 3339 in UTC.
    pub started_at: Option<String>,
    /// From its start to its end in seconds.
    pub runtime_s: f64,
    /// Its exit status as in a shell.
    pub exit: i32,
    /// The run that did it, as `run_id` in that run's record.
    pub run_id: Option<String>,
    /// The file with that run's record.
    pub record: Option<String>,
    /// The job in that record; its times count from the start of that run.
    pub job: Option<JobRecord>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

impl EarlierJob {
    /// The same without its result in the record of its run, which can be long.
    pub fn without_record(&self) -> EarlierJob {
        let mut all = self.clone();
        all.job = None;
        all.absent
            .lack("job", "the series names the record and does not repeat it");
        all
    }
}

/// A record that its run did not leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// The time of the last line of its series, in seconds from the start of the run: what came later is not known.
    pub until_s: f64,
    /// The last line of the series was cut off.
    pub cut_off: bool,
    /// The version of cosched that wrote the record.
    pub by_version: String,
}
