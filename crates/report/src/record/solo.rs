//! Solo times from an earlier run's record.

use super::Record;
use std::collections::BTreeMap;

/// Solo times in seconds by what a job runs, and by its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoloTimes {
    /// By command.
    pub by_command: BTreeMap<String, f64>,
    /// By the job's name.
    pub by_name: BTreeMap<String, f64>,
}

impl SoloTimes {
    /// Of a job: by its command; by its name only where no command is known, of the job or of the whole record, since
    /// numbered names mean other work in another run.
    pub fn get(&self, name: &str, command: Option<&str>) -> Option<f64> {
        match command {
            Some(command) if !self.by_command.is_empty() => self.by_command.get(command).copied(),
            _ => self.by_name.get(name).copied(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_command.is_empty() && self.by_name.is_empty()
    }
}

/// The solo times that a record holds.
///
/// A job's `solo_s` where it has one. In a run in which never two jobs were there at the same time, every other job
/// that ended well was alone, and its solo time is its own time from start to end. Of jobs with the same command the
/// mean counts.
pub fn solo_times(record: &Record) -> SoloTimes {
    let one_by_one = one_by_one(record);
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut times = SoloTimes::default();
    for job in &record.jobs {
        let alone = match (one_by_one && job.exit == Some(0), job.start_s, job.finish_s) {
            (true, Some(start), Some(finish)) => Some(finish - start),
            _ => None,
        };
        let Some(solo) = job.solo_s.or(alone).filter(|&solo| solo > 0.0) else { continue };
        times.by_name.insert(job.name.clone(), solo);
        if let Some(command) = &job.command {
            let (sum, n) = sums.entry(command).or_default();
            *sum += solo;
            *n += 1.0;
        }
    }
    times.by_command = sums.into_iter().map(|(command, (sum, n))| (command.to_owned(), sum / n)).collect();
    times
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
