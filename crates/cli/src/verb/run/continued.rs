//! `cosched run --resume=RUN` without jobs: the command line of the run itself, with the options that are given now.

use super::RunArgs;
use super::args::words_of;
use crate::exit::usage;
use crate::input::{path_text, quote, told, unquote};
use crate::run_files::{SERIES, open_series};
use crate::words::mark_command;
use anyhow::{Context as _, Result};
use clap::parser::ValueSource;
use clap::{Args as _, FromArgMatches as _};
use rustix::process::geteuid;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Options of the run that the call to resume it names anew.
const ANEW: [&str; 3] = ["resume", "orphans", "logs"];

/// Becomes a cosched with the whole command line, so that it stands in the new record and wherever processes are listed.
///
/// # Errors
/// The command line of the run is not known, or it began in another folder.
pub fn start(folder: &Path, given: &[OsString]) -> Result<Infallible> {
    let words = whole(folder, given)?;
    let program = std::env::current_exe().context("the program of cosched itself")?;
    let mut command = Command::new(program);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    Err(command.args(words).exec()).context("cosched can't be started again")
}

/// The words of the run, in which the options given now replace those of the same name.
fn whole(folder: &Path, given: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = recorded(folder)?;
    let mut cli =
        clap::Command::new("cosched").subcommand(RunArgs::augment_args(clap::Command::new("run")));
    let is_bare = mark_command(&cli, &mut words);
    let parsed = cli.try_get_matches_from_mut(&words);
    let parsed = parsed.map_err(|_| unknown(folder, "its command line can't be read"))?;
    let options = parsed
        .subcommand_matches("run")
        .ok_or_else(|| unknown(folder, "it is of another verb"))?;
    let args = RunArgs::from_arg_matches(options)
        .map_err(|_| unknown(folder, "its command line can't be read"))?;
    if !args.names_jobs() {
        return Err(unknown(folder, "its command line names no jobs"));
    }
    let mut whole = vec![OsString::from("run")];
    whole.extend_from_slice(given);
    for option in words_of(options, |id, source| {
        source == ValueSource::CommandLine && !ANEW.contains(&id)
    }) {
        if !given.iter().any(|word| name(word) == name(&option)) {
            whole.push(option);
        }
    }
    whole.extend(args.mix.map(OsString::from));
    if !args.command.is_empty() && !is_bare {
        whole.push("--".into());
    }
    whole.extend(args.command);
    Ok(whole)
}

/// The name of an option with its value.
fn name(option: &OsStr) -> &[u8] {
    let mut parts = option.as_bytes().split(|&byte| byte == b'=');
    parts.next().unwrap_or_default()
}

/// The words of the command line in the series of a log folder, if it was called in this folder.
fn recorded(folder: &Path) -> Result<Vec<OsString>> {
    // The words in it are carried out.
    let meta = folder.join(SERIES).metadata();
    if meta.is_ok_and(|meta| meta.uid() != geteuid().as_raw()) {
        return Err(unknown(folder, "another user has written its series"));
    }
    let series = open_series(&folder.join(SERIES));
    let series = series.map_err(|error| unknown(folder, &error.to_string()))?;
    let setting = &series.header().setting;
    let Some(quoted) = &setting.command_line else {
        return Err(unknown(folder, "it has no command line"));
    };
    let words: Option<Vec<OsString>> = quoted.iter().map(|word| unquote(word)).collect();
    let words = words.ok_or_else(|| unknown(folder, "its command line can't be read"))?;
    let here = std::env::current_dir().ok().as_deref().map(path_text);
    if let Some(there) = &setting.cwd
        && here.as_ref() != Some(there)
    {
        let run = told(folder);
        let there = quote(there.as_bytes());
        return Err(usage(format!(
            "--resume={run}: the run began in another folder; first cd {there}"
        )));
    }
    Ok(words)
}

fn unknown(folder: &Path, why: &str) -> anyhow::Error {
    let run = told(folder);
    usage(format!(
        "--resume={run}: the jobs of this run are not known: {why}; give its log folder, or its whole command line after \
         --resume={run}"
    ))
}
