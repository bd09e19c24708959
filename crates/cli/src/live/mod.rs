//! Live runs, seen from outside: [`find`] finds the one that is meant, and [`series`] its series.

mod find;
mod series;

pub use find::{Known, chosen, known, meant, state_of};
pub use series::{goes_on, series_of};

use cosched_linux::Residents;
use cosched_linux::root::Root;
use cosched_report::{JobState, Status};

/// Adds the memory that the jobs of a run hold now. It is read here, so that the run pays nothing for it.
pub fn add_memory(root: &Root, status: &mut Status) {
    let residents = Residents::of(root, &status.run.run_id);
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
