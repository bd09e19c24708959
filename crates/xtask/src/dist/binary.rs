//! The static binary for a processor.

use super::command::run;
use super::source::Source;
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use std::path::PathBuf;

/// A processor to build for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    #[value(name = "x86_64")]
    X86,
    #[value(name = "aarch64")]
    Arm,
}

impl Target {
    /// This machine's.
    ///
    /// # Errors
    /// It is neither.
    pub fn own() -> Result<Target> {
        let name = std::env::consts::ARCH;
        Target::from_str(name, false).map_err(|_| anyhow!("no package is built on {name}"))
    }

    /// The processor's name, as in the names of archives and wheels.
    pub fn name(self) -> &'static str {
        match self {
            Target::X86 => "x86_64",
            Target::Arm => "aarch64",
        }
    }

    /// Debian's name of the processor.
    pub fn debian(self) -> &'static str {
        match self {
            Target::X86 => "amd64",
            Target::Arm => "arm64",
        }
    }

    /// Rust's name of the processor with musl, which is linked statically.
    pub fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// Builds the binary. No path of this machine gets into it.
///
/// # Errors
/// cargo fails.
pub fn build(source: &Source, target: Target) -> Result<PathBuf> {
    let triple = target.triple();
    let folder = source.work.join("build");
    let remap = format!("--remap-path-prefix={}=", source.tree().display());
    let mut cargo = source.command(
        "cargo",
        "zigbuild --offline --locked --profile=dist --package=cosched",
    );
    cargo
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_ENCODED_RUSTFLAGS", remap);
    run(cargo.args(["--target", &triple]))?;
    Ok(folder.join(triple).join("dist/cosched"))
}
