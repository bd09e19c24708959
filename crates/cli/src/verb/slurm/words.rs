//! The command line of the run in a batch job.

use super::super::run::{RunArgs, words_of};
use crate::exit::usage;
use anyhow::Result;
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use std::ffi::OsString;
use std::path::Path;

/// Options of this verb itself. It shows no others in its help, and their letters are its own.
const OWN: [&str; 7] = [
    "node_count",
    "cpus_per_task",
    "time",
    "partition",
    "account",
    "sbatch",
    "wait",
];

/// Options of `run` with a place of their own in the batch script.
const PLACED: [&str; 4] = ["dry_run", "list", "logs", "joblog"];

/// Options of `run` that mean nothing in a batch job, and why.
const REFUSED: [(&str, &str); 6] = [
    ("--nodes", "-N sets the number of nodes"),
    (
        "--resume",
        "a requeued job resumes, and `sbatch FOLDER/job.sh` does",
    ),
    ("--orphans", "Slurm ends the jobs of a killed run"),
    ("--join", "a batch job has no queue"),
    ("--on", "a simulation needs no batch job"),
    ("--no-logs", "a requeued job resumes from the log folder"),
];

/// Hides an option of `run`, and takes its letter away if this verb uses that.
pub fn leave_letters(arg: Arg) -> Arg {
    if OWN.contains(&arg.get_id().as_str()) {
        return arg;
    }
    let letter = arg.get_short().filter(|letter| !"NctpA".contains(*letter));
    // What an option goes with can be in the script.
    arg.short(letter).hide(true).requires(Resettable::Reset)
}

/// The options of `run` that were given, as words that mean the same.
pub fn given(matches: &ArgMatches) -> Vec<OsString> {
    words_of(matches, |id, source| {
        source == ValueSource::CommandLine && !PLACED.contains(&id)
    })
}

/// Refuses options that mean nothing in a batch job.
///
/// # Errors
/// One of them was given.
pub fn check(given: &[OsString]) -> Result<()> {
    for word in given {
        let word = word.to_string_lossy();
        let name = word.split('=').next().unwrap_or_default();
        if let Some((name, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(usage(format!(
                "{name} has no meaning here: {why}; leave it out"
            )));
        }
    }
    Ok(())
}

/// The words that name the jobs, if no list does.
///
/// # Errors
/// They would be on standard input, which a batch job does not have.
pub fn jobs(run: &RunArgs) -> Result<Vec<OsString>> {
    let files = &run.values.arg_file;
    let has_values = run.command.iter().any(is_separator) || !files.is_empty();
    let reads_input = run.is_bare && !has_values || files.iter().any(|file| file == Path::new("-"));
    if reads_input || run.mix.as_deref() == Some(Path::new("-")) {
        return Err(usage(
            "a batch job has no standard input: write the values after `:::`, give a list of commands with -f, or put `--` before a single command",
        ));
    }
    let mut words = Vec::new();
    if !run.command.is_empty() && !run.is_bare {
        words.push("--".into());
    }
    words.extend(run.mix.iter().map(OsString::from));
    words.extend(run.command.iter().cloned());
    Ok(words)
}

/// Whether values follow this word.
fn is_separator(word: &OsString) -> bool {
    [":::", ":::+", "::::", "::::+"]
        .iter()
        .any(|known| word == known)
}
