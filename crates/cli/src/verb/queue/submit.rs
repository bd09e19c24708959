//! `cosched submit`: queues a job.

use super::connect::{Patient, ask, strange};
use super::wait::wait_for;
use crate::exit::usage;
use crate::input::{is_shell_line, told};
use crate::offer;
use crate::print::print;
use crate::size::parse_size;
use crate::stderr::say;
use crate::verb::run::weight;
use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cosched_linux::InheritedAttributes;
use cosched_queue::{JobLine, JobSubmission, QueueAnswer, QueueRequest};
use serde_json::Value;
use std::process::ExitCode;

/// Queue a job, and print its number
///
/// It runs in this folder, with this environment, umask, niceness and limits. `cosched serve` is the service that runs it.
#[derive(Args)]
pub struct SubmitArgs {
    /// Name of the job [default: its program]
    #[arg(long)]
    name: Option<String>,

    /// CPUs that it needs at once
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Memory that it needs, as in 2G; it starts when so much is free, or alone
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    mem: Option<u64>,

    /// Weight under policies that know weights
    #[arg(long, value_name = "W", value_parser = weight)]
    weight: Option<f64>,

    /// Wait for its end, and exit as it does
    #[arg(long)]
    wait: bool,

    /// Queue the job only if this word was not given before; without CMD, print the numbers of the jobs with this word
    #[arg(long)]
    token: Option<String>,

    /// The command; a single word with blanks is a line for the shell
    #[arg(
        required_unless_present = "token",
        trailing_var_arg = true,
        value_name = "CMD",
        add = ArgValueCompleter::new(offer::program_or_file)
    )]
    command: Vec<String>,
}

/// Variables that cosched sets for each job.
const OWN_VARIABLES: [&str; 3] = ["COSCHED_RUN", "COSCHED_JOB", "PARALLEL_JOBSLOT"];

pub fn run(args: SubmitArgs) -> Result<ExitCode> {
    let (waits, token) = (args.wait, args.token.clone());
    let ids = match token {
        Some(token) if args.command.is_empty() => queued(&QueueRequest::Submitted(token))?,
        token => {
            let mut submission = JobSubmission::new(common()?, vec![line(args)])?;
            submission.token = token.or(submission.token);
            Patient::connect()?.submit(submission)?
        }
    };
    print_ids(&ids)?;
    if waits {
        return wait_for(ids);
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the service for the numbers of jobs.
///
/// # Errors
/// The service refuses.
pub fn queued(request: &QueueRequest) -> Result<Vec<u64>> {
    match ask(request)? {
        QueueAnswer::Ids { ids } => Ok(ids),
        answer => Err(strange(&answer)),
    }
}

/// Prints the numbers of jobs.
///
/// # Errors
/// Nobody reads what is printed.
pub fn print_ids(ids: &[u64]) -> Result<()> {
    for id in ids {
        print(format!("{id}\n"))?;
    }
    Ok(())
}

/// The job as docs/schema/job-line.json describes it.
fn line(args: SubmitArgs) -> JobLine {
    let mut line = JobLine::new();
    match &args.command[..] {
        [script] if is_shell_line(script.as_bytes()) => {
            line.insert("command".to_owned(), script.clone().into());
        }
        words => drop(line.insert("argv".to_owned(), words.into())),
    }
    let optional: [(&str, Option<Value>); 4] = [
        ("name", args.name.map(Value::from)),
        ("cpus", args.cpus.map(Value::from)),
        ("mem", args.mem.map(Value::from)),
        ("weight", args.weight.map(Value::from)),
    ];
    for (key, value) in optional {
        line.extend(value.map(|value| (key.to_owned(), value)));
    }
    line
}

/// What all jobs inherit from this process: the folder, the variables, and umask, niceness and limits.
///
/// # Errors
/// JSON can't hold the folder's name.
pub fn common() -> Result<JobLine> {
    let mut common = JobLine::new();
    common.insert("cwd".to_owned(), folder()?.into());
    common.insert("env".to_owned(), environment().into());
    let inherited = serde_json::to_value(InheritedAttributes::own())?;
    common.insert("inherited".to_owned(), inherited);
    Ok(common)
}

/// The name of this folder.
fn folder() -> Result<String> {
    let folder = std::env::current_dir()?;
    folder.into_os_string().into_string().map_err(|folder| {
        let folder = told(&folder);
        usage(format!(
            "the name of this folder is no UTF-8: {folder}; submit from another one"
        ))
    })
}

/// The environment of this process. JSON can only hold UTF-8.
fn environment() -> JobLine {
    let mut environment = JobLine::new();
    for (name, value) in std::env::vars_os() {
        match (name.to_str(), value.to_str()) {
            (Some(name), _) if OWN_VARIABLES.contains(&name) => {}
            (Some(name), Some(value)) => {
                environment.insert(name.to_owned(), value.into());
            }
            _ => say(format_args!(
                "cosched: the job does not get the variable {}: it is no UTF-8",
                told(&name)
            )),
        }
    }
    environment
}
