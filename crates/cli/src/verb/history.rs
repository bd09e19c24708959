//! `cosched history`: what is known of commands from earlier runs, and how to forget it.

use super::run::{Format, duration};
use crate::exit::{Exit, Failure, usage};
use crate::history::HistoryArgs;
use crate::size::format_size;
use crate::stderr;
use clap::{Args, Subcommand};
use cosched_core::Nanos;
use cosched_memory::{Error, Export, Forget, Patience, Remembered, Store};
use cosched_report::{clip, count, seconds, visible};
use cosched_run::width_of;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Show or forget measurements of earlier runs
///
/// Each run records the time, CPU time and memory of its jobs for later runs. The file is
/// ~/.local/share/cosched/history.sqlite unless --history or COSCHED_HISTORY names another.
#[derive(Args, Debug)]
pub(crate) struct HistoryVerb {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List commands, the last seen first
    List(ListArgs),
    /// Forget commands
    Forget(ForgetArgs),
    /// Print everything as JSON
    Export(ExportArgs),
}

#[derive(Args, Debug)]
struct ListArgs {
    /// Only commands that hold this text; their programs and folders count as well
    #[arg(value_name = "TEXT")]
    pattern: Option<String>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: HistoryArgs,
}

#[derive(Args, Debug)]
#[group(id = "which", required = true, multiple = false, args = ["pattern", "all", "older_than"])]
struct ForgetArgs {
    /// Commands that hold this text; their programs and folders count as well
    #[arg(value_name = "TEXT")]
    pattern: Option<String>,

    /// Everything
    #[arg(long)]
    all: bool,

    /// What did not run for so long, as in 90d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    older_than: Option<Nanos>,

    #[command(flatten)]
    place: HistoryArgs,
}

#[derive(Args, Debug)]
struct ExportArgs {
    #[command(flatten)]
    place: HistoryArgs,
}

pub(crate) fn run(args: HistoryVerb) -> anyhow::Result<ExitCode> {
    match args.what {
        What::List(args) => list(&args),
        What::Forget(args) => forget(args),
        What::Export(args) => {
            let known = known(&args.place, None)?;
            print_json(known)
        }
    }
}

/// The file that the user means.
fn place(args: &HistoryArgs) -> anyhow::Result<PathBuf> {
    args.place().ok_or_else(|| {
        usage("the history is off, or there is no home folder for it; name a file, as in --history history.sqlite")
    })
}

fn failure(error: Error) -> anyhow::Error {
    let exit = if error.problem.is_permission() {
        Exit::Permission
    } else {
        Exit::Failure
    };
    Failure {
        exit,
        message: error.to_string(),
    }
    .into()
}

/// What is known; nothing if there is no file.
fn known(args: &HistoryArgs, pattern: Option<&str>) -> anyhow::Result<Vec<Remembered>> {
    let path = place(args)?;
    match Store::open_existing(&path, Patience::Some).map_err(failure)? {
        Some(store) => store.list(pattern).map_err(failure),
        None => {
            stderr::say(format_args!(
                "cosched: nothing is known yet: there is no {}",
                visible(&path.display().to_string())
            ));
            Ok(Vec::new())
        }
    }
}

fn print_json(commands: Vec<Remembered>) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{}",
        serde_json::to_string_pretty(&Export::of(commands))?
    )?;
    Ok(out.flush().map(|()| Exit::Success.into())?)
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let known = known(&args.place, args.pattern.as_deref())?;
    if args.format == Format::Json {
        return print_json(known);
    }
    if known.is_empty() {
        return Ok(Exit::Success.into());
    }
    let mut rows = vec![
        [
            "TIME", "CPU", "MEMORY", "LEARNT", "ENDS", "FAILED", "LAST", "SEEN", "COMMAND",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(known.iter().map(row));
    let columns = rows[0].len();
    let mut widths = vec![0; columns - 1];
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let room = width_of(std::io::stdout())
        .saturating_sub(widths.iter().sum::<usize>() + 2 * widths.len())
        .max(20);
    // A program that reads it gets all of it.
    let is_terminal = std::io::stdout().is_terminal();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in &rows {
        for (text, width) in row.iter().zip(&widths) {
            write!(out, "{text:>width$}  ")?;
        }
        let command = &row[columns - 1];
        writeln!(
            out,
            "{}",
            if is_terminal {
                clip(command, room)
            } else {
                command.clone()
            }
        )?;
    }
    Ok(out.flush().map(|()| Exit::Success.into())?)
}

fn unknown() -> String {
    "-".to_owned()
}

/// One command in words.
fn row(one: &Remembered) -> Vec<String> {
    let last = one.runs.first();
    // Later years have more than four figures.
    let seen = Duration::from_millis(one.seen.min(1 << 47));
    let seen = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + seen).to_string();
    let command = match &one.command {
        Some(command) => visible(command),
        None => format!(
            "{} (any, too short to be kept one by one)",
            visible(&one.program)
        ),
    };
    vec![
        one.time_s.map_or_else(unknown, seconds),
        last.and_then(|run| run.cpu_s).map_or_else(unknown, seconds),
        one.max_rss().map_or_else(unknown, format_size),
        one.learnt
            .as_ref()
            .map_or_else(unknown, |learnt| count(learnt.phases.len() as u64, "phase")),
        one.ends.to_string(),
        one.failures.to_string(),
        visible(&one.last_exit),
        seen[..10].to_owned(),
        command,
    ]
}

fn forget(args: ForgetArgs) -> anyhow::Result<ExitCode> {
    let path = place(&args.place)?;
    let what = match (args.pattern, args.older_than) {
        (Some(text), _) if text.is_empty() => {
            return Err(usage(
                "an empty TEXT is in every command; to forget all of them say --all",
            ));
        }
        (Some(text), _) => Forget::Matching(text),
        (None, Some(age)) => {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            Forget::OlderThan(now.saturating_sub(Duration::from_nanos(age.0)).as_millis() as u64)
        }
        (None, None) => Forget::All,
    };
    let forgotten = Store::open_existing(&path, Patience::Some)
        .and_then(|store| store.map_or(Ok(0), |mut store| store.forget(&what)))
        .map_err(failure)?;
    writeln!(std::io::stdout(), "forgot {}", count(forgotten, "command"))?;
    Ok(Exit::Success.into())
}
