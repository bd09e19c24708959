//! The command line of `cosched run`.

use super::cpus::{CpuChoice, CpusPerJob};
use super::limits::{JobLimit, LoadLimit, duration, time_limit};
use super::metrics::MetricsAddress;
use crate::exit;
use crate::history::HistoryArgs;
use crate::input::spec::{self, Offered};
use crate::input::{Reading, Replacement, Separator};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use cosched_core::{Actuation, Halt, Nanos, Order, TimeLimit};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Two lines, so that the short help fits a screen.
const EXAMPLES: &str = "cosched run gzip -k {} ::: *.txt     cosched run -f commands.txt -p bandwidth\n\
                        ls | cosched run gzip -k {}          cosched run jobs.toml --on xeon-e5645";

/// Run a batch of jobs under a policy
///
/// Jobs come from a mix file, from a list of commands (-f), or from the command
/// line. Each job writes to files of its own in the log folder; a job's failure
/// does not stop the others unless --halt says so.
///
///   cosched run jobs.toml
///   cosched run -f commands.txt --policy bandwidth
///   cosched run -- make -C project test
///   cosched run gzip -k {} ::: *.txt
///   ls | cosched run gzip -k {}
///   cosched run jobs.toml --on xeon-e5645
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXAMPLES, after_long_help = exit::TABLE)]
pub(crate) struct RunArgs {
    /// Mix file (TOML); `cosched man mix-file` explains it
    #[arg(hide_short_help = true)]
    pub(crate) mix: Option<PathBuf>,

    /// A command and its arguments; with `::: A B C`, or values on standard input, one job for each value
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    pub(crate) command: Vec<OsString>,

    /// Read a shell command from each line; `-`: stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) values: ValueArgs,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) history: HistoryArgs,

    /// Solo times for slowdowns: measured first, or from an earlier run
    ///
    /// `measure` runs each distinct job alone first (a simulation always does); `only` does nothing else; a FILE is an
    /// earlier run record, or the solo-profiles.json of an earlier run's log folder, which `oracle` needs
    #[arg(
        long,
        value_name = "measure|only|FILE",
        env = "COSCHED_SOLO",
        hide_short_help = true
    )]
    pub(crate) solo: Option<String>,

    /// Shell for lines, as in bash: a path, or a name in PATH
    ///
    /// A POSIX shell. It reads commands that are one word with blanks or the like, lines of -f, and lines in mix files
    /// [default: /bin/sh]
    #[arg(
        long,
        value_name = "SHELL",
        env = "COSCHED_SHELL",
        hide_short_help = true
    )]
    pub(crate) shell: Option<OsString>,

    /// Skip jobs that succeeded before, by the --joblog
    #[arg(long, requires = "joblog")]
    pub(crate) resume: bool,

    /// With --resume, what to do with jobs of a killed run that still run, so that they do not run twice
    #[arg(long, value_enum, default_value_t = OrphansArg::Refuse, value_name = "HOW", requires = "resume")]
    #[arg(hide_short_help = true)]
    pub(crate) orphans: OrphansArg,

    /// Start nothing; print the plan
    #[arg(long, visible_alias = "explain")]
    pub(crate) dry_run: bool,
}

/// Where the values of a command come from.
#[derive(Args, Debug)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueArgs {
    /// Read values from FILE, one a line; `-`: stdin
    ///
    /// Repeatable: as with `:::`, each value of one file is combined with each of the others.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) arg_file: Vec<PathBuf>,

    /// Values in files and on standard input end with a zero byte, as `find -print0` writes them
    #[arg(short = '0', long, hide_short_help = true)]
    pub(crate) null: bool,

    /// Split each value into columns {1}, {2} and so on, at this text; '\\s+' means blanks
    #[arg(
        short = 'C',
        long,
        value_name = "SEP",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(crate) colsep: Option<Separator>,

    /// Put N values into each job
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        conflicts_with = "max_replace_args"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub(crate) max_args: Option<u32>,

    /// The same, and repeat the text around a replacement string for each of them, as GNU parallel does
    #[arg(short = 'N', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub(crate) max_replace_args: Option<u32>,

    /// Skip empty values; no value at all is no error
    #[arg(short = 'r', long, hide_short_help = true)]
    pub(crate) no_run_if_empty: bool,
}

impl ValueArgs {
    /// The same for the reader of values.
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            files: self.arg_file.clone(),
            zero: self.null,
            columns: self.colsep.clone(),
            per_job: self.max_args.or(self.max_replace_args).map(|n| n as usize),
            repeats: self.max_replace_args.is_some(),
            skip_empty: self.no_run_if_empty,
        }
    }
}

/// The policy, its parameters and the machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Policy and machine")]
pub(crate) struct PolicyArgs {
    /// Simulate this machine; `host` is the real one
    ///
    /// `host` runs real processes on this one; the name of a built-in machine (see `cosched list machines`) or a machine
    /// file (with `/` or `.toml` in its name) simulates the jobs' programs on that machine.
    #[arg(
        long,
        default_value = "host",
        env = "COSCHED_ON",
        value_name = "NAME|FILE"
    )]
    #[arg(value_parser = Offered(spec::machine_names), hide_possible_values = true)]
    pub(crate) on: String,

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
    pub(crate) policy: String,

    /// Set a parameter of the policy, as in quantum_s=0.1; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_value, hide_short_help = true)]
    pub(crate) params: Vec<(String, String)>,

    /// Machine profile with parameters for this machine (TOML with a table `params`)
    #[arg(
        long,
        value_name = "FILE",
        env = "COSCHED_PROFILE",
        hide_short_help = true
    )]
    pub(crate) profile: Option<PathBuf>,

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
    pub(crate) seed: u64,

    /// Use only these CPUs, as in 0-3,8
    ///
    /// `all`: those that the caller may use. Without this option, those of them that no other run of cosched uses, if
    /// there are any.
    #[arg(
        long,
        value_name = "LIST|all",
        env = "COSCHED_CPUS",
        hide_short_help = true
    )]
    pub(crate) cpus: Option<CpuChoice>,

    /// CPUs of each job
    ///
    /// N of its own, `all`, or `auto`: one of its own and those that nobody has. `cpus` of a job in a mix file comes first.
    #[arg(
        long,
        value_name = "N|auto|all",
        default_value = "auto",
        hide_short_help = true
    )]
    pub(crate) cpus_per_job: CpusPerJob,

    /// Count another event, as in mm=0x4844; repeatable
    #[arg(
        id = "event",
        long = "event",
        value_name = "NAME=RAW",
        hide_short_help = true
    )]
    pub(crate) events: Vec<String>,

    /// How jobs are frozen: by the cgroup freezer where it works, else by signals
    #[arg(long, value_enum, default_value_t = FreezeArg::Auto, env = "COSCHED_FREEZE", value_name = "HOW", hide_short_help = true)]
    pub(crate) freeze: FreezeArg,

    /// What lets jobs run and wait on this machine; `sched-ext` is a scheduler in the kernel
    ///
    /// `freezer` freezes and binds jobs. `sched-ext` loads a scheduler into the kernel, which carries out plans: nothing
    /// is frozen, and a CPU whose job sleeps goes to the next one at once. It needs Linux 6.13 with sched_ext, root, and a
    /// cosched that was built with it; `cosched doctor` tells.
    #[arg(long, value_enum, default_value_t = ActuatorArg::Freezer, value_name = "HOW", hide_short_help = true)]
    #[arg(env = "COSCHED_ACTUATOR")]
    pub(crate) actuator: ActuatorArg,

    /// With --actuator sched-ext, schedule all ordinary processes of the machine, not only the jobs
    #[arg(long, hide_short_help = true)]
    pub(crate) all: bool,

    /// How decisions are carried out; `plans` works on simulated machines, and is what --actuator sched-ext does
    #[arg(long, value_enum, default_value_t = ActuationArg::Decisions, value_name = "HOW", hide_short_help = true)]
    pub(crate) actuation: ActuationArg,
}

/// Limits on the run and its jobs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Jobs that are live at once; 0 for all
    ///
    /// A number, 0 for all, +N or -N for more or fewer than CPUs, or N% of the CPUs; the rest wait in a queue [default: number of CPUs for fifo, else four times that]
    #[arg(
        short,
        long,
        value_name = "N",
        env = "COSCHED_JOBS",
        allow_hyphen_values = true
    )]
    #[arg(short_alias = 'P', alias = "max-procs")]
    pub(crate) jobs: Option<JobLimit>,

    /// Which jobs begin first: those that take longest, as far as earlier runs know, or as given
    ///
    /// Jobs that are alike, or of which nothing is known, begin in the order in which they are given.
    #[arg(long, value_enum, default_value_t = OrderArg::Longest, value_name = "ORDER", hide_short_help = true)]
    pub(crate) order: OrderArg,

    /// Start no further job while less memory than this is available, as in 2G
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse_size, env = "COSCHED_MEM_KEEP", hide_short_help = true)]
    pub(crate) mem_keep: Option<u64>,

    /// Start no further job while the load average is above this: a number, or N% of the CPUs
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) load: Option<LoadLimit>,

    /// Time between the starts of two jobs
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    pub(crate) delay: Option<Nanos>,

    /// End a job that runs for longer, as in 90s
    ///
    /// Time in which it was paused does not count. As in 90s or 2h, or 200% for twice the median of the jobs that have
    /// ended.
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    pub(crate) timeout: Option<TimeLimit>,

    /// Retry a failed job, up to N attempts in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1)]
    #[arg(hide_short_help = true)]
    pub(crate) retries: u32,

    /// Time from SIGTERM to SIGKILL
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s", hide_short_help = true)]
    pub(crate) grace: Nanos,

    /// Pause no started job for much longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s", env = "COSCHED_MAX_PAUSE")]
    #[arg(hide_short_help = true)]
    pub(crate) max_pause: Nanos,

    /// When to give up early, as in now,fail=1
    ///
    /// never, or `now` or `soon` with fail=N, success=N, done=N or one of these with N%.
    #[arg(long, value_name = "RULE", default_value = "never")]
    pub(crate) halt: Halt,
}

/// What is printed and which files are written.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Folder for output and record
    ///
    /// Each job's output and error output get files of their own in it, beside the run's record and series [default:
    /// cosched-logs/TIME-PID]
    #[arg(
        long,
        value_name = "DIR",
        env = "COSCHED_LOGS",
        visible_alias = "results"
    )]
    #[arg(value_parser = OsStringValueParser::new().try_map(log_folder))]
    pub(crate) logs: Option<PathBuf>,

    /// Keep no log folder, as GNU parallel does
    ///
    /// Each job's output is shown when it ends, unless --output says otherwise. There is no record but that of --record.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_logs: bool,

    /// Keep the last N log folders in cosched-logs
    ///
    /// When the run has ended, those of the oldest runs are removed, as far as runs of cosched made what is in them.
    #[arg(
        long,
        value_name = "N",
        env = "COSCHED_KEEP_LOGS",
        hide_short_help = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_logs: Option<u32>,

    /// Show the jobs' output: group, tag or live
    ///
    /// Each job's output when it ends, or its lines as they come, with or without its name.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) output: Option<Show>,

    /// Show each line of output with the job's value before it
    #[arg(long, conflicts_with = "output", hide_short_help = true)]
    pub(crate) tag: bool,

    /// Show the jobs' output in the order of the jobs, each job's in one piece
    #[arg(short, long, hide_short_help = true)]
    pub(crate) keep_order: bool,

    /// Cut what a job writes to a file beyond this size, as in 100M; it is not shown either, and how much it was is said
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse_size, env = "COSCHED_LOG_LIMIT", hide_short_help = true)]
    pub(crate) log_limit: Option<u64>,

    /// What standard output is for: a summary for people, or the run record
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) format: Format,

    /// Write the run record (JSON) here as well, and the series beside it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) record: Option<PathBuf>,

    /// Serve metrics of the run here, as Prometheus reads them: a port (of 127.0.0.1), ADDRESS:PORT, or unix:PATH
    #[arg(long, value_name = "ADDR", hide_short_help = true)]
    pub(crate) metrics: Option<MetricsAddress>,

    /// Write every decision with its snapshot here, a JSON object a line, for `cosched decide`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) events: Option<PathBuf>,

    /// Keep a log of ended jobs, as GNU parallel does
    #[arg(long, value_name = "FILE")]
    pub(crate) joblog: Option<PathBuf>,

    /// Print no progress, no warnings and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Report each job's start, and more at the end
    ///
    /// Each job's start and end, and below the summary what is absent and why, and what cosched itself took.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// What to do with jobs of a killed run that still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrphansArg {
    /// Start nothing, and list them
    Refuse,
    /// Wait until they have ended; how is not known, so they run again
    Wait,
    /// Wait until they have ended, and count them as done; how they ended is not known
    Adopt,
    /// End them (SIGTERM, after --grace SIGKILL), and run them again
    Kill,
    /// Leave them alone, and run their commands a second time
    Ignore,
}

/// How jobs are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FreezeArg {
    /// The cgroup freezer where it works, else signals
    Auto,
    /// The cgroup freezer, or an error
    Cgroup,
    /// SIGSTOP and SIGCONT
    Signals,
}

/// In which order jobs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// The longest first, as far as earlier runs know how long they take
    Longest,
    /// As they are given
    Given,
}

impl From<OrderArg> for Order {
    fn from(arg: OrderArg) -> Order {
        match arg {
            OrderArg::Longest => Order::Longest,
            OrderArg::Given => Order::Given,
        }
    }
}

/// How decisions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActuationArg {
    /// One by one: a CPU whose job sleeps stands idle until the next decision
    Decisions,
    /// As plans: a CPU whose job sleeps or ends goes to the next job in the policy's order at once
    Plans,
}

/// What lets jobs run and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActuatorArg {
    /// Jobs are frozen and bound to CPUs
    Freezer,
    /// A scheduler in the kernel
    SchedExt,
}

impl PolicyArgs {
    /// How decisions are carried out.
    pub(crate) fn actuation(&self) -> Actuation {
        match (self.actuator, self.actuation) {
            (ActuatorArg::SchedExt, _) | (_, ActuationArg::Plans) => Actuation::Plans,
            (ActuatorArg::Freezer, ActuationArg::Decisions) => Actuation::Decisions,
        }
    }
}

/// How the jobs' output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Each job's output in one piece when it ends
    Group,
    /// Lines as they come, each with its job's name
    Tag,
    /// Lines as they come
    Live,
}

impl Show {
    /// The word for it on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Show::Group => "group",
            Show::Tag => "tag",
            Show::Live => "live",
        }
    }
}

/// What standard output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// One JSON object
    Json,
}

impl OutputArgs {
    /// How the jobs' output is shown; `None` if it is not.
    pub(crate) fn show(&self) -> Option<Show> {
        match self.output {
            None if self.tag => Some(Show::Tag),
            None if self.keep_order || self.no_logs => Some(Show::Group),
            how => how,
        }
    }
}

impl RunArgs {
    /// Whether the machine is simulated.
    pub(crate) fn is_simulated(&self) -> bool {
        self.policy.on != "host"
    }

    /// The file with what is known of commands; `None` if it is neither used nor kept. Simulated jobs run no command.
    pub(crate) fn history(&self) -> Option<PathBuf> {
        self.history.place().filter(|_| !self.is_simulated())
    }

    /// How the jobs' output is shown; `None` if it is not. Simulated jobs have none.
    pub(crate) fn show(&self) -> Option<Show> {
        self.output.show().filter(|_| !self.is_simulated())
    }

    /// Drops settings from the environment that an option overrides, or that mean nothing in a simulation. They are meant
    /// for other runs, so they are no error.
    pub(crate) fn forget_habits(&mut self, matches: &ArgMatches) {
        let habit = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        if self.output.no_logs && habit("logs") {
            self.output.logs = None;
        }
        if !self.is_simulated() {
            return;
        }
        if habit("freeze") {
            self.policy.freeze = FreezeArg::Auto;
        }
        if habit("actuator") {
            self.policy.actuator = ActuatorArg::Freezer;
        }
        if habit("mem_keep") {
            self.limits.mem_keep = None;
        }
        if habit("log_limit") {
            self.output.log_limit = None;
        }
        if habit("shell") {
            self.shell = None;
        }
        if habit("history") {
            self.history.history = None;
        }
    }
}

/// Reads the name of a log folder. GNU parallel's `--results` takes more, which would be lost without a word.
fn log_folder(name: OsString) -> Result<PathBuf, String> {
    let bytes = name.as_bytes();
    let is_replaced =
        (0..bytes.len()).any(|at| Replacement::at(&bytes[at..]).is_ok_and(|found| found.is_some()));
    if is_replaced {
        return Err(
            "there is one folder for all jobs, with a file NAME.out for each; leave {} out"
                .to_owned(),
        );
    }
    let path = PathBuf::from(name);
    let is_table = path
        .extension()
        .is_some_and(|end| ["csv", "json", "tsv"].iter().any(|table| end == *table));
    if is_table && !path.is_dir() {
        return Err(
            "it names a folder; a table of the jobs is made by --joblog FILE, a record by --record FILE".to_owned()
        );
    }
    Ok(path)
}

/// Reads a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}, as in 42", u64::MAX))
}

/// Reads `NAME=VALUE`.
pub(crate) fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, as in quantum_s=0.1".to_owned()),
    }
}
