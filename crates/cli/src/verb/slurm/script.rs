//! The batch script.

use super::super::run::duration;
use super::{Batch, SlurmArgs};
use crate::exit::usage;
use crate::input::quote_if_needed;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// The script that runs the jobs. Its shell becomes cosched, which so gets the signals of the batch job.
///
/// # Errors
/// The folder's name has a line end, or this program's own name is not known.
pub fn text(args: &SlurmArgs, batch: &Batch) -> Result<Vec<u8>> {
    if batch.folder.as_os_str().as_bytes().contains(&b'\n') {
        return Err(usage(
            "--logs: a batch script can't name a folder with a line end",
        ));
    }
    let mut text = b"#!/bin/sh\n".to_vec();
    for option in options(args, batch) {
        text.extend_from_slice(b"#SBATCH ");
        text.extend(quote_if_needed(option.as_bytes()));
        text.push(b'\n');
    }
    text.extend_from_slice(b"\nexec");
    push(&mut text, &run_words(args, batch)?);
    push(&mut text, &args.given);
    push(&mut text, &batch.jobs);
    text.push(b'\n');
    Ok(text)
}

fn push(text: &mut Vec<u8>, words: &[OsString]) {
    for word in words {
        text.push(b' ');
        text.extend(quote_if_needed(word.as_bytes()));
    }
}

/// The options of sbatch. Those of the user come last, and prevail.
fn options(args: &SlurmArgs, batch: &Batch) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec![
        "--job-name=cosched".into(),
        format!("--nodes={}", args.node_count).into(),
        "--ntasks-per-node=1".into(),
        match args.cpus_per_task {
            Some(cpus) => format!("--cpus-per-task={cpus}").into(),
            None => "--exclusive".into(),
        },
        "--requeue".into(),
        // The run goes on without a node that dies.
        "--no-kill".into(),
        "--open-mode=append".into(),
        output(&batch.output()),
    ];
    for (name, value) in [
        ("time", &args.time),
        ("partition", &args.partition),
        ("account", &args.account),
    ] {
        let option = value.iter().map(|value| format!("--{name}={value}").into());
        options.extend(option);
    }
    options.extend(args.sbatch.iter().map(OsString::from));
    options
}

/// The option for the file of what the script writes, in which `%` has a meaning.
fn output(file: &Path) -> OsString {
    let mut option = b"--output=".to_vec();
    for &byte in file.as_os_str().as_bytes() {
        option.push(byte);
        if byte == b'%' {
            option.push(byte);
        }
    }
    OsString::from_vec(option)
}

/// The beginning of the run's command line.
fn run_words(args: &SlurmArgs, batch: &Batch) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut words: Vec<OsString> = vec![program.into(), "run".into()];
    if args.node_count > 1 {
        words.extend(["--nodes", "slurm"].map(OsString::from));
    }
    words.extend(["--logs".into(), batch.folder.clone().into()]);
    words.extend(["--joblog".into(), batch.joblog.clone().into()]);
    words.push("--resume".into());
    Ok(words)
}

/// Reads a time limit as Slurm or cosched writes it, for Slurm.
pub fn time(text: &str) -> Result<String, String> {
    let is_slurm = |c: char| c.is_ascii_digit() || c == ':' || c == '-';
    if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_slurm) {
        return Ok(text.to_owned());
    }
    let expected = "expected a time limit, as in 2h, 90m, 2:00:00 or 1-12";
    let seconds = duration(text).map_err(|_| expected)?.as_s().ceil() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    Ok(format!("{hours}:{minutes:02}:{:02}", seconds % 60))
}

/// Accepts a word for a line of the script.
pub fn one_line(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err("expected one line of text".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_those_of_slurm_and_of_cosched() {
        for (given, expected) in [
            ("2h", "2:00:00"),
            ("90m", "1:30:00"),
            ("1d 1s", "24:00:01"),
            ("90", "90"),
            ("1-12:30", "1-12:30"),
        ] {
            assert_eq!(time(given).as_deref(), Ok(expected));
        }
        assert!(time("soon").is_err() && time("-1").is_err() && time("").is_err());
    }
}
