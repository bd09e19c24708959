//! Live runs, seen from outside: [`find`] finds the one that is meant, and [`series`] its series.

mod find;
mod series;

pub(crate) use find::{Known, known, meant, state_of};
pub(crate) use series::{goes_on, series_of};

use cosched_linux::Residents;
use cosched_linux::root::Root;
use cosched_report::{JobState, Status};

/// Adds what the jobs of a run hold in memory now. It is read here, so that the run pays nothing for it. With `wanted` only
/// for these jobs.
pub(crate) fn add_memory(root: &Root, status: &mut Status, wanted: impl Fn(u32) -> bool) {
    let residents = Residents::of(root, &status.run.run_id);
    for job in &mut status.jobs {
        let has_processes = !matches!(job.state, JobState::Queued | JobState::Ended);
        if has_processes && wanted(job.job) {
            let memory = residents
                .as_ref()
                .map_err(|why| *why)
                .and_then(|residents| residents.job(job.job));
            job.figures
                .push("resident_bytes", memory.map(|bytes| bytes as f64));
        }
    }
}
