//! `cargo xtask dist`: what users install, built from a clean clone of the last commit with pinned tools. Two calls give
//! the same bytes, although each builds in a folder of its own.
//!
//! [`source`] makes the source archive, and everything else is built from its tree, offline.

mod binary;
mod command;
mod debian;
mod needed;
mod parts;
mod source;
mod tools;
mod tree;
mod wheel;

use anyhow::{Context as _, Result};
use clap::Args;
use source::SourceArchive;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tools::Tools;

/// Processors that packages are built for.
const ARCHS: [&str; 2] = ["x86_64", "aarch64"];

/// Arguments of `cargo xtask dist`.
#[derive(Args)]
pub struct DistArgs {
    /// Folder for the packages
    #[arg(long, default_value = "target/packages")]
    out: PathBuf,
    /// Processor to build for; may be repeated
    #[arg(long, default_value = "x86_64", value_parser = ARCHS)]
    arch: Vec<String>,
}

/// Builds all packages, with their sums.
///
/// # Errors
/// A tool is missing or fails.
pub fn run(args: &DistArgs) -> Result<ExitCode> {
    needed::check()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("no workspace")?;
    fs::create_dir_all(&args.out)?;
    let out = args.out.canonicalize()?;
    let tools = Tools::install(root)?;
    let work = tempfile::tempdir_in(root.join("target"))?;
    let source = SourceArchive::clone(root, work.path(), tools)?;
    source.pack(&source.name, &out)?;
    parts::write(&source, &out)?;
    for arch in &args.arch {
        build(&source, arch, &out)?;
    }
    let sums = "rm -f SHA256SUMS && sha256sum -- * > .sums && mv .sums SHA256SUMS";
    command::run(source.command("sh", "-c").arg(sums).current_dir(out))?;
    Ok(ExitCode::SUCCESS)
}

fn build(source: &SourceArchive, arch: &str, out: &Path) -> Result<()> {
    let own = binary::build(source, ARCH)?;
    let binary = binary::build(source, arch)?;
    tree::fill(source, arch, &binary, &own)?;
    source.pack(&tree::name(source, arch), out)?;
    debian::package(source, arch, out)?;
    wheel::package(source, arch, &binary, out)
}
