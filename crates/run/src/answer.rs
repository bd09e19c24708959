//! The answer of a run: the record or a summary, and the exit code.

use super::options::RunOptions;
use super::terminal::terminal_width;
use crate::exit::Exit;
use crate::stderr;
use cosched_core::{EndedBy, Exit as JobExit, Halt, RunResult, TaskResult};
use cosched_report::{Record, SummaryOptions, summary};
use std::io::{self, ErrorKind, Write as _};

/// Prints the record or the summary, as `--format`, `--output` and `--quiet` say. A reader that has left is no error.
pub(crate) fn print(options: &RunOptions, record: &Record) -> io::Result<()> {
    match try_print(options, record) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn try_print(options: &RunOptions, record: &Record) -> io::Result<()> {
    let mut stdout = io::stdout();
    if options.output.json {
        return stdout.write_all(record.to_json().as_bytes());
    }
    if options.output.quiet {
        return Ok(());
    }
    // With --output the jobs' output goes to standard output, so the summary goes to standard error.
    let to_stderr = options.show().is_some();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = if to_stderr {
        terminal_width(io::stderr())
    } else {
        terminal_width(&stdout)
    };
    let options = SummaryOptions {
        width: width.unwrap_or(100),
        colour: width.is_some() && !no_colour,
        has_record: options.output.keeps_logs() || options.output.record.is_some(),
        verbose: options.output.verbose,
    };
    let text = summary(record, &options);
    if to_stderr {
        stderr::write(&text);
        return Ok(());
    }
    stdout.write_all(text.as_bytes())
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
        Some(JobExit::NotStarted(_)) => 126,
        Some(JobExit::ToldToEnd | JobExit::Unknown) | None => 1,
    }
}

fn exit_of_batch(result: &RunResult, halt: &Halt) -> Exit {
    let mut tasks = result.tasks.iter();
    let some_failed = match result.ended_by {
        EndedBy::Signal(signal) => return Exit::Signal(signal),
        EndedBy::Deadline => return Exit::TimedOut,
        // What was wanted was reached, whatever failed before.
        EndedBy::Halt if halt.is_on_successes() => return Exit::Success,
        _ if result.tasks.iter().any(|task| task.timed_out) => return Exit::TimedOut,
        // Jobs that the rule left out or ended did not fail.
        EndedBy::Halt => {
            tasks.any(|task| task.exit.is_some() && !exited_ok(task) && !task.told_to_end)
        }
        EndedBy::Completion => tasks.any(|task| !exited_ok(task)),
    };
    if some_failed {
        Exit::Failure
    } else {
        Exit::Success
    }
}

/// Whether the last process of a job exited with code 0.
pub(crate) fn exited_ok(task: &TaskResult) -> bool {
    task.exit.as_ref().is_some_and(JobExit::ok)
}
