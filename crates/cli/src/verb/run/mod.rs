//! `cosched run`: a batch of real programs under a policy.
//!
//! The steps, in this order: collect the jobs, look at the machine, choose the policy, check everything that can be
//! checked before anything is started, measure solo times if asked, run, report.

mod args;
mod execute;
mod machine;
mod plan;
mod screen;
mod show;

pub(crate) use args::{Format, RunArgs, name_value};
use machine::{MachineView, look};

use crate::exit::{Exit, Failure, usage};
use crate::input::{self, Job};
use args::Requirement;
use cosched_core::{Absence, Feed, Restart};
use cosched_linux::root::Root;
use cosched_report::read_joblog;
use std::process::ExitCode;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let (jobs, restart) = collect(&args)?;
    let view = look(&Root::default(), &args.policy)?;
    require(&args, &view)?;
    let (jobs, skipped) = resume(&args, jobs)?;
    let mut plan = plan::Plan::new(&args, &view, jobs, skipped)?;
    plan.config.restart = restart;
    if args.dry_run {
        plan::explain(&args, &view, &plan)?;
        return Ok(Exit::Success.into());
    }
    if plan.jobs.is_empty() {
        if !args.output.quiet {
            eprintln!("cosched: all {skipped} jobs succeeded before; nothing is left to run");
        }
        return Ok(Exit::Success.into());
    }
    execute::execute(&args, &view, plan).map(ExitCode::from)
}

/// The jobs, from the one place where they are given, and what becomes of them when they have ended.
fn collect(args: &RunArgs) -> anyhow::Result<(Vec<Job>, Restart)> {
    let given = [args.mix.is_some(), args.list.is_some(), !args.command.is_empty()];
    if given.iter().filter(|&&given| given).count() > 1 {
        return Err(usage("give a mix file, or -f FILE, or a command, and only one of them"));
    }
    let mut restart = Restart::Never;
    let inputs = if let Some(mix) = &args.mix {
        let text = input::read_text(mix).map_err(|error| {
            usage(format!("{error}; give a mix file that is there, as in `cosched run examples/quickstart.toml`"))
        })?;
        let mix = input::mix::parse(&text, &mix.display().to_string())?;
        restart = mix.restart;
        mix.jobs
    } else if let Some(list) = &args.list {
        let text = input::read_text(list).map_err(|error| {
            usage(format!("{error}; give a file with a command on each line, as in `cosched run -f commands.txt`"))
        })?;
        input::list::parse(&text, &list.display().to_string())
    } else if args.command.is_empty() {
        Vec::new()
    } else {
        input::template::parse(&args.command)?
    };
    Ok((input::expand(inputs)?, restart))
}

/// Holds the machine against `--require`.
fn require(args: &RunArgs, view: &MachineView) -> anyhow::Result<()> {
    let missing = |feed| view.feeds.why_missing(feed).map(|why| (why == Absence::NoPermission, why.to_string()));
    for requirement in &args.policy.require {
        let (what, problem) = match requirement {
            Requirement::Counters => ("counters", missing(Feed::Ipc).or_else(|| missing(Feed::MmReads))),
            Requirement::Energy => ("energy", missing(Feed::Energy)),
            Requirement::Freezer => {
                let problem = view.freezer_problem.as_ref();
                ("freezer", problem.map(|problem| (problem.is_permission(), problem.to_string())))
            }
        };
        if let Some((is_permission, why)) = problem {
            let exit = if is_permission { Exit::Permission } else { Exit::Incapable };
            let message =
                format!("--require {what}: {why}; nothing was started (`cosched doctor` tells what would mend it)");
            return Err(Failure { exit, message }.into());
        }
    }
    Ok(())
}

/// Leaves out what succeeded before, by its command; each success stands for one job.
fn resume(args: &RunArgs, jobs: Vec<Job>) -> anyhow::Result<(Vec<(u64, Job)>, usize)> {
    let numbered = (1u64..).zip(jobs);
    let log = args.output.joblog.as_ref().filter(|log| args.resume && log.exists());
    let Some(path) = log else { return Ok((numbered.collect(), 0)) };
    let file = std::fs::File::open(path).map_err(|error| usage(format!("{}: {error}", path.display())))?;
    let log = read_joblog(std::io::BufReader::new(file), &path.display().to_string());
    let mut done = log.map_err(|error| usage(error.to_string()))?.succeeded();
    let is_done = |job: &Job| job.input.command.as_ref().is_some_and(|command| done.take(&command.line()));
    let mut is_done = is_done;
    let (skipped, left): (Vec<_>, Vec<_>) = numbered.partition(|(_, job)| is_done(job));
    Ok((left, skipped.len()))
}
