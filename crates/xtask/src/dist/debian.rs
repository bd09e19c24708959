//! The Debian package, built by debhelper from `packaging/debian` and the tree of a processor.

use super::command::{command, run};
use super::source::Source;
use super::tree;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Builds the package into `out`.
///
/// # Errors
/// A tool of Debian is missing or fails.
pub fn package(source: &Source, arch: &str, out: &Path) -> Result<()> {
    let folder = source.work.join(format!("debian-{}", arch));
    let packaging = source.tree().join("packaging");
    fs::create_dir(&folder)?;
    let mut copy = command("cp", "-r");
    run(copy.args([
        packaging.join("debian"),
        packaging.join("systemd"),
        folder.clone(),
    ]))?;
    let tree = source.work.join(tree::name(source, arch));
    run(command("cp", "-r").args([tree, folder.join("tree")]))?;
    let architecture = if arch == "x86_64" { "amd64" } else { "arm64" };
    let mut build = source.command(
        "dpkg-buildpackage",
        "--build=binary --no-sign -d --host-arch",
    );
    run(build.current_dir(&folder).arg(architecture))?;
    let name = format!("cosched_{}_{architecture}.deb", env!("CARGO_PKG_VERSION"));
    let copied = fs::copy(source.work.join(&name), out.join(&name));
    copied.with_context(|| format!("no {name}; is the version in packaging/debian/changelog?"))?;
    Ok(())
}
