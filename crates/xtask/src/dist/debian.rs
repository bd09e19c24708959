//! The Debian package, built by debhelper from `packaging/debian` and the tree of a processor.

use super::binary::Target;
use super::command::run;
use super::source::Source;
use super::tree;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Builds the package into `out`.
///
/// # Errors
/// A tool of Debian is missing or fails.
pub fn package(source: &Source, target: Target, out: &Path) -> Result<()> {
    let folder = source.work.join(format!("debian-{}", target.name()));
    fs::create_dir(&folder)?;
    let packaging = source.tree().join("packaging");
    run(Command::new("cp")
        .arg("-r")
        .arg(packaging.join("debian"))
        .arg(packaging.join("systemd"))
        .arg(&folder))?;
    run(Command::new("cp")
        .arg("-r")
        .arg(source.work.join(tree::name(source, target)))
        .arg(folder.join("tree")))?;
    let architecture = target.debian();
    let mut build = source.command("dpkg-buildpackage");
    build.current_dir(&folder).args([
        "--build=binary",
        "--no-sign",
        "--no-check-builddeps",
        "--host-arch",
        architecture,
    ]);
    run(&mut build)?;
    let name = format!("cosched_{}_{architecture}.deb", env!("CARGO_PKG_VERSION"));
    let built = source.work.join(&name);
    fs::copy(&built, out.join(&name))
        .with_context(|| format!("no {name}; is the version in packaging/debian/changelog?"))?;
    Ok(())
}
