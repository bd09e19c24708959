//! Tasks of the project that are neither the program nor its tests: `cargo xtask attack`, `dist`, `record` and `tidy`.

// Nothing can be reached from outside of a program.
#![allow(unreachable_pub)]

mod attached;
mod attack;
mod batch;
mod dist;
mod left;
mod nodes;
mod queue;
mod record;
mod seen;
mod tidy;

use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;

/// Tasks of the project
#[derive(Parser)]
#[command(name = "xtask")]
enum Task {
    /// Start small batches, kill something at a random moment, and count what is left against docs/safety.md
    Attack(attack::AttackArgs),
    /// Build the packages for users from a clean clone of the last commit: archives, Debian packages, wheels
    Dist(dist::DistArgs),
    /// Type commands into a shell, and write what is seen as an animated SVG
    Record(record::RecordArgs),
    /// Look for files that import each other in a circle, and for links that lead nowhere
    Tidy,
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Attack(args) => attack::run(&args),
        Task::Dist(args) => dist::run(&args),
        Task::Record(args) => record::run(&args),
        Task::Tidy => tidy::run(),
    }
}
