//! The binary `cosched`.

mod kernel;
mod size;
mod verb;

use clap::Parser;
use std::process::ExitCode;

/// Decides which processes run together, on which core, and when a core is better left idle.
#[derive(Parser)]
#[command(name = "cosched", version)]
enum Verb {
    Kernel(verb::kernel::KernelArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Verb::parse() {
        Verb::Kernel(args) => verb::kernel::run(args),
    }
}
