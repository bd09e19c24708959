//! Jobs of the queue that a shell offers.

use super::connect::all_jobs;
use crate::offer::word;
use clap_complete::engine::CompletionCandidate;
use cosched_queue::{QueuedJob, QueuedJobState};

/// All jobs.
pub fn queued() -> Vec<CompletionCandidate> {
    jobs_of_queue(|_| true)
}

/// Jobs that are not over.
pub fn unfinished() -> Vec<CompletionCandidate> {
    jobs_of_queue(|job| !job.state.is_over())
}

/// Jobs that can be queued again.
pub fn lost() -> Vec<CompletionCandidate> {
    jobs_of_queue(|job| matches!(job.state, QueuedJobState::Lost | QueuedJobState::Unknown))
}

fn jobs_of_queue(is_wanted: fn(&QueuedJob) -> bool) -> Vec<CompletionCandidate> {
    let mut jobs = all_jobs().unwrap_or_default();
    jobs.retain(is_wanted);
    let words = jobs.iter().map(|job| word(job.id.to_string(), &job.name));
    words.collect()
}
