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
use cosched_report::{clip, count, seconds, visible};
use cosched_run::width_of;
use std::io::{BufWriter, IsTerminal as _, Write as _};
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

/// The titles of the columns before the command.
const TITLES: [&str; 8] = [
    "TIME", "CPU", "MEMORY", "LEARNT", "ENDS", "FAILED", "LAST", "SEEN",
];

/// A line of the list.
struct Row {
    cells: [String; TITLES.len()],
    command: String,
}

fn list(args: &ListArgs) -> Result<ExitCode> {
    let known = known(&args.place, args.pattern.as_deref())?;
    if args.format == Format::Json {
        return print_json(&Export::of(known));
    }
    if known.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![Row {
        cells: TITLES.map(str::to_owned),
        command: "COMMAND".to_owned(),
    }];
    rows.extend(known.iter().map(row));
    print_rows(&rows)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints rows, with each column as wide as its widest cell.
fn print_rows(rows: &[Row]) -> std::io::Result<()> {
    let mut widths = [0; TITLES.len()];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    let used = widths.iter().sum::<usize>() + 2 * widths.len();
    let stdout = std::io::stdout();
    // A program that reads it gets all of it.
    let room = if stdout.is_terminal() {
        width_of(&stdout).saturating_sub(used).max(20)
    } else {
        usize::MAX
    };
    let mut out = BufWriter::new(stdout.lock());
    for row in rows {
        for (cell, width) in row.cells.iter().zip(&widths) {
            write!(out, "{cell:>width$}  ")?;
        }
        writeln!(out, "{}", clip(&row.command, room))?;
    }
    out.flush()
}

/// A value in words, or a dash.
fn or_dash<T>(value: Option<T>, words: impl Fn(T) -> String) -> String {
    match value {
        Some(value) => words(value),
        None => "-".to_owned(),
    }
}

/// One command in words.
fn row(one: &RememberedCommand) -> Row {
    let cpu_s = one.runs.first().and_then(|run| run.cpu_s);
    let phases = one.learnt.as_ref().map(|learnt| learnt.phases.len() as u64);
    // Later years have more than four figures.
    let seen = Duration::from_millis(one.seen.min(1 << 47));
    let seen = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + seen).to_string();
    let command = match &one.command {
        Some(command) => visible(command),
        None => {
            let program = visible(&one.program);
            format!("{program} (any, too short to be kept one by one)")
        }
    };
    Row {
        cells: [
            or_dash(one.time_s, seconds),
            or_dash(cpu_s, seconds),
            or_dash(one.max_rss(), format_size),
            or_dash(phases, |phases| count(phases, "phase")),
            one.ends.to_string(),
            one.failures.to_string(),
            visible(&one.last_exit),
            seen[..10].to_owned(),
        ],
        command,
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
