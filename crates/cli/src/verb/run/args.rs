//! The command line of `cosched run`.

use super::parallel::ParallelArgs;
use super::parse::{Offered, delimiter, duration, name_value, seed, solo, time_limit, words};
use crate::exit::{self, usage};
use crate::history::HistoryArgs;
use crate::input::{Reading, Separator, absolute, spec, told};
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use cosched_core::{Actuation, Halt, Nanos, Order, TimeLimit};
use cosched_run::{
    Actuator, CpuChoice, CpusPerJob, Freeze, JobLimit, LimitOptions, LoadLimit, Logs,
    MachineOptions, Orphans, OutputOptions, PolicyOptions, RunOptions, Show, SoloSource, Source,
};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The word of `--on` for this machine.
const HOST: &str = "host";

/// Two lines, so that the short help fits a screen.
const EXAMPLES: &str = "cosched run gzip -k {} ::: *.txt     cosched run -f commands.txt -p bandwidth\n\
                        ls *.txt | cosched run gzip -k       cosched run jobs.toml --on xeon-e5645";

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
#[command(verbatim_doc_comment, after_help = EXAMPLES, after_long_help = exit::TABLE)]
pub struct RunArgs {
    /// Mix file (TOML); `cosched man mix-file` explains it
    #[arg(hide_short_help = true)]
    pub mix: Option<PathBuf>,

    /// A command and its arguments; with `::: A B C`, or values on standard input, one job for each value
    ///
    /// After `--` it is one job, and standard input is its own, unless there is `:::`, {} or an option about values
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    pub command: Vec<OsString>,

    /// Read a shell command from each line; `-`: stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub list: Option<PathBuf>,

    /// Shell for lines, as in bash: a path, or a name in PATH
    ///
    /// A POSIX shell. It runs lines of -f, lines in mix files, and commands of one word with blanks or shell characters
    /// [default: $SHELL if it is sh, dash, bash, ksh or zsh, else /bin/sh]
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
        value_parser = clap::value_parser!(i32).range(-20..20),
        hide_short_help = true
    )]
    pub nice: Option<i32>,

    /// Continue the run of this log folder
    ///
    /// The jobs that have not succeeded run, in the same folder. Without RUN, cosched reads the file of --joblog.
    #[arg(long, value_name = "RUN", require_equals = true)]
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

    /// The user wrote no `--` before the command, so standard input may hold its values.
    #[arg(skip)]
    pub may_read_input: bool,

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

/// Where the values of a command come from.
#[derive(Args)]
#[command(next_help_heading = "Values")]
pub struct ValueArgs {
    /// Read values from FILE, one a line; `-`: stdin
    ///
    /// Repeatable: as with `:::`, each value of one file is combined with each of the others.
    #[arg(short, long, value_name = "FILE")]
    pub arg_file: Vec<PathBuf>,

    /// Values in files and on standard input end with a zero byte, as `find -print0` writes them
    #[arg(short = '0', long, hide_short_help = true)]
    pub null: bool,

    /// Values in files and on standard input end with this character, as in , or '\t'
    #[arg(short, long, value_name = "CHAR", value_parser = delimiter, conflicts_with = "null")]
    #[arg(allow_hyphen_values = true, hide_short_help = true)]
    pub delimiter: Option<u8>,

    /// The first value of each list names its columns: {name}
    #[arg(long, value_name = ":", value_parser = [":"], hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub header: Option<String>,

    /// Replace STR instead of {}
    #[arg(
        short = 'I',
        long = "replace",
        value_name = "STR",
        hide_short_help = true
    )]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub replacement: Option<String>,

    /// Split each value into columns {1}, {2} and so on, at this text or regular expression
    #[arg(
        short = 'C',
        long,
        value_name = "REGEX",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub colsep: Option<Separator>,

    /// Put N values into each job
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        conflicts_with = "max_replace_args"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub max_args: Option<u32>,

    /// Put N values into each job, and repeat the word around a replacement string, as GNU parallel does
    #[arg(short = 'N', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub max_replace_args: Option<u32>,

    /// Skip empty values; no value at all is no error
    #[arg(short = 'r', long, hide_short_help = true)]
    pub no_run_if_empty: bool,

    /// Tag each line of output with STR, in which {} and the like are replaced
    #[arg(
        long,
        value_name = "STR",
        conflicts_with = "output",
        hide_short_help = true
    )]
    pub tagstring: Option<OsString>,
}

impl ValueArgs {
    /// The same for the reader of values.
    pub fn reading(&self) -> Reading {
        Reading {
            files: self.arg_file.clone(),
            end: self.delimiter.or(self.null.then_some(0)),
            columns: self.colsep.clone(),
            per_job: self.max_args.or(self.max_replace_args).map(|n| n as usize),
            repeats: self.max_replace_args.is_some(),
            skip_empty: self.no_run_if_empty,
            header: self.header.is_some(),
            whole: self.replacement.clone().map(OsString::from),
            tag: self.tagstring.clone(),
            ..Reading::default()
        }
    }
}

/// The policy, its parameters and the machine.
#[derive(Args)]
#[command(next_help_heading = "Policy and machine")]
pub struct PolicyArgs {
    /// Simulate this machine; `host` is the real one
    ///
    /// `host` runs real processes. The name of a built-in machine (see `cosched list machines`) or a machine file (with
    /// `/` or `.toml` in its name) simulates the jobs' programs on that machine.
    #[arg(
        long,
        default_value = "host",
        env = "COSCHED_ON",
        value_name = "NAME|FILE"
    )]
    #[arg(value_parser = Offered(spec::machine_names), hide_possible_values = true)]
    pub on: String,

    /// Policy: see `cosched list policies`
    ///
    /// `auto` takes the best that the machine supports.
    #[arg(
        short,
        long,
        default_value = "auto",
        env = "COSCHED_POLICY",
        value_name = "P"
    )]
    #[arg(value_parser = Offered(spec::policy_names), hide_possible_values = true)]
    pub policy: String,

    /// Use only these CPUs, as in 0-3,8
    ///
    /// `all`: all that the caller may use. Default: all, divided with the other live runs of cosched.
    #[arg(
        long,
        value_name = "LIST|all",
        env = "COSCHED_CPUS",
        hide_short_help = true
    )]
    pub cpus: Option<CpuChoice>,

    /// Step back while others on the machine want CPUs or memory: use fewer CPUs, or pause
    #[arg(long, hide_short_help = true)]
    pub polite: bool,

    /// CPUs of each job
    ///
    /// N of its own, `all`, or `auto`: one of its own, and idle ones. `cpus` of a job in a mix file takes precedence.
    #[arg(
        long,
        value_name = "N|auto|all",
        default_value = "auto",
        hide_short_help = true
    )]
    pub cpus_per_job: CpusPerJob,
}

/// Limits on the run and its jobs.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Limit on live jobs; 0 for all
    ///
    /// A number, 0 for all, +N or -N relative to the CPUs, or N% of the CPUs; the rest wait in a queue [default: number of CPUs for fifo, else twice that]
    #[arg(
        short,
        long,
        value_name = "N",
        env = "COSCHED_JOBS",
        allow_hyphen_values = true
    )]
    #[arg(short_alias = 'P', alias = "max-procs")]
    pub jobs: Option<JobLimit>,

    /// Which jobs start first
    ///
    /// Jobs of equal or unknown length keep the given order.
    #[arg(
        long,
        value_parser = words::<Order>(),
        default_value = "longest",
        value_name = "ORDER",
        hide_short_help = true
    )]
    pub order: Order,

    /// Start no job while less memory than this is available, as in 2G; 0 for no limit
    ///
    /// On the machine or in a cgroup v2. One job runs in any case [default: 5 % of the memory]
    #[arg(
        long,
        alias = "memfree",
        value_name = "SIZE",
        value_parser = crate::size::parse_size,
        hide_short_help = true
    )]
    pub mem_keep: Option<u64>,

    /// Start no job while the load average is above this: a number, or N% of the CPUs
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub load: Option<LoadLimit>,

    /// Time between the starts of two jobs
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    pub delay: Option<Nanos>,

    /// End a job after this time; pauses do not count
    ///
    /// As in 90s. Time in the queue does not count either. 200% is twice the median of the successful jobs.
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    pub timeout: Option<TimeLimit>,

    /// End the whole run after this time, as in 8h
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    pub deadline: Option<Nanos>,

    /// Retry a failed job, up to N attempts in all
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        default_value_t = 1
    )]
    #[arg(hide_short_help = true)]
    pub retries: u32,

    /// Time from SIGTERM to SIGKILL
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "5s",
        hide_short_help = true
    )]
    pub grace: Nanos,

    /// Longest pause of a started job, approximately
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "30s",
        env = "COSCHED_MAX_PAUSE"
    )]
    #[arg(hide_short_help = true)]
    pub max_pause: Nanos,

    /// When to give up early, as in now,fail=1
    ///
    /// `never`, or `now` or `soon` with fail=N, success=N or done=N; also with N%.
    #[arg(long, value_name = "RULE", default_value = "never")]
    pub halt: Halt,
}

/// What is printed and which files are written.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Folder for output and record
    ///
    /// Each job's output and error output get files of their own in it, beside the run's record, series and job log [default:
    /// cosched-logs/TIME-PID]
    #[arg(
        long,
        value_name = "DIR",
        env = "COSCHED_LOGS",
        visible_alias = "results"
    )]
    pub logs: Option<PathBuf>,

    /// Keep no log folder, as GNU parallel does
    ///
    /// A record is written only with --record, and the run can be resumed only with --joblog.
    #[arg(long, hide_short_help = true)]
    pub no_logs: bool,

    /// Show the jobs' output: group, tag, live or none
    ///
    /// Each job's output when it ends, or its lines as they come, with or without its name; or nothing [default: group; live
    /// for a single job; none with --format json]
    #[arg(long, value_parser = words::<Show>(), value_name = "HOW")]
    pub output: Option<Show>,

    /// The same as --output tag
    #[arg(long, conflicts_with = "output", hide_short_help = true)]
    pub tag: bool,

    /// Show the jobs' output in the order of the jobs, each job's in one piece
    #[arg(short, long, hide_short_help = true)]
    pub keep_order: bool,

    /// Print a summary for people, or the run record
    #[arg(
        long,
        value_enum,
        default_value_t = Format::Text,
        value_name = "FORMAT",
        hide_short_help = true
    )]
    pub format: Format,

    /// Write the run record (JSON) here as well, and the series beside it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub record: Option<PathBuf>,

    /// Write metrics of the run here once a second, in the text format of Prometheus
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub metrics: Option<PathBuf>,

    /// Log ended jobs in this file, as GNU parallel does
    #[arg(long, value_name = "FILE")]
    pub joblog: Option<PathBuf>,

    /// Print no progress, no warnings and no summary
    #[arg(short, long)]
    pub quiet: bool,

    /// Report each job's start, and more at the end
    ///
    /// Also report each job's end, the figures that are missing and why, and cosched's own CPU time.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// Options for experiments.
#[derive(Args)]
#[command(next_help_heading = "Research")]
pub struct ResearchArgs {
    /// Solo times for slowdowns: measured first, or from an earlier run
    ///
    /// `measure` runs each distinct job alone first (a simulation always does). `only` does nothing else. FILE is a run record
    /// of an earlier run, or solo-profiles.json in its log folder; `oracle` needs the latter
    #[arg(
        long,
        value_name = "measure|only|FILE",
        hide_short_help = true,
        value_parser = solo
    )]
    pub solo: Option<SoloSource>,

    /// Set a parameter of the policy, as in quantum_s=0.1; repeatable
    #[arg(
        long = "param",
        value_name = "NAME=VALUE",
        value_parser = name_value,
        hide_short_help = true
    )]
    pub params: Vec<(String, String)>,

    /// Machine profile with parameters for this machine (TOML with a table `params`)
    #[arg(
        long,
        value_name = "FILE",
        env = "COSCHED_PROFILE",
        hide_short_help = true
    )]
    pub profile: Option<PathBuf>,

    /// Seed of everything random
    #[arg(
        long,
        default_value_t = 1,
        env = "COSCHED_SEED",
        value_name = "N",
        hide_short_help = true,
        allow_negative_numbers = true,
        value_parser = seed
    )]
    pub seed: u64,

    /// Count another event, as in mm=0x4844; repeatable
    #[arg(
        id = "event",
        long = "event",
        value_name = "NAME=RAW",
        hide_short_help = true
    )]
    pub counters: Vec<String>,

    /// How jobs are frozen: by the cgroup freezer where it works, else by signals
    #[arg(
        long,
        value_parser = words::<Freeze>(),
        default_value = "auto",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub freeze: Freeze,

    /// How jobs are scheduled on this machine; `sched-ext` is a scheduler in the kernel
    ///
    /// `freezer` freezes and binds jobs. `sched-ext` loads a scheduler into the kernel, which carries out plans: nothing
    /// is frozen, and a CPU whose job sleeps goes to the next one at once. It needs Linux 6.13 with sched_ext, root, and a
    /// cosched that was built with it: see `cosched doctor`.
    #[arg(
        long,
        value_parser = words::<Actuator>(),
        default_value = "freezer",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub actuator: Actuator,

    /// How decisions are carried out; `plans` needs a simulated machine or --actuator sched-ext
    #[arg(
        long,
        value_parser = words::<Actuation>(),
        default_value = "decisions",
        value_name = "HOW",
        hide_short_help = true
    )]
    pub actuation: Actuation,

    /// Write every decision with its snapshot here, a JSON object a line, for `cosched decide`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub events: Option<PathBuf>,
}

/// What standard output is for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Text,
    /// One JSON object
    Json,
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
        self.output.output = self.output.output.or(self.parallel.show());
        self.output.tag |= self.values.tagstring.is_some();
        let reading = Reading {
            may_read_input: self.may_read_input,
            quiet: self.output.quiet,
            ..self.values.reading()
        };
        let (machine, policy) = self.policy.options(&self.research);
        let output = self.output.options(self.research.events)?;
        Ok(RunOptions {
            jobs: source(self.mix, self.list, self.command, reading)?,
            shell,
            cwd: self.workdir,
            nice: self.nice,
            machine,
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

/// Where the jobs come from: the only place where they are given.
fn source(
    mix: Option<PathBuf>,
    list: Option<PathBuf>,
    command: Vec<OsString>,
    reading: Reading,
) -> Result<Source> {
    let is_list = mix.is_some() || list.is_some();
    let is_about_values = reading.wants_values() || reading.tag.is_some();
    if is_about_values && command.is_empty() {
        let what = if is_list {
            "a list of jobs takes no values"
        } else {
            "there is no command for the values"
        };
        return Err(usage(format!(
            "-a, -0, -d, --colsep, -I, --header, -n, -r and --tagstring are for the values of a command, and {what}; as in `cosched run -a names.txt gzip {{}}`"
        )));
    }
    match (mix, list) {
        (Some(mix), None) if command.is_empty() => Ok(Source::Mix(mix)),
        (None, Some(list)) if command.is_empty() => Ok(Source::List(list)),
        (None, None) => Ok(Source::Command(command, reading)),
        _ => Err(usage(
            "give a mix file, or -f FILE, or a command, and only one of them",
        )),
    }
}

impl PolicyArgs {
    fn options(self, research: &ResearchArgs) -> (MachineOptions, PolicyOptions) {
        let machine = MachineOptions {
            on: Some(self.on).filter(|on| on != HOST),
            cpus: self.cpus,
            polite: self.polite,
            cpus_per_job: self.cpus_per_job,
            events: research.counters.clone(),
            freeze: research.freeze,
            actuator: research.actuator,
            actuation: research.actuation,
        };
        let policy = PolicyOptions {
            name: Some(self.policy).filter(|name| name != spec::AUTO),
            params: research.params.clone(),
            profile: research.profile.clone(),
            seed: research.seed,
        };
        (machine, policy)
    }
}

impl LimitArgs {
    fn options(self) -> LimitOptions {
        LimitOptions {
            jobs: self.jobs,
            order: self.order,
            mem_keep: self.mem_keep,
            load: self.load,
            delay: self.delay.unwrap_or_default(),
            timeout: self.timeout,
            deadline: self.deadline,
            attempts: self.retries,
            grace: self.grace,
            max_pause: self.max_pause,
            halt: self.halt,
        }
    }
}

impl OutputArgs {
    /// Takes the log folder of the run to resume.
    fn go_on_in(&mut self, run: PathBuf) -> Result<()> {
        if let Some(other) = &self.logs
            && absolute(other) != absolute(&run)
        {
            let run = told(&run);
            return Err(usage(format!(
                "--resume={run} continues in that folder, and --logs names another; leave --logs out"
            )));
        }
        self.logs = Some(run);
        Ok(())
    }

    fn options(self, events: Option<PathBuf>) -> Result<OutputOptions> {
        let logs = match self.logs {
            Some(_) if self.no_logs => {
                return Err(usage(
                    "--no-logs keeps no log folder, and --logs or --resume names one; leave one of them out",
                ));
            }
            Some(folder) => Logs::At(folder),
            None if self.no_logs => Logs::Nowhere,
            None => Logs::New,
        };
        if let Some(joblog) = &self.joblog {
            check_joblog(joblog)?;
        }
        let in_one_piece = matches!(self.output, None | Some(Show::Group));
        if self.keep_order && !in_one_piece {
            return Err(usage("--keep-order needs --output group, or no --output"));
        }
        Ok(OutputOptions {
            logs,
            show: self.output.or(self.tag.then_some(Show::Tag)),
            keep_order: self.keep_order,
            json: self.format == Format::Json,
            record: self.record,
            events,
            joblog: self.joblog,
            metrics: self.metrics,
            quiet: self.quiet,
            verbose: self.verbose,
        })
    }
}

/// Refuses `--joblog +FILE`, which means something else to GNU parallel.
fn check_joblog(file: &Path) -> Result<()> {
    let Some(name) = file.as_os_str().as_bytes().strip_prefix(b"+") else {
        return Ok(());
    };
    let name = told(OsStr::from_bytes(name));
    Err(usage(format!(
        "--joblog +{name}: to continue a job log, use --joblog {name} --resume; to name this file, --joblog ./+{name}"
    )))
}
