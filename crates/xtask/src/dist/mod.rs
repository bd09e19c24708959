//! `cargo xtask dist`: what users install, built from a clean clone of the last commit with pinned tools. Two calls give
//! the same bytes, although each builds in a folder of its own.
//!
//! [`source`] makes the source archive, and everything else is built from its tree, offline.

mod binary;
mod command;
mod debian;
mod parts;
mod source;
mod target;
mod tools;
mod tree;
mod wheel;

use anyhow::{Context as _, Result};
use clap::Args;
use source::Source;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use target::Target;
use tools::Tools;

/// Arguments of `cargo xtask dist`.
#[derive(Args)]
pub struct DistArgs {
    /// Folder for the packages
    #[arg(long, default_value = "target/packages")]
    out: PathBuf,
    /// Processors to build for
    #[arg(long, value_delimiter = ',', default_value = "x86_64,aarch64")]
    targets: Vec<Target>,
}

/// Builds all packages, with their sums.
///
/// # Errors
/// A tool is missing or fails.
pub fn run(args: &DistArgs) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("no workspace")?;
    fs::create_dir_all(&args.out)?;
    let out = args.out.canonicalize()?;
    let tools = Tools::install(root, &args.targets)?;
    let work = tempfile::tempdir_in(root.join("target"))?;
    let source = Source::clone(root, work.path(), tools)?;
    source.pack(&source.name, &out)?;
    parts::write(&source, &out)?;
    for target in &args.targets {
        build(&source, *target, &out)?;
    }
    let sums = "rm -f SHA256SUMS && sha256sum -- * > .sums && mv .sums SHA256SUMS";
    command::run(source.command("sh", "-c").arg(sums).current_dir(out))?;
    Ok(ExitCode::SUCCESS)
}

fn build(source: &Source, target: Target, out: &Path) -> Result<()> {
    let own = binary::build(source, Target::own()?)?;
    let binary = binary::build(source, target)?;
    tree::fill(source, target, &binary, &own)?;
    source.pack(&tree::name(source, target), out)?;
    debian::package(source, target, out)?;
    wheel::package(source, target, &binary, out)
}
