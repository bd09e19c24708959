//! `cosched why`: why a job runs or waits, now or at some time, from the series of its run.

use super::run::{Format, moment};
use crate::exit::{OrUsage as _, usage};
use crate::input::spelling::near;
use crate::input::told;
use crate::live::{goes_on, meant, series_of};
use crate::offer;
use crate::print::{print, print_json, width};
use crate::run_files::open_series;
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use cosched_core::{Nanos, TaskId};
use cosched_linux::root::Root;
use cosched_report::{SeriesEnd, SeriesHeader, seconds, visible, why, why_text};
use std::path::PathBuf;
use std::process::ExitCode;

/// Explain why a job runs or waits
///
/// It shows the last decisions about the job, the jobs that run instead, and its latest turn. It reads the series of the run, so it works for live runs and ended ones.
#[derive(Args)]
pub struct WhyArgs {
    /// The job's name, or its beginning if no other begins so
    #[arg(add = ArgValueCandidates::new(jobs))]
    job: Option<String>,

    /// Log folder, run record or series of a run, or process or identity of a live run [default: the newest run in
    /// cosched-logs, else the only live run]
    #[arg(add = ArgValueCompleter::new(offer::run_or_file))]
    run: Option<PathBuf>,

    /// At this time since the start of the run, as in 90s or 1.5m [default: the last time that is known]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Nanos>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

/// The jobs of the run that `why` means. Names that a shell would take apart are left out.
fn jobs() -> Vec<CompletionCandidate> {
    let series = series_of(None).and_then(|file| open_series(&file));
    let Ok(series) = series else {
        return Vec::new();
    };
    let names = series.header().tasks.iter().map(|task| &task.name);
    offer::names(names.filter(|name| name.chars().all(is_plain)))
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "#._-+/@%,".contains(c)
}

pub fn run(args: WhyArgs) -> Result<ExitCode> {
    let file = series_of(args.run.as_deref())?;
    let mut reader = open_series(&file)?;
    let task = match &args.job {
        Some(name) => find(reader.header(), name, &told(&file))?,
        None => only(reader.header())?,
    };
    let end = if goes_on(reader.header()) {
        SeriesEnd::GoesOn
    } else {
        SeriesEnd::Over
    };
    let answer = why(&mut reader, task, args.at, end).or_usage()?;
    if let Some(asked) = args.at
        && asked > answer.at
    {
        let asked = seconds(asked.as_s());
        let known = seconds(answer.at.as_s());
        let what = match answer.series_end {
            Some(SeriesEnd::GoesOn) => format!("the run goes on, and by now {known} are known"),
            _ => format!("the series of this run ends at {known}"),
        };
        say(format_args!("cosched: --at {asked}: {what}"));
    }
    match args.format {
        Format::Json => print_json(&answer),
        Format::Text if end == SeriesEnd::GoesOn && is_paused(reader.header()) => print(format!(
            "The run is paused. Before that:\n\n{}",
            why_text(&answer, width())
        )),
        Format::Text => print(why_text(&answer, width())),
    }
}

/// Whether the live run of a series is paused.
fn is_paused(header: &SeriesHeader) -> bool {
    let Some(run) = &header.run_id else {
        return false;
    };
    let live = meant(&Root::default(), run);
    live.is_ok_and(|run| run.status.is_ok_and(|status| status.paused))
}

/// So many names are told to somebody who named another.
const NAMED: usize = 10;

/// The only job.
fn only(header: &SeriesHeader) -> Result<TaskId> {
    if let [only] = &header.tasks[..] {
        return Ok(TaskId(only.task));
    }
    let names: Vec<&str> = header.tasks.iter().map(|task| &*task.name).collect();
    let names = some_of(&names);
    Err(usage(format!(
        "name a job, as in `cosched why JOB`: the run has {names}"
    )))
}

/// The task with this name, or the only one whose name begins so.
fn find(header: &SeriesHeader, name: &str, file: &str) -> Result<TaskId> {
    let tasks = &header.tasks;
    if let Some(task) = tasks.iter().find(|task| task.name == name) {
        return Ok(TaskId(task.task));
    }
    let mut begin = tasks.clone();
    begin.retain(|task| task.name.starts_with(name));
    // Every name begins with nothing.
    if name.is_empty() {
        begin.clear();
    }
    if let [only] = &begin[..] {
        return Ok(TaskId(only.task));
    }
    let names: Vec<&str> = tasks.iter().map(|task| &*task.name).collect();
    let hint = if !begin.is_empty() {
        let begin: Vec<&str> = begin.iter().map(|task| &*task.name).collect();
        format!("it could be {}", some_of(&begin))
    } else if let Some(other) = near(name, names.iter().copied()) {
        format!("is it {}?", visible(other))
    } else {
        let alike = named_like(name, &names);
        let names = if alike.is_empty() { names } else { alike };
        format!("there is {}", some_of(&names))
    };
    let name = visible(name);
    Err(usage(format!(
        "{file}: there is no job `{name}` in this run; {hint}"
    )))
}

/// The jobs whose program, the part of their names before `#`, is nearly `name`.
fn named_like<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut alike = names.to_vec();
    alike.retain(|job| near(name, job.split('#').next()).is_some());
    alike
}

/// The first names.
fn some_of(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| visible(name)).collect();
    let more = if names.len() > NAMED { " and more" } else { "" };
    format!("{}{more}", shown.join(", "))
}
