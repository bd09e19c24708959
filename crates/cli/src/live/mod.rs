//! Live runs, seen from outside: [`find`] finds the one that is meant, and [`series`] its series.

mod find;
mod series;

pub use find::{LiveRunStatus, chosen, known, meant, state_of};
pub use series::{LOGS, goes_on, last_run, run_folders, series_of};

use cosched_linux::Residents;
use cosched_linux::root::Root;
use cosched_report::{JobState, RunStatus};

/// Adds what is seen from outside: the memory of the jobs, and whether the run is suspended. The run pays nothing for it.
pub fn look_at_jobs(root: &Root, status: &mut RunStatus) {
    let residents = Residents::of(root, &status.run.run_id);
    if let Ok(residents) = &residents
        && residents.is_run_stopped()
    {
        status.suspend(|job| residents.is_frozen(job));
    }
    for job in &mut status.jobs {
        if matches!(job.state, JobState::Queued | JobState::Ended) {
            continue;
        }
        let bytes = match &residents {
            Ok(residents) => residents.job(job.job),
            Err(why) => Err(*why),
        };
        job.figures
            .push("resident_bytes", bytes.map(|bytes| bytes as f64));
    }
}
