//! `cosched serve`: the service that keeps the queue.

use super::connect::{folder, socket};
use crate::exit::{Exit, Failure};
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use cosched_queue::{QueueError, QueueFolder, ServiceConfig};
use std::ffi::OsString;
use std::process::ExitCode;

/// Serve the queue of this machine: jobs that users submit, as one run
///
/// You can stop or kill it at any moment: running jobs go on, and the next service takes them over. It ends by itself after
/// `cosched drain`. `cosched help queue` explains more.
#[derive(Args)]
pub struct ServeArgs {
    /// Options of the run, as in `cosched serve -- --policy fair`
    #[arg(last = true, value_name = "RUN OPTIONS", allow_hyphen_values = true)]
    options: Vec<OsString>,
}

pub fn run(args: ServeArgs) -> Result<ExitCode> {
    let folder = QueueFolder::open(folder()?)?;
    let served = cosched_queue::serve(ServiceConfig {
        program: std::env::current_exe()?,
        options: args.options,
        folder,
        socket: socket()?,
        describe: crate::input::described,
        version: env!("CARGO_PKG_VERSION"),
        tell: |notice| say(format_args!("cosched: {notice}")),
    });
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(failure(&error)),
    }
}

fn failure(error: &QueueError) -> anyhow::Error {
    let exit = match error {
        QueueError::Worker(3) => Exit::Incapable,
        QueueError::Worker(4) => Exit::Permission,
        QueueError::Worker(_) => Exit::Usage,
        _ => Exit::Failure,
    };
    let message = error.to_string();
    Failure { exit, message }.into()
}
