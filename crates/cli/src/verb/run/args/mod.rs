//! The command line of `cosched run`; each group of options has a file.

mod given;
mod limits;
mod nodes;
mod output;
mod parallel;
mod policy;
mod values;

pub use given::words_of;
pub use limits::LimitArgs;
pub use output::{Format, OutputArgs};

use super::parse::words;
use crate::exit::{self, usage};
use crate::history::HistoryArgs;
use crate::input::{Reading, told};
use crate::offer;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use clap_complete::engine::ArgValueCompleter;
use cosched_core::Order;
use cosched_run::{JobSource, Orphans, RunOptions, Show};
use nodes::NodeArgs;
use parallel::ParallelArgs;
use policy::{PolicyArgs, ResearchArgs};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use values::ValueArgs;

/// The word of `--on` for this machine.
const HOST: &str = "host";

/// Options that mean something beside `--join`.
const JOINED: [&str; 7] = [
    "join", "mix", "command", "list", "shell", "workdir", "quiet",
];

/// The options say what else names the jobs.
const USAGE: &str = "cosched run [OPTIONS] <MIX.toml | CMD... [::: VALUE...]>";

/// The last lines of the short help.
const EXAMPLES: &str = "cosched run gzip -k {} ::: *.txt     cosched run -f commands.txt -p bandwidth\n\
                        ls *.txt | cosched run gzip -k       cosched run jobs.toml --on xeon-e5645\n\n\
                        All options: cosched help run";

/// Run a batch of jobs under a policy
///
/// Jobs come from a mix file, from a list of commands (-f), or from the command
/// line. Each job's output is shown when it ends, and kept in the log folder. A
/// job's failure does not stop the others unless --halt says so.
///
///   cosched run jobs.toml
///   cosched run -f commands.txt --policy bandwidth
///   cosched run -- make -C project test
///   cosched run gzip -k {} ::: *.txt
///   ls *.txt | cosched run gzip -k
///   cosched run jobs.toml --on xeon-e5645
#[derive(Args)]
#[command(verbatim_doc_comment, override_usage = USAGE, after_help = EXAMPLES, after_long_help = exit::TABLE)]
pub struct RunArgs {
    /// Mix file (TOML); `cosched help mix-file` explains it
    #[arg(hide_short_help = true, add = ArgValueCompleter::new(offer::program_or_file))]
    pub mix: Option<PathBuf>,

    /// A command and its arguments; with `::: A B C`, or values on standard input, one job for each value
    ///
    /// After `--` it is one job, and standard input is its own, unless there is `:::`, {} or an option about values
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    #[arg(add = ArgValueCompleter::new(offer::file))]
    pub command: Vec<OsString>,

    /// Read a shell command from each line; `-`: stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub list: Option<PathBuf>,

    /// Shell for lines, as in bash: a path, or a name in PATH
    ///
    /// A POSIX shell. It runs lines of -f, lines in mix files, and commands of one word with blanks or shell characters
    /// [default: bash if it exported functions, else $SHELL if it is sh, dash, bash, ksh or zsh, else /bin/sh]
    #[arg(
        long,
        value_name = "SHELL",
        env = "COSCHED_SHELL",
        hide_short_help = true
    )]
    pub shell: Option<OsString>,

    /// Working folder of the jobs
    #[arg(long, visible_alias = "wd", value_name = "DIR", hide_short_help = true)]
    pub workdir: Option<PathBuf>,

    /// Niceness of the jobs, as in 10
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i8).range(-20..20),
        hide_short_help = true
    )]
    pub nice: Option<i8>,

    /// Continue the run of this log folder
    ///
    /// The jobs that have not succeeded run, in the same folder. Without jobs on the command line, jobs and options are
    /// those of the run. Without RUN, cosched reads the file of --joblog.
    #[arg(long, value_name = "RUN", require_equals = true)]
    #[arg(add = ArgValueCompleter::new(offer::folder_or_file))]
    pub resume: Option<Option<PathBuf>>,

    /// What --resume does with live jobs of a killed run
    #[arg(
        long,
        value_parser = words::<Orphans>(),
        default_value = "refuse",
        value_name = "HOW",
        requires = "resume"
    )]
    #[arg(hide_short_help = true)]
    pub orphans: Orphans,

    /// Start nothing; print the plan
    #[arg(long, visible_alias = "explain", alias = "dryrun")]
    pub dry_run: bool,

    /// Let the service of `cosched serve` run the jobs, with those of its queue
    ///
    /// The service sets the policy, so only options about the jobs can be given too. Ctrl-C cancels the jobs.
    #[arg(long, hide_short_help = true)]
    pub join: bool,

    /// The user wrote no `--` before the command.
    #[arg(skip)]
    pub is_bare: bool,

    /// The options that were given, as words.
    #[arg(skip)]
    pub given: Vec<OsString>,

    #[command(flatten)]
    pub nodes: NodeArgs,

    // A group's heading also covers what follows it.
    #[command(flatten)]
    pub values: ValueArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,

    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    #[command(flatten)]
    pub history: HistoryArgs,

    #[command(flatten)]
    pub parallel: ParallelArgs,

    #[command(flatten)]
    pub research: ResearchArgs,
}

impl RunArgs {
    /// Whether the machine is simulated.
    fn is_simulated(&self) -> bool {
        self.policy.on != HOST
    }

    /// Drops settings from the environment that an option overrides, or that mean nothing in a simulation. They are meant
    /// for other runs, so they are no error.
    pub fn forget_habits(&mut self, matches: &ArgMatches) {
        let habit = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        let names_folder = matches!(self.resume, Some(Some(_)));
        if (self.output.no_logs || names_folder) && habit("logs") {
            self.output.logs = None;
        }
        if self.is_simulated() && habit("shell") {
            self.shell = None;
        }
    }

    /// Notes the options as words, and those that are for the runs on nodes.
    pub fn note_words(&mut self, matches: &ArgMatches) {
        self.given = words_of(matches, |_, source| source == ValueSource::CommandLine);
        self.nodes.note_worker(matches);
    }

    /// Whether the command line names the jobs.
    pub fn names_jobs(&self) -> bool {
        self.mix.is_some() || self.list.is_some() || !self.command.is_empty()
    }

    /// The log folder of the run whose own command line goes on.
    pub fn run_to_continue(&self) -> Option<&Path> {
        let folder = self.resume.as_ref()?.as_deref();
        folder.filter(|_| !self.names_jobs())
    }

    /// An option that means nothing beside `--join`: it is neither about the jobs nor about what is shown of them.
    pub fn unheeded(&self, matches: &ArgMatches) -> Option<String> {
        let values = ValueArgs::augment_args(Command::new("values"));
        let about_jobs = |id: &str| {
            JOINED.contains(&id) || values.get_arguments().any(|value| value.get_id() == id)
        };
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let mut ids = matches.ids().map(clap::Id::as_str);
        let unheeded = ids.find(|id| is_option(id) && is_given(id) && !about_jobs(id));
        unheeded
            .filter(|_| self.join)
            .map(|id| id.replace('_', "-"))
    }

    /// The options of the run.
    ///
    /// # Errors
    /// Options contradict each other, or nothing would heed one of them.
    pub fn options(mut self) -> Result<RunOptions> {
        let resume = self.resume.is_some().then_some(self.orphans);
        match self.resume.take() {
            Some(Some(run)) => self.output.go_on_in(run)?,
            Some(None) => self.check_joblog_to_resume()?,
            None => {}
        }
        let is_simulated = self.is_simulated();
        let history = self.history.place().filter(|_| !is_simulated);
        let shell = self.shell.take();
        let shell = shell.or_else(|| cosched_run::shell_of_caller().filter(|_| !is_simulated));
        if self.parallel.shuf {
            self.limits.order = Order::Random;
        }
        self.output.tag |= self.values.tagstring.is_some();
        let by_word = self.parallel.show();
        // Lines with tags come at once anyway.
        let by_word = by_word.filter(|show| !(self.output.tag && *show == Show::Live));
        self.output.output = self.output.output.or(by_word);
        let reading = Reading {
            is_bare: self.is_bare,
            quiet: self.output.quiet,
            ..self.values.reading()
        };
        let (mut machine, policy) = self.policy.options(&self.research);
        let output = self.output.options(self.research.events)?;
        machine.is_worker = output.frames;
        Ok(RunOptions {
            jobs: source(self.mix, self.list, self.command, reading)?,
            shell,
            cwd: self.workdir,
            nice: self.nice,
            machine,
            nodes: self.nodes.options(output.show),
            policy,
            limits: self.limits.options(),
            output,
            solo: self.research.solo.unwrap_or_default(),
            history,
            resume,
            dry_run: self.dry_run,
            leaves_signals: false,
        })
    }

    /// Checks that `--resume` without a folder has a job log.
    fn check_joblog_to_resume(&self) -> Result<()> {
        let first = self.command.first().map(Path::new).or(self.mix.as_deref());
        if let Some(folder) = first.filter(|first| first.is_dir()) {
            let folder = told(folder);
            return Err(usage(format!(
                "--resume {folder}: write --resume={folder} to resume the run of this folder"
            )));
        }
        if self.output.joblog.is_none() {
            return Err(usage(
                "--resume: name the log folder of the run, as in --resume=cosched-logs/20260131-120000-42, or give its --joblog FILE",
            ));
        }
        Ok(())
    }
}

/// An option in the short help: one line.
pub fn brief(arg: Arg) -> Arg {
    let arg = arg.hide_env(true);
    if !arg.get_action().takes_values() {
        return arg;
    }
    arg.hide_default_value(true).hide_possible_values(true)
}

/// Whether this is no group of options.
fn is_option(id: &str) -> bool {
    id.starts_with(char::is_lowercase)
}

/// Where the jobs come from: the only place where they are given.
fn source(
    mix: Option<PathBuf>,
    list: Option<PathBuf>,
    command: Vec<OsString>,
    reading: Reading,
) -> Result<JobSource> {
    let is_list = mix.is_some() || list.is_some();
    let is_about_values = reading.wants_values() || reading.tag.is_some();
    if is_about_values && command.is_empty() {
        let what = if is_list {
            "a list of jobs takes no values"
        } else {
            "there is no command for the values"
        };
        return Err(usage(format!(
            "-a, -0, -d, --colsep, -I, --header, -n, -N, -r and --tagstring are for the values of a command, and {what}; as in `cosched run -a names.txt gzip {{}}`"
        )));
    }
    match (mix, list) {
        (Some(mix), None) if command.is_empty() => Ok(JobSource::Mix(mix)),
        (None, Some(list)) if command.is_empty() => Ok(JobSource::List(list)),
        (None, None) => Ok(JobSource::Command(command, reading)),
        _ => Err(usage(
            "give a mix file, or -f FILE, or a command, and only one of them",
        )),
    }
}
