//! The answer of a run: the record or a summary, and the exit code.

use super::options::{AnswerFormat, RunOptions};
use super::platform::NO_PROGRAM;
use super::terminal::terminal_width;
use crate::exit::Exit;
use crate::input::{quote, told};
use crate::stderr;
use cosched_core::{EndedBy, Exit as JobExit, Halt, RunResult, TaskResult};
use cosched_report::{
    RunRecord, SummaryOptions, TableForm, TidyTable, job_columns, job_values, summary,
};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How a run ended, as far as the record does not say it.
pub(crate) struct Ending<'a> {
    /// Something else than its last job ended it, and this was not wanted.
    was_interrupted: bool,
    /// Its log folder.
    logs: &'a Path,
    /// It is resumed with the same standard input.
    reads_input: bool,
}

impl Ending<'_> {
    pub(crate) fn new<'a>(
        result: &RunResult,
        halt: &Halt,
        logs: &'a Path,
        reads_input: bool,
    ) -> Ending<'a> {
        let was_reached = result.ended_by == EndedBy::Halt && halt.is_on_successes();
        Ending {
            was_interrupted: result.ended_by != EndedBy::Completion && !was_reached,
            logs,
            reads_input,
        }
    }
}

/// Prints what `--format` says: the record or the jobs on standard output, or a summary on standard error. A reader that has left is no error.
pub(crate) fn print(
    options: &RunOptions,
    record: &RunRecord,
    ending: &Ending<'_>,
) -> io::Result<()> {
    let output = &options.output;
    let printed = match output.format {
        AnswerFormat::Json => io::stdout().write_all(record.to_json().as_bytes()),
        AnswerFormat::Csv => print_jobs(record),
        AnswerFormat::Text => Ok(()),
    };
    if output.has_summary() {
        let text = summary(record, &summary_options(options, record));
        stderr::write(&(text + &next_steps(options, record, ending)));
    }
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints the table of the jobs, as `cosched report --format csv` does.
fn print_jobs(record: &RunRecord) -> io::Result<()> {
    let mut table = TidyTable::new(TableForm::Csv, &job_columns(), io::stdout().lock())?;
    for job in &record.jobs {
        table.row(&job_values(job))?;
    }
    table.finish()
}

fn summary_options(options: &RunOptions, record: &RunRecord) -> SummaryOptions {
    let output = &options.output;
    let jobs = record.jobs.len();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_width(io::stderr());
    SummaryOptions {
        width: width.unwrap_or(100),
        colour: width.is_some() && !no_colour,
        has_record: output.keeps_logs() || output.record.is_some(),
        verbose: output.verbose,
        // Of several jobs each has been told when it ended.
        last_errors: jobs == 1 && options.show(jobs).is_none(),
    }
}

/// Where the output of failed jobs is, and how an interrupted batch is continued.
fn next_steps(options: &RunOptions, record: &RunRecord, ending: &Ending<'_>) -> String {
    let mut text = String::new();
    if options.is_simulated() {
        return text;
    }
    let logs = from_here(ending.logs);
    if record.totals.failed > 0 && options.output.keeps_logs() {
        let logs = told(logs);
        text += &format!("output of all jobs: {logs}\n");
    }
    if ending.was_interrupted
        && let Some(command) = resuming_command(options, record, logs)
    {
        let with = if ending.reads_input {
            ", with the same standard input"
        } else {
            ""
        };
        text += &format!("to continue{with}: {command}\n");
    }
    text
}

/// The words that continue the batch, for a shell; `None` if it can't be resumed. A log folder knows its command line;
/// otherwise it is the user's with `--resume`.
fn resuming_command(options: &RunOptions, record: &RunRecord, logs: &Path) -> Option<String> {
    let mut words = record.setting.command_line.clone()?;
    let verb = words.iter().skip(1).position(|word| word == "run")? + 1;
    if options.output.keeps_logs() {
        let mut resume = OsString::from("--resume=");
        resume.push(logs);
        words.truncate(verb + 1);
        words.push(quote(resume.as_bytes()));
    } else if options.output.joblog.is_none() {
        return None;
    } else if options.resume.is_none() {
        words.insert(verb + 1, "--resume".to_owned());
    }
    Some(words.join(" "))
}

/// A path from the current folder, if it is that or below it.
fn from_here(path: &Path) -> &Path {
    let here = std::env::current_dir();
    let below = here.ok().and_then(|here| path.strip_prefix(here).ok());
    match below {
        Some(below) if below == Path::new("") => Path::new("."),
        Some(below) => below,
        None => path,
    }
}

/// The exit code for a result under this rule. With `only_job`, that of the only job if nothing else ended the run.
pub(crate) fn exit_of(result: &RunResult, halt: &Halt, only_job: bool) -> Exit {
    let exit = exit_of_batch(result, halt);
    match &result.tasks[..] {
        [task] if only_job && exit == Exit::Failure => Exit::OnlyJob(code_of(task.exit.as_ref())),
        _ => exit,
    }
}

fn code_of(exit: Option<&JobExit>) -> u8 {
    match exit {
        Some(JobExit::Code(code)) => u8::try_from(*code).unwrap_or(1),
        Some(JobExit::Signal { signal, .. }) => Exit::Signal(*signal).code(),
        // A node may lack it.
        Some(JobExit::NotStarted(why)) if why.contains(NO_PROGRAM) => 127,
        Some(JobExit::NotStarted(_)) => 126,
        Some(JobExit::ToldToEnd | JobExit::Unknown) | None => 1,
    }
}

fn exit_of_batch(result: &RunResult, halt: &Halt) -> Exit {
    let mut tasks = result.tasks.iter();
    let some_failed = match result.ended_by {
        EndedBy::Signal(signal) => return Exit::Signal(signal),
        EndedBy::Deadline => return Exit::TimedOut,
        EndedBy::Drain | EndedBy::NoTime | EndedBy::NoNode => return Exit::Left,
        // What was wanted was reached, whatever failed before.
        EndedBy::Halt if halt.is_on_successes() => return Exit::Success,
        _ if result.left_out.timed_out > 0 => return Exit::TimedOut,
        _ if result.tasks.iter().any(|task| task.timed_out) => return Exit::TimedOut,
        // Jobs that the rule left out or ended did not fail.
        EndedBy::Halt => {
            tasks.any(|task| task.exit.is_some() && !exited_ok(task) && !task.told_to_end)
        }
        EndedBy::Completion => tasks.any(|task| !exited_ok(task)),
    };
    if some_failed || result.left_out.failed > 0 {
        Exit::Failure
    } else {
        Exit::Success
    }
}

/// Whether the last process of a job exited with code 0.
pub(crate) fn exited_ok(task: &TaskResult) -> bool {
    task.exit.as_ref().is_some_and(JobExit::ok)
}
