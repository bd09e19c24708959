//! `cosched worker`: runs the jobs of one node, for `cosched run --nodes`.

use super::run::duration;
use super::slurm::requeue_without_script;
use crate::{Cli, Verb};
use anyhow::Result;
use clap::{Args, Parser as _};
use cosched_core::Nanos;
use cosched_nodes::{NodeWorker, work};
use cosched_run::RunOptions;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Run the jobs of one node, whose coordinator writes them to standard input
#[derive(Args)]
pub struct WorkerArgs {
    /// Silence of the coordinator after which the jobs are ended
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    silence: Nanos,

    /// Options of the run
    #[arg(last = true, value_name = "RUN OPTIONS", allow_hyphen_values = true)]
    options: Vec<OsString>,
}

pub fn run(args: WorkerArgs) -> Result<ExitCode> {
    let mut run: Vec<OsString> = ["run", "-f", "-", "--frames"].map(Into::into).into();
    run.extend(args.options);
    let end = work(&NodeWorker {
        grace: grace(&run),
        run,
        silence: Duration::from_nanos(args.silence.0),
    })?;
    if end.is_lost {
        requeue_without_script();
    }
    Ok(ExitCode::from(u8::try_from(end.code).unwrap_or(1)))
}

/// The time from SIGTERM to SIGKILL under these words.
fn grace(run: &[OsString]) -> Duration {
    let words = std::iter::once("cosched".into()).chain(run.iter().cloned());
    let grace = match Cli::try_parse_from(words) {
        Ok(Cli {
            verb: Verb::Run(args),
        }) => args.limits.grace,
        // The run says what is wrong.
        _ => RunOptions::default().limits.grace,
    };
    Duration::from_nanos(grace.0)
}
