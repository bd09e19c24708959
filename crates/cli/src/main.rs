//! The binary `cosched`: decides which processes run together on a Linux multicore, on which core, and when a core is
//! better left idle. One file per verb, in `verb`.
// Nothing can be reached from outside of a program.
#![allow(unreachable_pub)]
// See `stderr`.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod complete;
mod history;
mod live;
mod offer;
mod output;
mod print;
mod run_files;
mod size;
mod verb;
mod words;
mod workload;

// Every verb uses these.
use anyhow::Result;
use cosched_run::{exit, input, stderr, whole_file};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::{Exit, Failure};
use std::process::ExitCode;

/// The list of verbs, below what a new user does first.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

First steps:
  cosched run -f commands.txt                    run a list of commands
  cosched why JOB                                see why a job waits
  cosched top                                    watch the run
  cosched run --resume=RUN                       run the rest of a killed run, by its log folder
  cosched report                                 look at the results of the last run
  cosched compare -f commands.txt -p linux,fifo  compare policies, or commands: 'CMD' 'CMD'

Commands:
{subcommands}{after-help}";

/// Decides which processes run together, on which core, and when a core is better left idle
#[derive(Parser)]
#[command(name = "cosched", version, max_term_width = 110)]
#[command(help_template = TEMPLATE, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(Box<verb::run::RunArgs>),
    Compare(Box<verb::compare::CompareArgs>),
    Why(verb::why::WhyArgs),
    #[command(hide = true)]
    Decide(verb::decide::DecideArgs),
    #[command(hide = true)]
    Conform(verb::conform::ConformArgs),
    Report(verb::report::ReportArgs),
    Trace(verb::trace::TraceArgs),
    #[command(hide = true)]
    Reproduce(verb::reproduce::ReproduceArgs),
    List(verb::list::ListArgs),
    Doctor(verb::doctor::DoctorArgs),
    Calibrate(verb::calibrate::CalibrateArgs),
    History(verb::history::HistoryVerb),
    Status(verb::status::StatusArgs),
    Top(verb::top::TopArgs),
    Attach(Box<verb::attach::AttachArgs>),
    Set(verb::set::SetArgs),
    Slurm(Box<verb::slurm::SlurmArgs>),
    Serve(verb::queue::serve::ServeArgs),
    Submit(verb::queue::submit::SubmitArgs),
    Wait(verb::queue::wait::WaitArgs),
    Logs(verb::queue::logs::LogsArgs),
    Cancel(verb::queue::change::CancelArgs),
    Rerun(verb::queue::change::RerunArgs),
    Drain(verb::queue::change::DrainArgs),
    Thaw(verb::thaw::ThawArgs),
    #[command(hide = true)]
    Workload(verb::workload::WorkloadArgs),
    #[command(hide = true)]
    Worker(verb::worker::WorkerArgs),
    Help(verb::help::HelpArgs),
    Completions(verb::shell::CompletionsArgs),
    Man(verb::shell::ManArgs),
    #[command(hide = true)]
    Console {
        showing: String,
        folder: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    become_reaper();
    match complete::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(mut error) => return refuse(&mut error),
    }
    match parse() {
        Ok(verb) => run(verb).unwrap_or_else(|error| report(&error)),
        Err(mut error) => refuse(&mut error),
    }
}

/// Starts a job and ends as it does, if that is what was asked for: `cosched reap KEY INHERITED PROGRAM NAME ARG...`. It is done before
/// anything else, because it is in the way of each job.
fn become_reaper() {
    let words: Vec<_> = std::env::args_os().collect();
    if let [_, verb, key, inherited, program, args @ ..] = &words[..]
        && verb == "reap"
    {
        cosched_linux::reap(key.as_ref(), inherited, program, args);
    }
}

fn parse() -> Result<Verb, clap::Error> {
    let mut cli = Cli::command();
    let mut words = std::env::args_os().collect();
    let is_bare = words::mark_command(&cli, &mut words);
    cli = verb::help::with_screen(cli, &words);
    let matches = cli.try_get_matches_from_mut(words)?;
    let mut verb = Cli::from_arg_matches(&matches)?.verb;
    if let (Verb::Run(args), Some(matches)) = (&mut verb, matches.subcommand_matches("run")) {
        args.forget_habits(matches);
        if let Some(option) = args.unheeded(matches) {
            let why = format!("--{option} has no meaning with --join; leave it out\n");
            return Err(cli.error(clap::error::ErrorKind::ArgumentConflict, why));
        }
        args.is_bare = is_bare;
        args.note_words(matches);
    }
    if let (Verb::Slurm(args), Some(matches)) = (&mut verb, matches.subcommand_matches("slurm")) {
        args.keep(matches, is_bare);
    }
    Ok(verb)
}

/// The command line with what help shows.
fn explained() -> clap::Command {
    verb::help::explained(Cli::command())
}

/// Prints the help, or why a command line can't be parsed.
fn refuse(error: &mut clap::Error) -> ExitCode {
    words::advise(error);
    let text = error.render().to_string();
    if text.contains(cosched_report::is_hidden) {
        // What the user typed must not control the terminal.
        stderr::write(&cosched_report::visible_lines(&text));
    } else {
        let _ = error.print();
    }
    let exit = if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Success
    };
    exit.into()
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Run(args) => verb::run::run(*args),
        Verb::Compare(args) => verb::compare::run(*args),
        Verb::Why(args) => verb::why::run(args),
        Verb::Decide(args) => verb::decide::run(args),
        Verb::Conform(args) => verb::conform::run(&args),
        Verb::Report(args) => verb::report::run(args),
        Verb::Trace(args) => verb::trace::run(args),
        Verb::Reproduce(args) => verb::reproduce::run(args),
        Verb::List(args) => verb::list::run(args),
        Verb::Doctor(args) => verb::doctor::run(args),
        Verb::Calibrate(args) => verb::calibrate::run(args),
        Verb::History(args) => verb::history::run(args),
        Verb::Status(args) => verb::status::run(args),
        Verb::Top(args) => verb::top::run(args),
        Verb::Attach(args) => verb::attach::run(*args),
        Verb::Set(args) => verb::set::run(args),
        Verb::Slurm(args) => verb::slurm::run(*args),
        Verb::Serve(args) => verb::queue::serve::run(args),
        Verb::Submit(args) => verb::queue::submit::run(args),
        Verb::Wait(args) => verb::queue::wait::run(args),
        Verb::Logs(args) => verb::queue::logs::run(args),
        Verb::Cancel(args) => verb::queue::change::cancel(args),
        Verb::Rerun(args) => verb::queue::change::rerun(args),
        Verb::Drain(args) => verb::queue::change::drain(args),
        Verb::Thaw(args) => verb::thaw::run(args),
        Verb::Workload(args) => verb::workload::run(args),
        Verb::Worker(args) => verb::worker::run(args),
        Verb::Help(args) => verb::help::run(args, explained()),
        Verb::Completions(args) => verb::shell::completions(args),
        Verb::Man(args) => verb::shell::man(args, explained()),
        Verb::Console { showing, folder } => {
            cosched_run::console(&showing, &folder).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(is_closed_pipe) {
        return Exit::Success.into();
    }
    let message = cosched_report::visible_lines(&exit::one_line(error));
    stderr::say(format_args!("cosched: {message}"));
    error
        .downcast_ref::<Failure>()
        .map_or(Exit::Failure, |failure| failure.exit)
        .into()
}

/// Whether a reader has closed the output, which is no error.
fn is_closed_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_defined_without_contradictions() {
        Cli::command().debug_assert();
    }
}
