//! Tasks of the project that are neither the program nor its tests: `cargo xtask attack`, `cargo xtask record`.

mod attack;
mod batch;
mod left;
mod record;
mod seen;

use clap::Parser;
use std::process::ExitCode;

/// Tasks of the project
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Start small batches, kill something at a random moment, and count what is left against docs/safety.md
    Attack(attack::AttackArgs),
    /// Type commands into a shell, and write what is seen as an animated SVG
    Record(record::RecordArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Task::parse() {
        Task::Attack(args) => attack::run(&args),
        Task::Record(args) => record::run(&args),
    }
}
