//! `cosched history`: what is known of commands from earlier runs, and how to forget it.

use super::run::{Format, duration};
use crate::exit::{Exit, Failure, usage};
use crate::history::HistoryArgs;
use crate::input::told;
use crate::print::{print, print_json};
use crate::size::format_size;
use crate::stderr;
use anyhow::Result;
use clap::{Args, Subcommand};
use cosched_core::Nanos;
use cosched_linux::unix_time;
use cosched_memory::{Export, Forget, HistoryError, HistoryStore, LockPatience, RememberedCommand};
use cosched_report::{Table, TableColumn, count, seconds};
use cosched_run::width_of;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Show or forget measurements of earlier runs
///
/// Each run records the time, CPU time and memory of its jobs for later runs. The file is
/// ~/.local/share/cosched/history.sqlite unless --history or COSCHED_HISTORY names another.
#[derive(Args)]
pub struct HistoryVerb {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List commands, the last seen first
    List(ListArgs),
    /// Forget commands
    Forget(ForgetArgs),
}

#[derive(Args)]
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

#[derive(Args)]
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

pub fn run(args: HistoryVerb) -> Result<ExitCode> {
    match args.what {
        What::List(args) => list(&args),
        What::Forget(args) => forget(args),
    }
}

/// The file that the user means.
fn place(args: &HistoryArgs) -> Result<PathBuf> {
    args.place().ok_or_else(|| {
        usage("there is no history here; name its file, as in --history history.sqlite")
    })
}

fn failure(error: HistoryError) -> anyhow::Error {
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
fn known(args: &HistoryArgs, pattern: Option<&str>) -> Result<Vec<RememberedCommand>> {
    let path = place(args)?;
    match HistoryStore::open_existing(&path, LockPatience::Some).map_err(failure)? {
        Some(store) => store.list(pattern).map_err(failure),
        None => {
            let path = told(&path);
            stderr::say(format_args!(
                "cosched: nothing is known yet: there is no {path}"
            ));
            Ok(Vec::new())
        }
    }
}

fn list(args: &ListArgs) -> Result<ExitCode> {
    let known = known(&args.place, args.pattern.as_deref())?;
    if args.format == Format::Json {
        return print_json(&Export::of(known));
    }
    if known.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let stdout = std::io::stdout();
    // A program that reads it gets all of it.
    let width = if stdout.is_terminal() {
        width_of(&stdout)
    } else {
        usize::MAX
    };
    print(table(&known).text(width))
}

/// A row for each command.
fn table(known: &[RememberedCommand]) -> Table {
    let columns = vec![
        TableColumn::number("TIME", 0, known, |one| one.time_s.map(seconds)),
        TableColumn::number("CPU", 0, known, |one| {
            one.runs.first().and_then(|run| run.cpu_s).map(seconds)
        }),
        TableColumn::number("MEMORY", 0, known, |one| one.max_rss().map(format_size)),
        TableColumn::number("LEARNT", 0, known, |one| {
            let learnt = one.learnt.as_ref();
            learnt.map(|learnt| count(learnt.phases.len() as u64, "phase"))
        }),
        TableColumn::number("ENDS", 0, known, |one| one.ends.to_string()),
        TableColumn::number("FAILED", 0, known, |one| one.failures.to_string()),
        TableColumn::number("LAST", 0, known, |one| one.last_exit.clone()),
        TableColumn::number("SEEN", 0, known, |one| day(one.seen)),
        TableColumn::text("COMMAND", 0, known, command).clipped(),
    ];
    Table { columns }
}

/// The day of a time in milliseconds since 1970.
fn day(ms: u64) -> String {
    // Later years have more than four figures.
    let time = Duration::from_millis(ms.min(1 << 47));
    let time = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + time).to_string();
    time[..10].to_owned()
}

fn command(one: &RememberedCommand) -> String {
    match &one.command {
        Some(command) => command.clone(),
        None => format!("{} (any, too short to be kept one by one)", one.program),
    }
}

fn forget(args: ForgetArgs) -> Result<ExitCode> {
    let path = place(&args.place)?;
    let what = match (args.pattern, args.older_than) {
        (Some(text), _) if text.is_empty() => {
            return Err(usage("TEXT is empty; to forget everything, use --all"));
        }
        (Some(text), _) => Forget::Matching(text),
        (None, Some(age)) => Forget::OlderThan(ms_before_now(age)),
        (None, None) => Forget::All,
    };
    let store = HistoryStore::open_existing(&path, LockPatience::Some).map_err(failure)?;
    let forgotten = match store {
        Some(mut store) => store.forget(&what).map_err(failure)?,
        None => 0,
    };
    let commands = count(forgotten, "command");
    print(format!("forgot {commands}\n"))
}

/// The time so long ago, in milliseconds since 1970.
fn ms_before_now(age: Nanos) -> u64 {
    let age = Duration::from_nanos(age.0);
    unix_time().saturating_sub(age).as_millis() as u64
}
