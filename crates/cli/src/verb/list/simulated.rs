//! The built-in machines and programs for simulations.

use super::{brief_entry, is_wanted};
use anyhow::Context as _;
use cosched_sim::{BuiltIn, MACHINES, PROGRAMS};
use serde_json::{Value, json};

/// A line for each machine, or the files of these machines.
pub(super) fn machines(names: &[String]) -> anyhow::Result<(String, Value)> {
    let mut brief = String::new();
    let about = "this machine, with real processes (the default of --on)";
    brief_entry(&mut brief, "host", about);
    let (text, files) = files(MACHINES, names, brief, "machines")?;
    Ok((text, json!({ "machines": files })))
}

/// A line for each program, or the files of these programs.
pub(super) fn programs(names: &[String]) -> anyhow::Result<(String, Value)> {
    let (text, files) = files(PROGRAMS, names, String::new(), "programs")?;
    Ok((text, json!({ "programs": files })))
}

/// Adds a line for each file to `brief`, or gives the text of the files with these names; also gives the files as JSON.
fn files(
    all: &[BuiltIn],
    names: &[String],
    mut brief: String,
    what: &str,
) -> anyhow::Result<(String, Vec<Value>)> {
    let mut texts = Vec::new();
    let mut objects = Vec::new();
    for file in all.iter().filter(|file| is_wanted(file.name, names)) {
        let object: Value = toml::from_str(file.text).with_context(|| file.file)?;
        brief_entry(
            &mut brief,
            file.name,
            object["title"].as_str().unwrap_or_default(),
        );
        texts.push(file.text);
        objects.push(object);
    }
    if names.is_empty() {
        brief.push_str(&format!(
            "\n`cosched list {what} NAME` prints one's file, with sources\n"
        ));
        return Ok((brief, objects));
    }
    Ok((texts.join("\n"), objects))
}
