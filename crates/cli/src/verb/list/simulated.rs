//! The built-in machines and programs for simulations.

use super::{brief_entry, is_wanted};
use anyhow::{Context as _, Result};
use cosched_sim::{BuiltIn, MACHINES, PROGRAMS};

/// A line for each machine, or the files of these machines.
pub fn machines(names: &[String]) -> Result<String> {
    if !names.is_empty() {
        return Ok(files(MACHINES, names));
    }
    let mut text = String::new();
    let about = "this machine, with real processes (the default of --on)";
    brief_entry(&mut text, "host", about);
    let about = "this machine, simulated as `cosched calibrate` measured it";
    brief_entry(&mut text, "mine", about);
    add_titles(&mut text, MACHINES)?;
    text.push_str(
        "\n`cosched list machines NAME > my.toml` writes one to edit, for --on ./my.toml\n",
    );
    Ok(text)
}

/// A line for each program, or the files of these programs.
pub fn programs(names: &[String]) -> Result<String> {
    if !names.is_empty() {
        return Ok(files(PROGRAMS, names));
    }
    let mut text = String::new();
    add_titles(&mut text, PROGRAMS)?;
    text.push_str("\n`cosched list programs NAME` prints one's file, with sources\n");
    Ok(text)
}

fn add_titles(text: &mut String, all: &[BuiltIn]) -> Result<()> {
    for file in all {
        let table: toml::Table = toml::from_str(file.text).context(file.file)?;
        let title = table["title"].as_str().unwrap_or_default();
        brief_entry(text, file.name, title);
    }
    Ok(())
}

fn files(all: &[BuiltIn], names: &[String]) -> String {
    let mut texts = Vec::new();
    for file in all {
        if is_wanted(file.name, names) {
            texts.push(file.text);
        }
    }
    texts.join("\n")
}
