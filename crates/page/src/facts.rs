//! What pages and pictures need of a run. It is far smaller than the record, so that those of thousands of runs can be kept.

use cosched_report::{EnergySource, Record};

/// What is needed of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFacts {
    /// Its name.
    pub name: String,
    /// When it ended, in seconds from the start of the run.
    pub finish_s: Option<f64>,
    /// From its arrival to its end against its time alone.
    pub slowdown: Option<f64>,
}

/// What is needed of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// Its jobs, as in the record.
    pub jobs: Vec<JobFacts>,
    /// Where the figures of energy come from.
    pub energy: EnergySource,
}

impl RunFacts {
    /// The facts of a run record.
    pub fn of(record: &Record) -> RunFacts {
        let jobs = record.jobs.iter().map(|job| JobFacts {
            name: job.name.clone(),
            finish_s: job.finish_s,
            slowdown: job.slowdown,
        });
        RunFacts {
            jobs: jobs.collect(),
            energy: record.energy.source,
        }
    }
}

/// The name that copies of a job have in common, which are called `NAME-1`, `NAME-2` and so on.
pub(crate) fn family(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((family, number))
            if !family.is_empty()
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            family
        }
        _ => name,
    }
}

/// The median; `None` of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    (n > 0).then(|| 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]))
}
