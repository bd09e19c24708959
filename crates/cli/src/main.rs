//! The binary `cosched`.

mod verb;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Model(verb::model::ModelArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().verb {
        Verb::Model(args) => verb::model::run(args),
    }
}
