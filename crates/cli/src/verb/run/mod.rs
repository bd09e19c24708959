//! `cosched run`: runs a batch under a policy, with real programs on this machine or simulated ones on a simulated
//! machine.
//!
//! The steps, in this order: collect the jobs, look at the machine, choose the policy, check everything that can be
//! checked before anything is started, measure solo times if asked, run, report.
//!
//! Each file uses only files that stand before it:
//!
//! - [`limits`]: limits in GNU parallel's forms; [`metrics`]: where metrics are served; [`mod@cpus`]: which CPUs, and how many a job; [`args`]: the command line;
//!   [`terminal`], [`mod@console`] and [`screen`]: what is shown, the jobs' output too; [`mod@window`]: for those who look at the
//!   run, and [`watched`]: what they are told;
//! - [`platform`]: what a machine must do for a run; [`host`] (with [`kernel`]) and [`simulated`] (with [`interruptible`]): the two
//!   platforms;
//! - [`policy`]: the choice of the policy; [`setting`]: how the run was started; [`shell`]: who reads lines; [`folder`] and
//!   [`runs`]: log folders, and what stands beside a job log; [`killed`] and [`resume`]: the runs before this one;
//!   [`keys`] and [`memory`]: what is known of jobs from them, and what is kept for those to come; [`named`], [`files`] and [`old_logs`]: what is written and removed; [`plan`]:
//!   what is going to be done; [`explain`]: the plan in words;
//! - [`gauge`]: what a run took of the machine; [`reporter`]: news of a running batch; [`batch`]: one run of the loop; [`answer`]: summary, record and exit code;
//! - [`solo`]: what each job does alone; [`execute`]: the whole plan.

mod answer;
mod args;
mod batch;
mod console;
mod cpus;
mod execute;
mod explain;
mod files;
mod folder;
mod gauge;
mod host;
mod interruptible;
mod kernel;
mod keys;
mod killed;
mod limits;
mod memory;
mod metrics;
mod named;
mod old_logs;
mod plan;
mod platform;
mod policy;
mod reporter;
mod resume;
mod runs;
mod screen;
mod session;
mod setting;
mod shell;
mod simulated;
mod solo;
mod terminal;
mod watched;
mod window;

pub(crate) use args::{Format, RunArgs, name_value, seed};
pub(crate) use console::{ConsoleArgs, main as console};
pub(crate) use killed::folders_of_batch;
pub(crate) use limits::{duration, moment};
pub(crate) use policy::{once_each, unmet};
pub(crate) use screen::Screen;
pub(crate) use terminal::width_of;
pub(crate) use window::{Request, WINDOW_SCHEMA, WindowArgs, main as window};

use crate::exit::{Exit, incapable, usage};
use crate::input::{self, Job};
use crate::stderr;
use args::{ActuationArg, Show};
use cosched_core::{Capability, Restart};
use cosched_linux::root::Root;
use cosched_report::RunInput;
use cosched_report::visible_lines;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::rc::Rc;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    cosched_linux::settle_signals();
    if args.is_simulated() {
        simulated::check_options(&args)?;
    }
    check_options(&args)?;
    let (jobs, restart, input) = collect(&args)?;
    if jobs.is_empty() {
        if !args.output.quiet {
            stderr::say("cosched: there is no value, so there is nothing to run");
        }
        return Ok(Exit::Success.into());
    }
    if args.is_simulated() {
        let platform = simulated::SimPlatform::open(&args, &jobs)?;
        return go(&args, &platform, jobs, restart, input);
    }
    let platform = host::HostPlatform::look(&Root::default(), &args.policy, !args.dry_run)?;
    go(&args, &platform, jobs, restart, input)
}

/// Runs the jobs on a platform.
fn go<P: platform::Platform>(
    args: &RunArgs,
    platform: &P,
    jobs: Vec<Job>,
    restart: Restart,
    input: RunInput,
) -> anyhow::Result<ExitCode> {
    check_actuation(args, platform)?;
    if let Some(refused) = platform.view().refused.as_ref().filter(|_| !args.dry_run) {
        // What is wrong with the command line is told first. Nothing that earlier runs have left is touched.
        plan::policy(args, platform, false)?;
        return Err(refused.clone().into());
    }
    if !args.dry_run {
        // Resuming writes beside the job log.
        named::AllNamed::check(args)?;
    }
    let resumed = resume::resume(args, jobs)?;
    let mut plan = plan::Plan::new(args, platform, resumed, input)?;
    plan.config.restart = restart;
    if args.dry_run {
        explain::explain(args, platform, &plan)?;
        return Ok(Exit::Success.into());
    }
    let (done, adopted) = (
        plan.earlier.len(),
        plan.earlier.iter().filter(|job| job.adopted).count(),
    );
    if plan.jobs.is_empty() && !plan.newly_adopted {
        if !args.output.quiet {
            let but = if adopted > 0 {
                format!(", but for {adopted} that were adopted")
            } else {
                String::new()
            };
            stderr::say(format_args!(
                "cosched: all {done} jobs succeeded before{but}; nothing is left to run"
            ));
        }
        // A record is of the whole batch, whoever ran it.
        let wants_record = args.output.record.is_some() || args.output.format == Format::Json;
        if wants_record {
            platform.prepare()?;
            return execute::execute(args, platform, plan).map(ExitCode::from);
        }
        if !args.output.quiet {
            for warning in &plan.warnings {
                stderr::say(format_args!("cosched: {}", visible_lines(&warning.text())));
            }
        }
        return Ok(if adopted > 0 {
            Exit::Failure
        } else {
            Exit::Success
        }
        .into());
    }
    // That jobs were adopted must get into a record, even if nothing is left to run.
    platform.prepare()?;
    execute::execute(args, platform, plan).map(ExitCode::from)
}

/// The jobs, from the only place where they are given, whether jobs that have ended are started again, and that place.
fn collect(args: &RunArgs) -> anyhow::Result<(Vec<Job>, Restart, RunInput)> {
    let given = [
        args.mix.is_some(),
        args.list.is_some(),
        !args.command.is_empty(),
    ];
    if given.iter().filter(|&&given| given).count() > 1 {
        return Err(usage(
            "give a mix file, or -f FILE, or a command, and only one of them",
        ));
    }
    let mut restart = Restart::Never;
    let mut from = setting::input("command", None, args.is_simulated());
    let mut inputs = if let Some(mix) = &args.mix {
        let text = input::read_mix(mix).map_err(|error| {
            usage(format!("{error}; give a mix file that is there, as in `cosched run jobs.toml` (`cosched man mix-file` explains it)"))
        })?;
        from = setting::input("mix", Some((mix, text.as_bytes())), args.is_simulated());
        let mix = input::mix::parse(&text, &input::told(mix.as_os_str()))?;
        restart = mix.restart;
        mix.jobs
    } else if let Some(list) = &args.list {
        let bytes = input::read_bytes(list).map_err(|error| {
            usage(format!("{error}; give a file with a command on each line, as in `cosched run -f commands.txt`"))
        })?;
        from = setting::input("list", Some((list, &bytes)), args.is_simulated());
        input::list::parse(&bytes, &input::told(list.as_os_str()))?
    } else if args.command.is_empty() {
        Vec::new()
    } else {
        let inputs = input::template::parse(&args.command, &args.values.reading())?;
        if inputs.is_empty() {
            return Ok((Vec::new(), restart, from));
        }
        inputs
    };
    if let Some(name) = &args.shell {
        let shell = Rc::new(shell::find(name)?);
        for input in &mut inputs {
            if let Some(input::Command::Shell(line)) = &mut input.command {
                line.shell = Some(shell.clone());
            }
        }
    }
    Ok((input::expand(inputs)?, restart, from))
}

/// Refuses options that contradict each other, or that nothing would heed.
fn check_options(args: &RunArgs) -> anyhow::Result<()> {
    let has_command = !args.command.is_empty();
    let is_list = args.mix.is_some() || args.list.is_some();
    if args.values.reading().wants_values() && !has_command {
        let what = if is_list {
            "a list of jobs takes no values"
        } else {
            "there is no command for the values"
        };
        return Err(usage(format!(
            "-a, -0, --colsep, -n and -r are for the values of a command, and {what}; as in `cosched run -a names.txt gzip {{}}`"
        )));
    }
    if args.output.no_logs && args.output.logs.is_some() {
        return Err(usage(
            "--no-logs keeps no log folder, and --logs names one; leave one of them out",
        ));
    }
    if let Some(name) = args
        .output
        .joblog
        .as_deref()
        .and_then(|file| file.as_os_str().as_bytes().strip_prefix(b"+"))
    {
        let name = input::told(OsStr::from_bytes(name));
        return Err(usage(format!(
            "--joblog +{name}: GNU parallel appends to {name} then; here --joblog {name} --resume continues a job log, and leaves \
             out what succeeded; --joblog ./+{name} is a file of that name"
        )));
    }
    if args.output.keep_order && !args.output.tag && args.output.show() != Some(Show::Group) {
        return Err(usage(
            "--keep-order shows each job's output in one piece; use it with --output group, or without --output",
        ));
    }
    Ok(())
}

/// Checks that something can carry out plans where `--actuation` asks for them.
fn check_actuation<P: platform::Platform>(args: &RunArgs, platform: &P) -> anyhow::Result<()> {
    let view = platform.view();
    match view.capabilities.why_missing(Capability::Plans) {
        Some(why) if args.policy.actuation == ActuationArg::Plans => {
            let hint = if view.is_simulated() {
                "leave it out"
            } else {
                "use --actuator sched-ext, simulate the jobs (--on MACHINE), or leave it out"
            };
            Err(incapable(format!(
                "--actuation plans: nothing here can carry out plans ({why}); nothing was started; {hint}"
            )))
        }
        _ => Ok(()),
    }
}
