//! `cosched run`: the command line of a run. The run itself is the crate `cosched-run`.

mod args;
mod continued;
mod parse;

pub use args::{Format, RunArgs, brief, words_of};
pub use parse::{duration, moment, name_value, seed, weight};

use anyhow::Result;
use std::process::ExitCode;

pub fn run(args: RunArgs) -> Result<ExitCode> {
    if let Some(folder) = args.run_to_continue() {
        match continued::start(folder, &args.given)? {}
    }
    let joins = args.join;
    let options = args.options()?;
    if joins {
        return super::queue::join::run(&options);
    }
    let outcome = cosched_run::run(&options)?;
    Ok(outcome.exit.into())
}
