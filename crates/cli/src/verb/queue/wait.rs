//! `cosched wait`: waits for jobs of the queue.

use super::connect::{Patient, strange};
use crate::exit::Exit;
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use cosched_queue::{Answer, Job, Request, Select};
use cosched_report::visible;
use std::process::ExitCode;

/// Wait until jobs of the queue are over
///
/// With one job it exits as the job did; with several, with 0 if all succeeded, and 1 if not. A job that was cancelled, or
/// whose exit is not known, counts as failed.
#[derive(Args)]
pub struct WaitArgs {
    /// Numbers of jobs [default: all that are not over]
    #[arg(value_name = "JOB")]
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
        let answer = service.ask(&Request::Status(Select::default()))?;
        let Answer::Status { jobs, .. } = answer else {
            return Err(strange(&answer));
        };
        ids.extend(jobs.iter().map(|job| job.id));
    }
    ids.sort_unstable();
    ids.dedup();
    let is_only = ids.len() == 1;
    let mut exit = Exit::Success;
    while !ids.is_empty() {
        let mut answer = Some(service.ask(&Request::Wait(ids.clone()))?);
        while let Some(Answer::Ended { ended }) = answer {
            ids.retain(|id| *id != ended.id);
            exit = worse(exit, &ended, is_only);
            answer = service.further()?;
        }
        match answer {
            Some(Answer::Done { .. }) => break,
            Some(other) => return Err(strange(&other)),
            // The service was started again.
            None => {}
        }
    }
    Ok(exit.into())
}

/// Reports a job that did not succeed, and returns what the verb exits with.
fn worse(exit: Exit, job: &Job, is_only: bool) -> Exit {
    let code = job.code();
    if code == Some(0) {
        return exit;
    }
    let (id, name) = (job.id, visible(&job.name));
    say(format_args!(
        "cosched: job {id} ({name}): {job}; `cosched logs {id}` shows its output"
    ));
    match code {
        Some(code) if is_only => Exit::OnlyJob(code),
        _ => Exit::Failure,
    }
}
