//! The static binary for a processor.

use super::command::run;
use super::source::SourceArchive;
use super::tools::triple;
use anyhow::Result;
use std::path::PathBuf;

/// Builds the binary. No path of this machine gets into it.
///
/// # Errors
/// cargo fails.
pub fn build(source: &SourceArchive, arch: &str) -> Result<PathBuf> {
    let triple = triple(arch);
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
