//! `cosched run`: the command line of a run. The run itself is the crate `cosched-run`.

mod args;
mod parse;

pub(crate) use args::{Format, RunArgs};
pub(crate) use parse::{Offered, duration, moment, name_value, seed};

use std::process::ExitCode;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let outcome = cosched_run::run(&args.options()?)?;
    Ok(outcome.exit.into())
}
