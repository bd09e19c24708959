//! The Debian package, built by debhelper from `packaging/debian` and the tree of a processor.

use super::command::{command, output, run};
use super::source::SourceArchive;
use super::tree;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Builds the package into `out`.
///
/// # Errors
/// A tool of Debian is missing or fails.
pub fn package(source: &SourceArchive, arch: &str, out: &Path) -> Result<()> {
    let folder = source.work.join(format!("debian-{arch}"));
    let packaging = source.tree().join("packaging");
    fs::create_dir(&folder)?;
    let mut copy = command("cp", "-r");
    run(copy.args([
        packaging.join("debian"),
        packaging.join("systemd"),
        folder.clone(),
    ]))?;
    fs::write(
        folder.join("debian/changelog"),
        changelog(source, &packaging)?,
    )?;
    let tree = source.work.join(tree::name(source, arch));
    run(command("cp", "-r").args([tree, folder.join("tree")]))?;
    let architecture = if arch == "x86_64" { "amd64" } else { "arm64" };
    let mut build = source.command(
        "dpkg-buildpackage",
        "--build=binary --no-sign -d --host-arch",
    );
    run(build.current_dir(&folder).arg(architecture))?;
    let name = format!("cosched_{}_{architecture}.deb", env!("CARGO_PKG_VERSION"));
    fs::copy(source.work.join(&name), out.join(&name)).with_context(|| format!("no {name}"))?;
    Ok(())
}

/// The changelog of the package, from which Debian's tools read the version. Changes are in CHANGELOG.md.
fn changelog(source: &SourceArchive, packaging: &Path) -> Result<String> {
    let control = fs::read_to_string(packaging.join("debian/control"))?;
    let mut fields = control.lines();
    let maintainer = fields.find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.context("packaging/debian/control names no maintainer")?;
    let date = output(
        source
            .command("sh", "-c")
            .arg("date -uR -d @$SOURCE_DATE_EPOCH"),
    )?;
    Ok(format!(
        "cosched ({}) unstable; urgency=medium\n\n  * Release.\n\n -- {maintainer}  {date}",
        env!("CARGO_PKG_VERSION")
    ))
}
