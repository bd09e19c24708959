//! `cargo xtask tidy`: no files of a crate import each other in a circle, and each link of a document leads somewhere.

mod circles;
mod links;
mod modules;
mod source;

use anyhow::{Context as _, Result};
use modules::Crate;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Looks at the workspace, and prints what is wrong.
///
/// # Errors
/// A file cannot be read.
pub fn run() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut circles = 0;
    for one in entries(&root.join("crates"))? {
        for circle in circles::of(&Crate::read(&one)?) {
            println!("circle: {}", circle.join(", "));
            circles += 1;
        }
    }
    let broken = links::broken(&root)?;
    Ok(if circles + broken > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Folders with what is built or generated.
const SKIPPED: [&str; 3] = [".git", "target", "results"];

/// Files with an extension in a folder and below it, sorted; without what is built or generated.
fn files_below(folder: &Path, extension: &OsStr) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        // A crate's package also has what its links lead to.
        if path.is_symlink() {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            let is_made = SKIPPED.iter().any(|skipped| name == *skipped);
            if !is_made {
                found.extend(files_below(&path, extension)?);
            }
        } else if path.extension() == Some(extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The paths in a folder, in no order.
///
/// # Errors
/// The folder cannot be read.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        paths.push(entry?.path());
    }
    Ok(paths)
}
