//! `cosched set`: changes settings of a live run.

use crate::exit::usage;
use crate::input::told;
use crate::live::{LiveRunStatus, chosen};
use crate::offer;
use crate::stderr::say;
use anyhow::{Context as _, Result};
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use cosched_linux::root::Root;
use cosched_linux::{LiveSettings, RunRequest};
use std::path::Path;
use std::process::ExitCode;

/// Change a live run: its maximum number of live jobs, or pause it
///
/// `jobs=N` sets the maximum number of live jobs, 0 for no limit; jobs that are live stay. `pause=on` freezes all jobs and stops
/// the run's clock; `pause=off` continues them. Ctrl-C ends a paused run as any other.
#[derive(Args)]
pub struct SetArgs {
    /// The run, as for `status` [default: the only live run], then settings: jobs=N, pause=on, pause=off
    #[arg(value_name = "[RUN] SETTING", required = true)]
    #[arg(add = ArgValueCandidates::new(settings))]
    words: Vec<String>,
}

/// The live runs, and the settings.
fn settings() -> Vec<CompletionCandidate> {
    let mut words = offer::runs();
    words.extend(offer::names(["jobs=", "pause=on", "pause=off"]));
    words
}

pub fn run(args: SetArgs) -> Result<ExitCode> {
    let (name, words) = match args.words.split_first() {
        Some((first, rest)) if is_run(first) => (Some(&**first), rest),
        _ => (None, &*args.words),
    };
    let settings = parse(words)?;
    let run = chosen(&Root::default(), name)?;
    let Some(LiveRunStatus { run, status }) = run else {
        return Err(usage("no run is live"));
    };
    let status = status.map_err(|why| usage(format!("process {}: {why}", run.pid)))?;
    run.ask(&RunRequest::Set(settings))
        .with_context(|| format!("asking process {}", run.pid))?;
    let whose = match &status.run.folder {
        Some(folder) => format!("the run in {folder}"),
        None => format!("process {}", run.pid),
    };
    say(format_args!(
        "cosched: asked {whose} for {}",
        words.join(" ")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Whether the first word names a run. A log folder may have `=` in its name.
fn is_run(word: &str) -> bool {
    !word.contains('=') || Path::new(word).exists()
}

fn parse(words: &[String]) -> Result<LiveSettings> {
    let mut settings = LiveSettings::default();
    for word in words {
        match word.split_once('=') {
            Some(("jobs", jobs)) => settings.jobs = Some(jobs.parse().map_err(|_| wrong(word))?),
            Some(("pause", "on")) => settings.pause = Some(true),
            Some(("pause", "off")) => settings.pause = Some(false),
            _ => return Err(wrong(word)),
        }
    }
    if settings == LiveSettings::default() {
        return Err(usage(format!("no setting; expected {EXPECTED}")));
    }
    Ok(settings)
}

const EXPECTED: &str = "jobs=N, pause=on or pause=off, as in `cosched set jobs=4`";

fn wrong(word: &str) -> anyhow::Error {
    let word = told(word);
    usage(format!("`{word}` is no setting; expected {EXPECTED}"))
}
