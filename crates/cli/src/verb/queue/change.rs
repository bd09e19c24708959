//! `cosched cancel`, `rerun` and `drain`: what changes the queue.

use super::Jobs;
use super::connect::{all_jobs, ask, strange};
use super::offer;
use super::submit::{print_ids, queued};
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use cosched_queue::{QueueAnswer, QueueRequest, QueuedJobState};
use std::process::ExitCode;

/// Cancel jobs of the queue
///
/// A job that runs gets SIGTERM, and SIGKILL after `--grace` of the service's run. One that is queued never starts.
#[derive(Args)]
pub struct CancelArgs {
    #[command(flatten)]
    jobs: Jobs,
}

/// Queue lost or unknown jobs again, and print their numbers
///
/// A job is lost if the machine restarted while it ran, and unknown if the process that waits for it was killed.
#[derive(Args)]
pub struct RerunArgs {
    /// Numbers of jobs, as `cosched submit` printed them; without any, all lost jobs
    #[arg(value_name = "JOB", add = ArgValueCandidates::new(offer::lost))]
    ids: Vec<u64>,
}

/// Accept no more jobs, and end the service when all jobs are over
#[derive(Args)]
pub struct DrainArgs {}

pub fn cancel(args: CancelArgs) -> Result<ExitCode> {
    let ids = args.jobs.ids;
    let answer = ask(&QueueRequest::Cancel(ids.clone()))?;
    let QueueAnswer::Cancelled { cancelled } = answer else {
        return Err(strange(&answer));
    };
    for id in ids.iter().filter(|id| !cancelled.contains(id)) {
        say(format_args!("cosched: job {id} was over"));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn rerun(args: RerunArgs) -> Result<ExitCode> {
    let ids = if args.ids.is_empty() {
        lost()?
    } else {
        args.ids
    };
    print_ids(&queued(&QueueRequest::Rerun(ids))?)?;
    Ok(ExitCode::SUCCESS)
}

/// The numbers of all lost jobs.
fn lost() -> Result<Vec<u64>> {
    let mut jobs = all_jobs()?;
    jobs.retain(|job| job.state == QueuedJobState::Lost);
    Ok(jobs.iter().map(|job| job.id).collect())
}

pub fn drain(DrainArgs {}: DrainArgs) -> Result<ExitCode> {
    ask(&QueueRequest::Drain(true)).map(|_| ExitCode::SUCCESS)
}
