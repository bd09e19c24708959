//! Command lines that are compared with each other, as whole programs.

use super::args::CompareArgs;
use crate::exit::usage;
use crate::input::told;
use anyhow::Result;
use cosched_experiments::comparison::{ComparedCandidate, ComparedMix, ComparisonMeans};
use cosched_linux::find_program;
use cosched_report::clip;
use std::path::Path;

/// Maximum number of characters of a candidate's name.
const MAX_NAME: usize = 40;

/// The command lines; `None` if mix files or a list of commands were given.
///
/// # Errors
/// There is only one, or something beside them.
pub fn command_lines(args: &CompareArgs) -> Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    let mut mixes = Vec::new();
    for input in &args.inputs {
        match input.to_str() {
            Some(line) if is_command_line(input) => lines.push(line.to_owned()),
            _ => mixes.push(input),
        }
    }
    let Some(first) = lines.first() else {
        return Ok(None);
    };
    if let Some(mix) = mixes.first() {
        if !mix.exists() {
            let mix = told(mix);
            return Err(usage(format!(
                "`{mix}`: there is no such program and no such file"
            )));
        }
        let mix = told(mix);
        return Err(usage(format!(
            "`{first}` is a command line, and {mix} is a mix file; beside a mix file, give a command as --candidate NAME='{first}'"
        )));
    }
    if lines.len() < 2 {
        return Err(usage(format!(
            "`{first}` is the only command line; give another, as in cosched compare 'make -j2' 'make -j4'"
        )));
    }
    refuse_beside(args)?;
    Ok(Some(lines))
}

/// Refuses what means nothing for command lines: a shell runs them as they are.
fn refuse_beside(args: &CompareArgs) -> Result<()> {
    let option = if !args.policies.is_empty() {
        "--policies"
    } else if !args.candidate.is_empty() {
        "--candidate"
    } else if !args.params.is_empty() {
        "--param"
    } else if args.on != "host" {
        "--on"
    } else if args.solo_runs.is_some() {
        "--solo-runs"
    } else if !args.options.is_empty() {
        "`-- OPTIONS`"
    } else {
        return Ok(());
    };
    Err(usage(format!(
        "{option} means nothing for command lines; for policies give mix files or -f FILE"
    )))
}

/// Whether this is a command line, not the path of a mix file: a program, or words with blanks.
fn is_command_line(input: &Path) -> bool {
    let text = input.to_string_lossy();
    if input.exists() && (!text.contains('/') || text.ends_with(".toml")) {
        return false;
    }
    let path = std::env::var_os("PATH");
    let is_program = find_program(input.as_os_str(), None, path.as_deref()).is_some();
    is_program || (!input.exists() && text.contains(char::is_whitespace))
}

/// What stands for the batch, which each command line brings itself.
pub fn no_mix() -> ComparedMix {
    ComparedMix {
        name: "lines".to_owned(),
        ..ComparedMix::default()
    }
}

/// A candidate for each line. Lines with the same beginning have their whole as a name.
pub fn candidates(lines: &[String]) -> Vec<ComparedCandidate> {
    let mut all: Vec<ComparedCandidate> = Vec::new();
    for line in lines {
        let begins_so = |other: &&String| clip(other, MAX_NAME) == clip(line, MAX_NAME);
        let name = match lines.iter().filter(begins_so).count() {
            1 => clip(line, MAX_NAME),
            _ => line.clone(),
        };
        all.push(ComparedCandidate {
            name,
            means: ComparisonMeans::Command(line.clone()),
        });
    }
    all
}
