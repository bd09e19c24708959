//! What the binary consists of: a list in the format CycloneDX, and the texts of the licences.

use super::binary::Target;
use super::command::output;
use super::source::Source;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files with licences.
const LICENCES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE"];

/// A crate that is compiled into the binary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    name: String,
    version: String,
    licence: String,
}

/// The file with the texts of all licences.
pub fn texts(source: &Source) -> PathBuf {
    source.work.join("third-party.txt")
}

/// Writes the list of parts to a file in `out`, and the texts of their licences to one of `source`.
///
/// # Errors
/// cargo fails, or a file cannot be read or written.
pub fn write(source: &Source, out: &Path) -> Result<()> {
    let parts = read(source)?;
    let list = out.join(format!("{}.cdx.json", source.name));
    fs::write(list, format!("{:#}\n", list_of(&parts)))?;
    fs::write(texts(source), texts_of(&parts, source)?)?;
    Ok(())
}

fn read(source: &Source) -> Result<BTreeSet<Part>> {
    let mut cargo = source.command("cargo");
    cargo.args([
        "tree",
        "--offline",
        "--locked",
        "--package=cosched",
        "--edges=normal",
    ]);
    cargo.args([
        "--target",
        &Target::X86.triple(),
        "--prefix=none",
        "--no-dedupe",
        "--format={p}|{l}",
    ]);
    output(&mut cargo)?.lines().map(Part::parse).collect()
}

fn list_of(parts: &BTreeSet<Part>) -> Value {
    let components: Vec<Value> = parts.iter().map(Part::component).collect();
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "cosched", "version": version}},
        "components": components,
    })
}

fn texts_of(parts: &BTreeSet<Part>, source: &Source) -> Result<String> {
    let mut texts = String::new();
    for part in parts {
        for file in part.licence_files(source)? {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            writeln!(
                texts,
                "==== {} {}: {}\n\n{text}",
                part.name, part.version, part.licence
            )?;
        }
    }
    Ok(texts)
}

impl Part {
    /// Parses a line such as `serde v1.0.229 (proc-macro)|MIT OR Apache-2.0`.
    fn parse(line: &str) -> Result<Part> {
        let (package, licence) = line
            .split_once('|')
            .context("cargo tree printed no licence")?;
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let version = words
            .next()
            .unwrap_or_default()
            .trim_start_matches('v')
            .to_owned();
        Ok(Part {
            name,
            version,
            licence: licence.replace('/', " OR "),
        })
    }

    fn component(&self) -> Value {
        json!({
            "type": "library",
            "name": self.name,
            "version": self.version,
            "licenses": [{"expression": self.licence}],
            "purl": format!("pkg:cargo/{}@{}", self.name, self.version),
        })
    }

    /// The licences of a crate that is not ours.
    fn licence_files(&self, source: &Source) -> Result<Vec<PathBuf>> {
        let folder = source
            .tree()
            .join(format!("vendor/{}-{}", self.name, self.version));
        let mut files = Vec::new();
        if !folder.exists() {
            return Ok(files);
        }
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if is_licence(&path) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

fn is_licence(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_uppercase();
    path.is_file() && LICENCES.iter().any(|beginning| name.starts_with(beginning))
}
