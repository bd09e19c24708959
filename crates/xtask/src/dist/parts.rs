//! What the binary consists of: a list in the format CycloneDX, and the texts of the licences.

use super::command::output;
use super::source::SourceArchive;
use super::tools::triple;
use crate::tidy::entries;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files with licences.
const LICENCES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT"];

/// A crate that is compiled into the binary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    licence: String,
}

/// The file with the texts of all licences.
pub fn texts(source: &SourceArchive) -> PathBuf {
    source.work.join("third-party.txt")
}

/// Writes the list of parts to a file in `out`, and the texts of their licences to one of `source`.
///
/// # Errors
/// cargo fails, or a file cannot be read or written.
pub fn write(source: &SourceArchive, out: &Path) -> Result<()> {
    let mut cargo = source.command("cargo", "tree --offline --locked --package=cosched");
    cargo.args([
        "--edges=normal",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}|{l}",
    ]);
    let printed = output(cargo.args(["--target", &triple(ARCH)]))?;
    let parts: BTreeSet<Part> = printed.lines().map(Part::parse).collect::<Result<_>>()?;
    let list = out.join(format!("{}.cdx.json", source.name));
    fs::write(list, format!("{:#}\n", list_of(&parts)))?;
    fs::write(texts(source), texts_of(&parts, source)?)?;
    Ok(())
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

fn texts_of(parts: &BTreeSet<Part>, source: &SourceArchive) -> Result<String> {
    let mut texts = String::new();
    for Part {
        name,
        version,
        licence,
    } in parts
    {
        let folder = source.tree().join(format!("vendor/{name}-{version}"));
        // Ours have none there.
        let mut files = entries(&folder).unwrap_or_default();
        files.sort();
        for file in files.iter().filter(|file| is_licence(file)) {
            let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            texts += &format!("==== {name} {version}: {licence}\n\n{text}\n");
        }
    }
    Ok(texts)
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_uppercase();
    path.is_file() && LICENCES.iter().any(|beginning| name.starts_with(beginning))
}

impl Part {
    /// Parses a line such as `serde v1.0.229 (proc-macro)|MIT OR Apache-2.0`.
    fn parse(line: &str) -> Result<Part> {
        let (package, licence) = line.split_once('|').context("a crate has no licence")?;
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let version = words.next().unwrap_or_default();
        let version = version.trim_start_matches('v').to_owned();
        let licence = licence.replace('/', " OR ");
        Ok(Part {
            name,
            version,
            licence,
        })
    }

    fn component(&self) -> Value {
        let Part {
            name,
            version,
            licence,
        } = self;
        json!({
            "type": "library",
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
            "purl": format!("pkg:cargo/{name}@{version}"),
        })
    }
}
