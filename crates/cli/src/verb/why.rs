//! `cosched why`: why a job runs or waits, now or at some time, from the series of its run.

use super::run::{Format, moment};
use crate::exit::{Exit, usage};
use crate::input::near::near;
use crate::input::told;
use crate::live::{goes_on, series_of};
use crate::run_files::open_series;
use crate::stderr::say;
use clap::Args;
use cosched_core::{Nanos, TaskId};
use cosched_report::{SeriesEnd, SeriesHeader, seconds, visible, why, why_text};
use cosched_run::width_of;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Explain why a job runs or waits: the last decisions about it, the jobs that run instead, and its latest turn
///
/// It reads the series of the run, so it works for live runs and ended ones.
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The job's name
    job: String,

    /// Log folder, run record or series of the run, or the process or identity of a run that goes on; without it the newest
    /// run in cosched-logs, and where there is none, the only one that goes on
    run: Option<PathBuf>,

    /// At this time since the start of the run, as in 90s or 1.5m [default: the last time that is known]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Nanos>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub(crate) fn run(args: WhyArgs) -> anyhow::Result<ExitCode> {
    let file = series_of(args.run.as_deref())?;
    let mut reader = open_series(&file)?;
    let task = find(reader.header(), &args.job, &told(&file))?;
    let end = if goes_on(reader.header()) {
        SeriesEnd::GoesOn
    } else {
        SeriesEnd::Over
    };
    let answer = why(&mut reader, task, args.at, end).map_err(|error| usage(error.to_string()))?;
    if let (Some(asked), Some(SeriesEnd::GoesOn)) = (
        args.at.filter(|asked| *asked > answer.at),
        answer.series_end,
    ) {
        let (asked, known) = (seconds(asked.as_s()), seconds(answer.at.as_s()));
        say(format_args!(
            "cosched: --at {asked}: the run goes on, and by now {known} are known"
        ));
    } else if let Some(asked) = args.at.filter(|asked| *asked > answer.at) {
        let (asked, known) = (seconds(asked.as_s()), seconds(answer.at.as_s()));
        say(format_args!(
            "cosched: --at {asked}: the series of this run ends at {known}"
        ));
    }
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&answer)?)?,
        Format::Text => out.write_all(why_text(&answer, width_of(std::io::stdout())).as_bytes())?,
    }
    out.flush()?;
    Ok(Exit::Success.into())
}

/// So many names are told to somebody who named another.
const NAMED: usize = 10;

/// The task with this name, or the only one whose name begins so.
fn find(header: &SeriesHeader, name: &str, file: &str) -> anyhow::Result<TaskId> {
    let tasks = &header.tasks;
    if let Some(task) = tasks.iter().find(|task| task.name == name) {
        return Ok(TaskId(task.task));
    }
    // Every name begins with nothing.
    let begin: Vec<_> = tasks
        .iter()
        .filter(|task| !name.is_empty() && task.name.starts_with(name))
        .collect();
    if let [only] = begin[..] {
        return Ok(TaskId(only.task));
    }
    let hint = match near(name, tasks.iter().map(|task| task.name.as_str())) {
        _ if !begin.is_empty() => {
            let names: Vec<String> = begin
                .iter()
                .take(NAMED)
                .map(|task| visible(&task.name))
                .collect();
            let more = if begin.len() > NAMED { " and more" } else { "" };
            format!("it could be {}{more}", names.join(", "))
        }
        Some(other) => format!("is it {}?", visible(other)),
        None => "`cosched report` lists the jobs of a run".to_owned(),
    };
    Err(usage(format!(
        "{file}: there is no job `{}` in this run; {hint}",
        visible(name)
    )))
}
