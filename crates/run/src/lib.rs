//! A run: from jobs and options to a record and an exit code.
//!
//! The steps, in this order: collect the jobs, look at the machine, choose the policy, check everything that can be
//! checked before anything is started, measure solo times if asked, run, report.
//!
//! Each file uses only files that stand before it:
//!
//! - `exit`, `stderr`, `whole_file`, `sha256`: exit codes, messages, files; `input`: jobs, and what users name;
//! - `limits`: limits in GNU parallel's forms; `cpus`: which CPUs, and how many a job; `options`: what a run is to do;
//! - `terminal`, `console` and `screen`: what is shown, the jobs' output too; `watch`: the files that show a live run;
//! - `platform`: what a machine must do for a run; `host` (with `kernel`) and `simulated` (with `interruptible`): the two
//!   platforms;
//! - `policy`: the choice of the policy; `setting`: how the run was started; `shell`: who reads lines;
//! - `folder` and `runs`: log folders, and what stands beside a job log; `killed` and `resume`: the runs before this one;
//! - `keys` and `memory`: the history of commands; `named`, `files` and `passing`: what is written and removed;
//! - `plan`: the plan of a run; `explain`: the plan in words;
//! - `facts`: the facts for those who watch; `gauge`: what a run took of the machine; `reporter`: news of a running batch;
//! - `batch`: one run of the loop; `answer`: summary, record and exit code;
//! - `solo`: each job alone; `execute`: the whole plan.
//!
//! A run of real jobs starts its own program again, with the word `console`. It then calls [`console`](fn@console).

mod answer;
mod batch;
mod console;
mod cpus;
mod execute;
pub mod exit;
mod explain;
mod facts;
mod files;
mod folder;
mod gauge;
mod host;
pub mod input;
mod interruptible;
mod kernel;
mod keys;
mod killed;
mod limits;
mod memory;
mod named;
mod options;
mod passing;
mod plan;
mod platform;
mod policy;
mod reporter;
mod resume;
mod runs;
mod screen;
mod session;
mod setting;
mod sha256;
mod shell;
mod simulated;
mod solo;
pub mod stderr;
mod terminal;
mod watch;
pub mod whole_file;

pub use console::main as console;
pub use cpus::{CpuChoice, CpusPerJob};
pub use killed::orphan_text;
pub use limits::{JobLimit, LoadLimit};
pub use options::{
    Actuator, Freeze, LimitOptions, Logs, MachineOptions, Orphans, OutputOptions, PolicyOptions,
    RunOptions, Show, SoloSource, Source,
};
pub use policy::{once_each, unmet};
pub use screen::Screen;
pub use sha256::sha256;
pub use terminal::width_of;

use cosched_core::{Actuation, Capability, Restart};
use cosched_linux::root::Root;
use cosched_report::{Record, RunInput, visible_lines};
use exit::{Exit, incapable, usage};
use input::Job;
use std::path::Path;
use std::rc::Rc;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub exit: Exit,
    /// Its record; `None` if no job was to run.
    pub record: Option<Record>,
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Outcome {
        Outcome { exit, record: None }
    }
}

/// Runs a batch: real jobs on this machine, or simulated ones. A quiet simulation without a log folder writes nothing.
///
/// # Errors
/// An option is wrong, or something is lacking, and nothing was started; or the run could not go on. The error is a
/// [`Failure`](exit::Failure) where it has an exit code of its own.
pub fn run(options: &RunOptions) -> anyhow::Result<Outcome> {
    cosched_linux::settle_signals();
    if let Some(on) = &options.machine.on {
        simulated::check_options(options, on)?;
    }
    let Some((jobs, restart, input)) = collect(options)? else {
        if !options.output.quiet {
            stderr::say("cosched: there is no value, so there is nothing to run");
        }
        return Ok(Exit::Success.into());
    };
    if let Some(on) = &options.machine.on {
        let platform = simulated::SimPlatform::open(options, on, &jobs)?;
        return go(options, &platform, jobs, restart, input);
    }
    let publish = !options.dry_run;
    let platform = host::HostPlatform::look(&Root::default(), &options.machine, publish)?;
    go(options, &platform, jobs, restart, input)
}

/// Runs the jobs on a platform.
fn go<P: platform::Platform>(
    options: &RunOptions,
    platform: &P,
    jobs: Vec<Job>,
    restart: Restart,
    input: RunInput,
) -> anyhow::Result<Outcome> {
    check_actuation(options, platform)?;
    if let Some(refused) = platform
        .view()
        .refused
        .as_ref()
        .filter(|_| !options.dry_run)
    {
        // What is wrong with the command line is told first. Nothing that earlier runs have left is touched.
        plan::policy(options, platform, false)?;
        return Err(refused.clone().into());
    }
    if !options.dry_run {
        // Resuming writes beside the job log.
        named::AllNamed::check(options)?;
    }
    let resumed = resume::resume(options, jobs)?;
    let mut plan = plan::Plan::new(options, platform, resumed, input)?;
    plan.config.restart = restart;
    if options.dry_run {
        explain::explain(options, platform, &plan)?;
        return Ok(Exit::Success.into());
    }
    if plan.jobs.is_empty() {
        return nothing_left(options, platform, plan);
    }
    platform.prepare()?;
    execute::execute(options, platform, plan)
}

/// All jobs succeeded before. A record is of the whole batch, whoever ran it.
fn nothing_left<P: platform::Platform>(
    options: &RunOptions,
    platform: &P,
    plan: plan::Plan<P>,
) -> anyhow::Result<Outcome> {
    let output = &options.output;
    if !output.quiet {
        let done = plan.earlier.len();
        stderr::say(format_args!(
            "cosched: all {done} jobs succeeded before; nothing is left to run"
        ));
    }
    if output.record.is_some() || output.json {
        platform.prepare()?;
        return execute::execute(options, platform, plan);
    }
    if !output.quiet {
        for warning in &plan.warnings {
            stderr::say(format_args!("cosched: {}", visible_lines(&warning.text())));
        }
    }
    Ok(Exit::Success.into())
}

/// The jobs, whether jobs that have ended are started again, and where they come from; `None` if there is no value for a
/// command.
fn collect(options: &RunOptions) -> anyhow::Result<Option<(Vec<Job>, Restart, RunInput)>> {
    let is_simulated = options.is_simulated();
    let mut restart = Restart::Never;
    let (mut inputs, from) = match &options.jobs {
        Source::Mix(file) => {
            let (mix, from) = read_mix(file, is_simulated)?;
            restart = mix.restart;
            (mix.jobs, from)
        }
        Source::List(file) => read_list(file, is_simulated)?,
        Source::Command(words, reading) => {
            let inputs = match words.is_empty() {
                true => Vec::new(),
                false => input::template::parse(words, reading)?,
            };
            if inputs.is_empty() && !words.is_empty() {
                return Ok(None);
            }
            (inputs, setting::input("command", None, is_simulated))
        }
    };
    if let Some(name) = &options.shell {
        let shell = Rc::new(shell::find(name)?);
        for input in &mut inputs {
            if let Some(input::Command::Shell(line)) = &mut input.command {
                line.shell = Some(shell.clone());
            }
        }
    }
    Ok(Some((input::expand(inputs)?, restart, from)))
}

fn read_mix(file: &Path, is_simulated: bool) -> anyhow::Result<(input::mix::Mix, RunInput)> {
    let text = input::read_mix(file).map_err(|error| {
        usage(format!(
            "{error}; give a mix file that is there, as in `cosched run jobs.toml` (`cosched man mix-file` explains it)"
        ))
    })?;
    let from = setting::input("mix", Some((file, text.as_bytes())), is_simulated);
    Ok((input::mix::parse(&text, &input::told(file))?, from))
}

fn read_list(file: &Path, is_simulated: bool) -> anyhow::Result<(Vec<input::JobInput>, RunInput)> {
    let bytes = input::read_bytes(file).map_err(|error| {
        usage(format!(
            "{error}; give a file with a command on each line, as in `cosched run -f commands.txt`"
        ))
    })?;
    let from = setting::input("list", Some((file, &bytes)), is_simulated);
    Ok((input::list::parse(&bytes, &input::told(file))?, from))
}

/// Checks that something can carry out plans where `--actuation` asks for them.
fn check_actuation<P: platform::Platform>(
    options: &RunOptions,
    platform: &P,
) -> anyhow::Result<()> {
    let view = platform.view();
    match view.capabilities.why_missing(Capability::Plans) {
        Some(why) if options.machine.actuation == Actuation::Plans => {
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
