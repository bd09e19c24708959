//! The Python wheel, which carries the binary and the package `cosched`. Its build hook is `python/cosched/hatch_build.py`.

use super::command::run;
use super::parts;
use super::source::SourceArchive;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// Builds the wheel of a binary into `out`.
///
/// # Errors
/// hatchling fails.
pub fn package(source: &SourceArchive, arch: &str, binary: &Path, out: &Path) -> Result<()> {
    let project = source.tree().join("python/cosched");
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(source.tree().join(name), project.join(name))?;
    }
    fs::copy(
        parts::texts(source),
        project.join("LICENSES-third-party.txt"),
    )?;
    // A static binary runs beside any C library.
    let tag = format!("py3-none-manylinux_2_17_{arch}.musllinux_1_1_{arch}");
    let mut hatchling = source.command("hatchling", "build --target=wheel --directory");
    hatchling.current_dir(project).arg(out);
    run(hatchling
        .env("COSCHED_WHEEL_BINARY", binary)
        .env("COSCHED_WHEEL_TAG", tag))
}
