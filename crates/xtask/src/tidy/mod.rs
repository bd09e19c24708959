//! `cargo xtask tidy`: bounds on the structure of the code, and how large it is.
//!
//! The bounds are today's figures or a little more. Lower them when the code allows it; never raise them.

mod circles;
mod links;
mod modules;
mod source;

use anyhow::{Context as _, Result};
use modules::Crate;
use source::CodeSizes;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Lines of the longest function.
const LONGEST_FUNCTION: usize = 100;
/// Lines that 95 % of all functions do not exceed.
const MOST_FUNCTIONS: usize = 35;
/// `let name = |...|` in a thousand lines.
const NAMED_CLOSURES: f64 = 2.0;
/// Groups of files of a crate that import each other in a loop.
const CIRCLES: usize = 0;
/// Links that lead nowhere.
const BROKEN_LINKS: usize = 0;
/// Documents that do not count: the table of the papers, and pages for contributors.
const UNCOUNTED: [&str; 3] = ["docs/papers.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Measures the workspace and compares it with the bounds.
///
/// # Errors
/// A file cannot be read.
pub fn run() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = read_crates(&root.join("crates"))?;
    let circles: Vec<Vec<String>> = crates.iter().flat_map(circles::of).collect();
    for circle in &circles {
        println!("circle: {}", circle.join(", "));
    }
    let all = CodeSizes::sum(crates.iter().map(Crate::measured));
    for (lines, name) in all.longest(3) {
        println!("{lines} lines: {name}");
    }
    let longest = all.percentile(100);
    let most = all.percentile(95);
    let closures = all.closures_per_thousand();
    let rows = [
        row("longest function, lines", longest, LONGEST_FUNCTION),
        row("95 % of functions, lines", most, MOST_FUNCTIONS),
        row("named closures in 1,000 lines", closures, NAMED_CLOSURES),
        row("circles between files", circles.len(), CIRCLES),
        row("broken links", links::broken(&root)?, BROKEN_LINKS),
    ];
    tell("packages of others", packages(&root)?);
    tell("words written by hand", words(&root)?);
    Ok(if rows.contains(&false) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Prints a figure and its bound, and returns whether the bound holds.
fn row<N: PartialOrd + std::fmt::Display>(what: &str, figure: N, bound: N) -> bool {
    let holds = figure <= bound;
    let verdict = if holds { "ok" } else { "TOO MUCH" };
    println!("{what:32} {figure:>8.1} {bound:>8.1}  {verdict}");
    holds
}

/// Prints a figure that shows the trend. It has no bound: a page is as long as its question.
fn tell(what: &str, figure: usize) {
    println!("{what:32} {figure:>8}");
}

fn read_crates(folder: &Path) -> Result<Vec<Crate>> {
    let mut folders: Vec<PathBuf> = entries(folder)?;
    folders.sort();
    folders.iter().map(|one| Crate::read(one)).collect()
}

fn packages(root: &Path) -> Result<usize> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    Ok(lock.matches("\nsource = ").count())
}

fn words(root: &Path) -> Result<usize> {
    let mut words = 0;
    let mut pages = files_below(root, OsStr::new("md"))?;
    pages.retain(|path| !UNCOUNTED.iter().any(|page| path.ends_with(page)));
    for path in pages {
        words += fs::read_to_string(&path)?.split_whitespace().count();
    }
    Ok(words)
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
