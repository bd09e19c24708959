//! `cosched wait`: waits for jobs of the queue.

use super::connect::{Patient, failure, strange};
use super::offer;
use crate::exit::Exit;
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use cosched_queue::{JobSelection, QueueAnswer, QueueRequest, QueuedJob};
use cosched_report::visible;
use std::process::ExitCode;

/// Wait until jobs of the queue are over
///
/// With one job it exits as the job did; with several, with 0 if all succeeded, 124 if one timed out, else 1. A job that was
/// cancelled, or whose exit is not known, counts as failed.
#[derive(Args)]
pub struct WaitArgs {
    /// Numbers of jobs [default: all that are not over]
    #[arg(value_name = "JOB", add = ArgValueCandidates::new(offer::unfinished))]
    ids: Vec<u64>,
}

pub fn run(args: WaitArgs) -> Result<ExitCode> {
    wait_for(args.ids)
}

/// Waits until these jobs, or all, are over.
///
/// # Errors
/// There is no service, or no such job.
pub fn wait_for(mut ids: Vec<u64>) -> Result<ExitCode> {
    let mut service = Patient::connect()?;
    if ids.is_empty() {
        let answer = service
            .ask(&QueueRequest::Status(JobSelection::default()))
            .map_err(failure)?;
        let QueueAnswer::Status { jobs, .. } = answer else {
            return Err(strange(&answer));
        };
        ids.extend(jobs.iter().map(|job| job.id));
    }
    ids.sort_unstable();
    ids.dedup();
    let is_only = ids.len() == 1;
    let mut exit = Exit::Success;
    follow(&mut service, ids, |job| {
        if job.code() != Some(0) {
            let (id, name) = (job.id, visible(&job.name));
            say(format_args!(
                "cosched: job {id} ({name}): {job}; `cosched logs {id}` shows its output"
            ));
        }
        exit = worse(exit, job, is_only);
        Ok(())
    })?;
    Ok(exit.into())
}

/// Passes on these jobs as they end, until all are over.
///
/// # Errors
/// There is no service, or no such job, or `ended` failed.
pub fn follow(
    service: &mut Patient,
    mut ids: Vec<u64>,
    mut ended: impl FnMut(&QueuedJob) -> Result<()>,
) -> Result<()> {
    while !ids.is_empty() {
        let mut answer = Some(
            service
                .ask(&QueueRequest::Wait(ids.clone()))
                .map_err(failure)?,
        );
        while let Some(QueueAnswer::Ended { ended: job }) = answer {
            ids.retain(|id| *id != job.id);
            ended(&job)?;
            answer = service.further()?;
        }
        match answer {
            Some(QueueAnswer::Done { .. }) => break,
            Some(other) => return Err(strange(&other)),
            // The service was started again.
            None => {}
        }
    }
    Ok(())
}

/// What a verb exits with after this job as well.
pub fn worse(exit: Exit, job: &QueuedJob, is_only: bool) -> Exit {
    match job.code() {
        Some(0) => exit,
        _ if job.end.timed_out || exit == Exit::TimedOut => Exit::TimedOut,
        Some(code) if is_only => Exit::OnlyJob(code),
        _ => Exit::Failure,
    }
}
