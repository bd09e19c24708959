//! `cosched slurm`: a run as a batch job of Slurm.
//!
//! [`words`]: the options of the run; [`script`]: the batch script; [`follow`]: waits for the end of the job;
//! [`rescue`]: requeues a job whose script is gone.

mod follow;
mod rescue;
mod script;
mod words;

pub use rescue::requeue_without_script;

use super::run::RunArgs;
use crate::exit::{Exit, Failure, OrUsage as _, usage};
use crate::input::{absolute, quote, told};
use crate::print::print;
use crate::stderr::say;
use anyhow::{Context as _, Result};
use clap::{ArgMatches, Args};
use cosched_run::whole_file::create_private_folders;
use cosched_run::{JobSource, RunOptions, job_lines, stamp};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Submit a run to Slurm as a batch job, and print the job's number
///
/// The jobs and all other options are those of `cosched run`. One log folder has the list of commands, the batch script and
/// all files of the run. A requeued job resumes the run; `sbatch FOLDER/job.sh` does so after a time limit.
#[derive(Args)]
#[command(mut_args(words::leave_letters))]
#[command(
    override_usage = "cosched slurm [OPTIONS] [OPTIONS of run] <-f FILE | CMD... ::: VALUE...>"
)]
#[command(after_help = "", after_long_help = "")]
pub struct SlurmArgs {
    /// Nodes of the job
    #[arg(short = 'N', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    node_count: u32,

    /// CPUs on each node [default: all]
    #[arg(short, long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    cpus_per_task: Option<u32>,

    /// Time limit, as in 2h or 2:00:00; a number counts minutes [default: the partition's]
    #[arg(short, long, value_name = "TIME", value_parser = script::time)]
    time: Option<String>,

    /// Partition
    #[arg(short = 'p', long, value_name = "NAME", value_parser = script::one_line)]
    partition: Option<String>,

    /// Account
    #[arg(short = 'A', long, value_name = "NAME", value_parser = script::one_line)]
    account: Option<String>,

    /// Another option of sbatch, as in --sbatch --mem=8G; repeatable
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, value_parser = script::one_line)]
    sbatch: Vec<String>,

    /// Wait for the end of the job, and exit as the run does
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    run: RunArgs,

    /// The options of the run that were given, as words.
    #[arg(skip)]
    given: Vec<OsString>,
}

impl SlurmArgs {
    /// Keeps what the words of the command line say.
    pub fn keep(&mut self, matches: &ArgMatches, is_bare: bool) {
        self.run.forget_habits(matches);
        self.run.is_bare = is_bare;
        self.given = words::given(matches);
    }
}

/// A batch job that is to be submitted.
struct Batch {
    /// The log folder, absolute.
    folder: PathBuf,
    joblog: PathBuf,
    /// Lines of a list of commands, if there is one.
    list: Option<Vec<u8>>,
    /// The words that name the jobs.
    jobs: Vec<OsString>,
}

/// Submits the run.
///
/// # Errors
/// An option has no meaning here, there is no Slurm, or it refuses the job.
pub fn run(mut args: SlurmArgs) -> Result<ExitCode> {
    words::check(&args.given)?;
    let batch = Batch::of(&args)?;
    let script = script::text(&args, &batch)?;
    if args.run.dry_run {
        std::io::stdout().write_all(&script)?;
        return Ok(Exit::Success.into());
    }
    check_slurm()?;
    let quiet = args.run.output.quiet;
    args.run.list = batch.list.as_ref().map(|_| batch.commands());
    batch.write(&script)?;
    let ready = args.run.options().and_then(|options| total(&options));
    let submitted = ready.and_then(|total| Ok((total, submit(&batch)?)));
    let (total, id) = submitted.inspect_err(|_| batch.remove())?;
    print(format!("{id}\n"))?;
    if !quiet {
        say(format_args!("cosched: job {id}, {}", told(&batch.folder)));
    }
    if !args.wait {
        return Ok(Exit::Success.into());
    }
    let exit = follow::until_end(&id, &batch, total, quiet)?;
    Ok(exit.into())
}

impl Batch {
    fn of(args: &SlurmArgs) -> Result<Batch> {
        let run = &args.run;
        let folder = match &run.output.logs {
            Some(folder) => absolute(folder),
            None => absolute(&Path::new("cosched-logs").join(format!("slurm-{}", stamp()))),
        };
        let joblog = match &run.output.joblog {
            Some(file) => absolute(file),
            None => folder.join("joblog"),
        };
        let list = run.list.as_deref().map(read).transpose()?;
        let jobs = match &list {
            Some(_) => vec!["-f".into(), folder.join("commands").into()],
            None => words::jobs(run)?,
        };
        Ok(Batch {
            folder,
            joblog,
            list,
            jobs,
        })
    }

    fn commands(&self) -> PathBuf {
        self.folder.join("commands")
    }

    fn script(&self) -> PathBuf {
        self.folder.join("job.sh")
    }

    fn record(&self) -> PathBuf {
        self.folder.join("run.json")
    }

    /// The file of what the batch job writes.
    fn output(&self) -> PathBuf {
        self.folder.join("slurm.out")
    }

    /// Writes the script, and the list of commands beside it: the user may change the list while the job waits.
    fn write(&self, script: &[u8]) -> Result<()> {
        let folder = told(&self.folder);
        let made = create_private_folders(&self.folder);
        made.with_context(|| format!("making {folder}"))?;
        let own = self.script();
        if own.exists() {
            let own = quote(own.as_os_str().as_bytes());
            return Err(usage(format!(
                "--logs {folder}: another job has this folder; `sbatch {own}` resumes its run"
            )));
        }
        write_new(&own, script).or_usage_in(told(&own))?;
        if let Some(list) = &self.list {
            let written = write_new(&self.commands(), list);
            written.or_usage_in(told(self.commands()))?;
        }
        Ok(())
    }

    /// Removes the files of a job that was not submitted.
    fn remove(&self) {
        let _ = std::fs::remove_file(self.script());
        if self.list.is_some() {
            let _ = std::fs::remove_file(self.commands());
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}

fn write_new(path: &Path, content: &[u8]) -> std::io::Result<()> {
    File::create_new(path)?.write_all(content)
}

/// Reads a list of commands; `-` is standard input.
fn read(list: &Path) -> Result<Vec<u8>> {
    if list != Path::new("-") {
        return std::fs::read(list).or_usage_in(told(list));
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The number of jobs in a list of commands.
///
/// # Errors
/// A line is wrong, or there is none.
fn total(options: &RunOptions) -> Result<Option<usize>> {
    match &options.jobs {
        JobSource::Command(words, _) if words.is_empty() => Err(usage(
            "there are no jobs; as in `cosched slurm -f commands.txt`",
        )),
        JobSource::List(_) => Ok(Some(job_lines(options)?.len())),
        _ => Ok(None),
    }
}

/// Checks that Slurm is here.
fn check_slurm() -> Result<()> {
    let asked = Command::new("sbatch").arg("--version").output();
    asked.map(drop).map_err(|error| {
        let message = format!(
            "can't start sbatch ({error}): go to a login node of the cluster or load its module for Slurm; `cosched run --nodes ssh:a,b` needs no Slurm; nothing was submitted"
        );
        let exit = Exit::Incapable;
        Failure { exit, message }.into()
    })
}

/// Submits the script, and returns the job's number. What sbatch says goes to standard error.
fn submit(batch: &Batch) -> Result<String> {
    let mut sbatch = Command::new("sbatch");
    sbatch.arg("--parsable").arg(batch.script());
    let output = sbatch.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(usage("sbatch refused the job; nothing was submitted"));
    }
    // A cluster's name can follow.
    let told = String::from_utf8_lossy(&output.stdout);
    let id = told.trim().split(';').next().unwrap_or_default();
    Ok(id.to_owned())
}
