//! Solo times from an earlier run's record.

use super::Record;
use crate::setting::Given;
use crate::warning::{DISTURBED, SOLO_DISTURBED};
use std::collections::BTreeMap;

/// Minimum solo time in seconds. A shorter time would be 0 on the clock of a run, which counts nanoseconds.
pub(crate) const LEAST_S: f64 = 1e-9;

/// Solo times in seconds by the jobs' commands, and by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoloTimes {
    /// Solo time by the job's command, as a shell would take it, and by what else the job was given.
    pub by_command: BTreeMap<(String, Given), f64>,
    /// Solo time by the job's name.
    pub by_name: BTreeMap<String, f64>,
    /// Whether others used the CPUs while they were measured, so that they are not to be trusted.
    pub disturbed: bool,
}

impl SoloTimes {
    /// The solo time of a job, by its command and what else it was given. Its name is used only if the job has no command
    /// or the record has none, since numbered names mean other work in another run.
    pub fn get(&self, name: &str, command: Option<&str>, given: &Given) -> Option<f64> {
        match command {
            Some(command) if !self.by_command.is_empty() => self
                .by_command
                .get(&(command.to_owned(), given.clone()))
                .copied(),
            _ => self.by_name.get(name).copied(),
        }
    }

    /// Whether there is no solo time.
    pub fn is_empty(&self) -> bool {
        self.by_command.is_empty() && self.by_name.is_empty()
    }
}

/// The solo times in a record.
///
/// A job's `solo_s` is its solo time. If no two jobs of the run overlapped, the solo time of every other job that ended
/// well is its own time from start to end. Jobs with the same command that were given the same get the mean. The times are disturbed if the
/// record says so of its solo times, or of the run and some of them are from the run itself.
pub fn solo_times(record: &Record) -> SoloTimes {
    let one_by_one = one_by_one(record);
    let mut means = Means::default();
    let disturbed = has_warning(record, DISTURBED);
    let mut times = SoloTimes {
        disturbed: has_warning(record, SOLO_DISTURBED),
        ..SoloTimes::default()
    };
    for job in &record.jobs {
        let alone = match (one_by_one && job.exit == Some(0), job.start_s, job.finish_s) {
            (true, Some(start), Some(finish)) => Some(finish - start),
            _ => None,
        };
        let Some(solo) = job.solo_s.or(alone).filter(|&solo| solo >= LEAST_S) else {
            continue;
        };
        times.disturbed |= disturbed && job.solo_s.is_none();
        times.by_name.insert(job.name.clone(), solo);
        if let Some(command) = &job.command {
            means.add(command, &job.given, solo);
        }
    }
    times.by_command = means.into_times();
    times
}

fn has_warning(record: &Record, code: &str) -> bool {
    record.warnings.iter().any(|warning| warning.code == code)
}

/// Mean times of jobs that are alike.
#[derive(Default)]
pub(crate) struct Means {
    /// Sum and number.
    sums: BTreeMap<(String, Given), (f64, f64)>,
}

impl Means {
    pub(crate) fn add(&mut self, command: &str, given: &Given, time: f64) {
        let (sum, n) = self
            .sums
            .entry((command.to_owned(), given.clone()))
            .or_default();
        *sum += time;
        *n += 1.0;
    }

    pub(crate) fn into_times(self) -> BTreeMap<(String, Given), f64> {
        self.sums
            .into_iter()
            .map(|(job, (sum, n))| (job, sum / n))
            .collect()
    }
}

/// Whether every job ended before the next one started.
fn one_by_one(record: &Record) -> bool {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for job in &record.jobs {
        match (job.start_s, job.finish_s) {
            (Some(start), Some(finish)) => spans.push((start, finish)),
            (Some(start), None) => spans.push((start, f64::INFINITY)),
            (None, _) => {}
        }
    }
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}
