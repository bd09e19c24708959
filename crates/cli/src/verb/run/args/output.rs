//! What is printed and which files are written.

use super::super::parse::words;
use crate::exit::usage;
use crate::input::{absolute, told};
use anyhow::Result;
use clap::{Args, ValueEnum};
use cosched_linux::ProgressPattern;
use cosched_run::{AnswerFormat, Logs, OutputOptions, ProgressTarget, Show};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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
    #[arg(long)]
    pub no_logs: bool,

    /// Show the jobs' output: group, tag, live or none
    ///
    /// Each job's output when it ends, or its lines as they come, with or without its name; or nothing [default: group; live
    /// for a single job; none with --format json or csv]
    #[arg(long, value_parser = words::<Show>(), value_name = "HOW")]
    pub output: Option<Show>,

    /// The same as --output tag
    #[arg(long, conflicts_with = "output")]
    pub tag: bool,

    /// Show the jobs' output in the order of the jobs
    #[arg(short, long)]
    pub keep_order: bool,

    /// Print a summary: text, json or csv
    ///
    /// A text, the run record (JSON), or a table of the jobs (CSV).
    #[arg(
        long,
        value_parser = words::<AnswerFormat>(),
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub format: AnswerFormat,

    /// Write the run record (JSON) here as well, and the series beside it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub record: Option<PathBuf>,

    /// Write metrics of the run here once a second, in the text format of Prometheus
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub metrics: Option<PathBuf>,

    /// Write a JSON line for each start and end of a job, and for the run once a second: a descriptor, FILE or unix:PATH
    #[arg(long, value_name = "TARGET", hide_short_help = true)]
    pub progress_to: Option<ProgressTarget>,

    /// How jobs print their progress: a regular expression with a group for the per cent done, or two, as in '(\d+)/(\d+)'
    ///
    /// The last match in a job's output counts. Without it, only the file that a job reads shows its progress.
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    pub progress_pattern: Option<ProgressPattern>,

    /// Log ended jobs in this file, as GNU parallel does
    #[arg(long, value_name = "FILE")]
    pub joblog: Option<PathBuf>,

    /// Write frames to standard output, for the coordinator of `cosched worker`
    #[arg(long, hide = true)]
    pub frames: bool,

    /// Print no progress, no warnings and no summary
    #[arg(short, long)]
    pub quiet: bool,

    /// Report each job's start, and more at the end
    ///
    /// Also report each job's end, the figures that are missing and why, and cosched's own CPU time.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// What standard output is for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Text,
    /// One JSON object
    Json,
}

impl OutputArgs {
    /// Takes the log folder of the run to resume.
    pub fn go_on_in(&mut self, run: PathBuf) -> Result<()> {
        if let Some(other) = &self.logs
            && absolute(other) != absolute(&run)
        {
            let run = told(&run);
            return Err(usage(format!(
                "--resume={run} continues in that folder, and --logs names another; leave --logs out"
            )));
        }
        let own = run.join("joblog");
        if let Some(joblog) = &self.joblog
            && own.exists()
        {
            let (joblog, own) = (told(joblog), told(&own));
            return Err(usage(format!(
                "--joblog {joblog}: the run to resume has its job log in {own}; leave --joblog out"
            )));
        }
        self.logs = Some(run);
        Ok(())
    }

    pub fn options(self, events: Option<PathBuf>) -> Result<OutputOptions> {
        let logs = match self.logs {
            _ if self.frames => Logs::Nowhere,
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
            format: self.format,
            record: self.record,
            events,
            joblog: self.joblog,
            metrics: self.metrics,
            progress_to: self.progress_to,
            progress_pattern: self.progress_pattern,
            frames: self.frames,
            quiet: self.quiet || self.frames,
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
