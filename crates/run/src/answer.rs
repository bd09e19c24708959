//! The answer of a run: the record or a summary, and the exit code.

use super::options::RunOptions;
use super::terminal::terminal_width;
use crate::exit::Exit;
use crate::stderr;
use cosched_core::{EndedBy, Halt, RunResult};
use cosched_report::{Record, SummaryOptions, summary};
use std::io::{ErrorKind, Write};

/// Prints the record or the summary, as `--format`, `--output` and `--quiet` say. A reader that has left is no error.
pub(crate) fn print(options: &RunOptions, record: &Record) -> std::io::Result<()> {
    match try_print(options, record) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn try_print(options: &RunOptions, record: &Record) -> std::io::Result<()> {
    if options.output.json {
        std::io::stdout().write_all(record.to_json().as_bytes())?;
        return Ok(());
    }
    if options.output.quiet {
        return Ok(());
    }
    // With --output the jobs' output goes to standard output, so the summary goes to standard error.
    let to_stderr = options.show().is_some();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = if to_stderr {
        terminal_width(std::io::stderr())
    } else {
        terminal_width(std::io::stdout())
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
    } else {
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The exit code for a result under this rule. With `only_job`, that of the only job if nothing else ended the run.
pub(crate) fn exit_of(result: &RunResult, halt: &Halt, only_job: bool) -> Exit {
    match (exit_of_batch(result, halt), &result.tasks[..]) {
        (Exit::Failure, [task]) if only_job => Exit::OnlyJob(match &task.exit {
            Some(cosched_core::Exit::Code(code)) => u8::try_from(*code).unwrap_or(1),
            Some(cosched_core::Exit::Signal { signal, .. }) => Exit::Signal(*signal).code(),
            Some(cosched_core::Exit::NotStarted(_)) => 126,
            Some(cosched_core::Exit::ToldToEnd | cosched_core::Exit::Unknown) | None => 1,
        }),
        (exit, _) => exit,
    }
}

fn exit_of_batch(result: &RunResult, halt: &Halt) -> Exit {
    let failed =
        |task: &cosched_core::TaskResult| !task.exit.as_ref().is_some_and(cosched_core::Exit::ok);
    match result.ended_by {
        EndedBy::Signal(signal) => Exit::Signal(signal),
        // What was wanted was reached, whatever failed before.
        EndedBy::Halt if halt.is_on_successes() => Exit::Success,
        _ if result.tasks.iter().any(|task| task.timed_out) => Exit::TimedOut,
        EndedBy::Halt
            if result
                .tasks
                .iter()
                .any(|task| task.exit.is_some() && failed(task) && !task.told_to_end) =>
        {
            Exit::Failure
        }
        // Jobs that the rule left out or ended did not fail.
        EndedBy::Halt => Exit::Success,
        EndedBy::Completion if result.tasks.iter().any(failed) => Exit::Failure,
        EndedBy::Completion => Exit::Success,
    }
}
