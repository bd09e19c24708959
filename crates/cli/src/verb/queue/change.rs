//! `cosched cancel`, `rerun` and `drain`: what changes the queue.

use super::Jobs;
use super::connect::{ask, strange};
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use cosched_queue::{Answer, Request};
use std::process::ExitCode;

/// Cancel jobs of the queue
///
/// A job that runs gets SIGTERM, and SIGKILL after `--grace` of the service's run. One that is queued never starts.
#[derive(Args)]
pub struct CancelArgs {
    #[command(flatten)]
    jobs: Jobs,
}

/// Queue jobs again that are lost or unknown
///
/// A job is lost if the machine restarted while it ran, and unknown if the process that waits for it was killed.
#[derive(Args)]
pub struct RerunArgs {
    #[command(flatten)]
    jobs: Jobs,
}

/// Let the service end once all its jobs are over; it accepts no more
#[derive(Args)]
pub struct DrainArgs {}

pub fn cancel(args: CancelArgs) -> Result<ExitCode> {
    let ids = args.jobs.ids;
    let answer = ask(&Request::Cancel(ids.clone()))?;
    let Answer::Cancelled { cancelled } = answer else {
        return Err(strange(&answer));
    };
    for id in ids.iter().filter(|id| !cancelled.contains(id)) {
        say(format_args!("cosched: job {id} was over"));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn rerun(args: RerunArgs) -> Result<ExitCode> {
    ask(&Request::Rerun(args.jobs.ids)).map(|_| ExitCode::SUCCESS)
}

pub fn drain(DrainArgs {}: DrainArgs) -> Result<ExitCode> {
    ask(&Request::Drain(true)).map(|_| ExitCode::SUCCESS)
}
