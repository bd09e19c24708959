//! `cosched logs`: the output of a job of the queue.

use super::connect::{Patient, failure, strange};
use super::offer;
use crate::stderr::say;
use anyhow::{Context as _, Result};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use cosched_queue::{JobSelection, QueueAnswer, QueueRequest, QueuedJob};
use cosched_report::visible;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Print what a job of the queue wrote
///
/// Its output goes to standard output, its error output to standard error.
#[derive(Args)]
pub struct LogsArgs {
    /// Number of the job
    #[arg(value_name = "JOB", add = ArgValueCandidates::new(offer::queued))]
    id: u64,

    /// Print what it writes from now on as well, until it is over
    #[arg(short, long)]
    follow: bool,
}

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

pub fn run(args: LogsArgs) -> Result<ExitCode> {
    let mut service = Patient::connect()?;
    let job = status(&mut service, args.id)?;
    if let Some(why) = job.why_not_started() {
        say(format_args!("cosched: job {}: {}", job.id, visible(&why)));
    }
    let mut out = Log::new(job.out);
    let mut err = Log::new(job.err);
    let mut is_over = job.state.is_over() || !args.follow;
    loop {
        out.copy(&mut io::stdout().lock())?;
        err.copy(&mut io::stderr().lock())?;
        if is_over {
            return Ok(ExitCode::SUCCESS);
        }
        sleep(PAUSE);
        // What it wrote before it was over is copied after this.
        is_over = status(&mut service, args.id)?.state.is_over();
    }
}

/// Prints all that a job wrote that is over.
///
/// # Errors
/// A file can't be read, or nobody reads what is printed.
pub fn show(job: &QueuedJob) -> Result<()> {
    Log::new(job.out.clone()).copy(&mut io::stdout().lock())?;
    Log::new(job.err.clone()).copy(&mut io::stderr().lock())
}

fn status(service: &mut Patient, id: u64) -> Result<QueuedJob> {
    let ids = vec![id];
    match service
        .ask(&QueueRequest::Status(JobSelection { all: false, ids }))
        .map_err(failure)?
    {
        QueueAnswer::Status { mut jobs, .. } if jobs.len() == 1 => Ok(jobs.remove(0)),
        answer => Err(strange(&answer)),
    }
}

/// A file that a job writes.
struct Log {
    path: PathBuf,
    /// `None` until the job has started.
    file: Option<File>,
}

impl Log {
    fn new(path: PathBuf) -> Log {
        Log { path, file: None }
    }

    /// Copies what is new.
    fn copy(&mut self, to: &mut impl Write) -> Result<()> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                opened => Some(opened.with_context(|| self.path.display().to_string())?),
            };
        }
        if let Some(file) = &mut self.file {
            io::copy(file, to)?;
            to.flush()?;
        }
        Ok(())
    }
}
