//! A run: from jobs and options to a record and an exit code.
//!
//! [`run`] reads the jobs, inspects the machine, chooses the policy and checks everything that can be checked. Only then
//! it starts jobs: alone for their solo times if the user asked for those, then together under the policy. At the end it
//! prints a summary and writes the record.
//!
//! The files:
//!
//! - `exit`, `stderr`, `whole_file`, `sha256`: exit codes, messages, safe writing, digests
//! - `input`: jobs, and the files and names that users give
//! - `limits`, `cpus`, `options`: the options of a run
//! - `terminal`, `console`, `screen`: progress, messages, and the jobs' output; `watch`: the files for `cosched status`
//! - `platform`: what a machine must do for a run; `host` (with `kernel` and `allotted`), `nodes` (with `launch`), and by
//!   `simulation` `simulated` and `world` do it
//! - `policy`: the choice of the policy; `replay`: recorded decisions as one; `calibrated`: measures what it must know; `setting`: what the record says of the options; `shell`: the shell for lines
//! - `folder`, `runs`: log folders, and the list of runs beside a job log; `killed`, `resume`: earlier runs of a job log
//! - `keys`, `memory`: the history of commands; `named`, `files`: the files that a run writes
//! - `prepare`: jobs that are ready to be started; `stream`: jobs that come while the run goes on; `plan`: a run that is ready to start; `explain`: the plan as text, for `--dry-run`
//! - `answer`: summary and exit code; `session`: what all its steps share; `facts`, `gauge`, `reporter`, `job_frames`, `progress_to`, `frames`: what watchers see, the machine's load, and its progress
//! - `batch`: one run of the loop; `solo`: solo runs; `execute`: the whole plan
//!
//! A run of real jobs also starts its own program with the word `console`. That process calls [`console`](fn@console).

mod allotted;
mod answer;
mod batch;
mod calibrated;
mod console;
mod cpus;
mod execute;
pub mod exit;
mod explain;
mod files;
mod folder;
mod frames;
mod gauge;
mod host;
pub mod input;
mod job_frames;
mod kernel;
mod keys;
mod killed;
mod launch;
mod limits;
mod memory;
mod named;
mod nodes;
mod options;
mod plan;
mod platform;
mod policy;
mod prepare;
mod program;
mod progress_to;
mod replay;
mod reporter;
mod resume;
mod runs;
mod screen;
mod session;
mod setting;
mod sha256;
mod shell;
mod signals;
mod simulated;
mod simulation;
mod solo;
mod stamp;
pub mod stderr;
mod stream;
mod temporary;
mod terminal;
mod watch;
pub mod whole_file;
mod world;

pub use allotted::Allotted;
use anyhow::Result;
pub use console::main as console;
pub use cpus::{CpuChoice, CpusPerJob};
pub use killed::{ending_command, orphan_text};
pub use launch::Nodes;
pub use limits::{JobLimit, LoadLimit};
pub use options::{
    Actuator, Format, Freeze, LimitOptions, Logs, MachineOptions, NodeOptions, Orphans,
    OutputOptions, PolicyOptions, RunOptions, Show, SoloSource, Source, ThreadsEnv,
};
pub use policy::{once_each, policy_by_word, unmet};
pub use progress_to::ProgressTarget;
pub use screen::Screen;
pub use sha256::sha256;
pub use shell::of_caller as shell_of_caller;
pub use stamp::stamp;
pub use terminal::{terminal_width, width_of};

use cosched_core::{Actuation, Capability, JobKind, Restart};
use cosched_foreign::Command;
use cosched_linux::root::Root;
use cosched_report::{Record, RunInput};
use exit::{Exit, incapable, usage};
use input::template::{self, Parsed};
use input::{Arriving, Job, JobInput, has_input, is_input, list, mix, told};
use signals::Signals;
use stream::{Defaults, Open};

/// The end of a run.
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
/// The options or the jobs are wrong, or the machine lacks something that they need: nothing was started then. Or the run
/// failed. The error is a [`Failure`](exit::Failure) if it has an exit code of its own.
pub fn run(options: &RunOptions) -> Result<Outcome> {
    cosched_linux::settle_signals();
    match &options.machine.on {
        Some(on) if Command::of(on).is_some() => world::check_options(options, on)?,
        Some(on) => simulated::check_options(options, on)?,
        None => {}
    }
    if options.output.frames {
        frames::check_options(options)?;
    }
    let Some(collected) = collect(options, may_stream(options))? else {
        if options.resume.is_some() && options.output.joblog.is_none() {
            return Err(usage(
                "--resume: there are no values; give the values of the run, as on standard input; nothing was started",
            ));
        }
        if !options.output.quiet {
            stderr::say("cosched: there are no values, so nothing to run");
        }
        return Ok(Exit::Success.into());
    };
    // Reading the jobs may take for ever. What follows makes files.
    let signals = Signals::hold(options)?;
    if let Some(on) = &options.machine.on {
        let (jobs, taken) = (&collected.jobs, signals.clone());
        if let Some(command) = Command::of(on) {
            let platform = world::WorldPlatform::open(options, command, on, jobs, taken)?;
            return run_on(options, &platform, collected, &signals);
        }
        let platform = simulated::SimPlatform::open(options, on, jobs, taken)?;
        return run_on(options, &platform, collected, &signals);
    }
    if let Some(nodes) = &options.nodes {
        if collected.restart != Restart::Never {
            return Err(usage("--nodes restarts no jobs; leave out `restart`"));
        }
        let platform = nodes::NodesPlatform::open(options, nodes)?;
        return run_on(&nodes::own_options(options), &platform, collected, &signals);
    }
    let publish = !options.dry_run;
    let platform = host::HostPlatform::look(&Root::default(), &options.machine, publish)?;
    run_on(options, &platform, collected, &signals)
}

/// The jobs of a run, as they were read.
struct Collected {
    jobs: Vec<Job>,
    /// Whether jobs that have ended are started again.
    restart: Restart,
    /// Where they come from.
    input: RunInput,
    /// Standard input held the jobs or their values, or a job reads it.
    reads_input: bool,
    /// Jobs that come while the run goes on. There are no others then.
    open: Option<Open>,
}

/// Runs the jobs on a platform.
fn run_on<P: platform::Platform>(
    options: &RunOptions,
    platform: &P,
    collected: Collected,
    signals: &Signals,
) -> Result<Outcome> {
    let Collected {
        jobs,
        restart,
        input,
        reads_input,
        open,
    } = collected;
    check_actuation(options, platform)?;
    if !options.dry_run {
        if let Some(refused) = &platform.view().refused {
            // A wrong command line is reported first.
            plan::policy(options, platform, JobKind::Any, false)?;
            return Err(refused.clone().into());
        }
        // Resuming writes beside the job log.
        named::AllNamed::check(options)?;
    }
    let resumed = resume::resume(options, jobs)?;
    let mut plan = plan::Plan::new(options, platform, resumed, input, open)?;
    plan.batch.config.restart = restart;
    plan.reads_input = reads_input;
    if options.dry_run {
        signals.look()?;
        signals.release();
        explain::explain(options, platform, &plan)?;
        return Ok(Exit::Success.into());
    }
    if plan.jobs.is_empty() && plan.batch.open.is_none() {
        return nothing_left(options, platform, plan, signals);
    }
    if !platform.view().is_simulated() && plan.batch.choice.lacks_bus_rate() {
        let params = calibrated::measured_bus_rate(&Screen::new(options.output.quiet), signals)?;
        let has_nodes = !platform.view().machine.nodes.is_empty();
        plan.batch.choice = policy::choose(
            options,
            &plan.batch.capabilities,
            &params,
            JobKind::Any,
            has_nodes,
        )?;
    }
    platform.prepare()?;
    signals.look()?;
    execute::execute(options, platform, plan, signals)
}

/// All jobs succeeded before. A record is of the whole batch, whoever ran it.
fn nothing_left<P: platform::Platform>(
    options: &RunOptions,
    platform: &P,
    plan: plan::Plan<P>,
    signals: &Signals,
) -> Result<Outcome> {
    let output = &options.output;
    let screen = Screen::new(output.quiet);
    let done = plan.batch.earlier.len();
    screen.say(&format!(
        "cosched: all {done} jobs succeeded before; nothing is left to run"
    ));
    if output.record.is_some() || output.format != Format::Text {
        platform.prepare()?;
        signals.look()?;
        return execute::execute(options, platform, plan, signals);
    }
    for warning in plan.warnings {
        screen.warn(warning);
    }
    Ok(Exit::Success.into())
}

/// The jobs of a run as lines for a queue, in their order. docs/schema/job-line.json describes them.
///
/// # Errors
/// The jobs are wrong, or a queue can't run them as a run would.
pub fn job_lines(options: &RunOptions) -> Result<Vec<serde_json::Map<String, serde_json::Value>>> {
    let Some(collected) = collect(options, false)? else {
        return Ok(Vec::new());
    };
    if collected.restart != Restart::Never {
        return Err(usage("a queue restarts no jobs; leave out `restart`"));
    }
    collected.jobs.iter().map(input::job_line).collect()
}

/// Reads the jobs; `None` if there is no value for a command. With `streams` they may come later.
fn collect(options: &RunOptions, streams: bool) -> Result<Option<Collected>> {
    let is_simulated = options.is_simulated();
    let mut restart = Restart::Never;
    let mut reads_input = false;
    let mut inputs = Vec::new();
    let mut arriving = None;
    let from = match &options.jobs {
        Source::Mix(file) => {
            let text = input::read_mix(file)
                .map_err(|error| usage(format!("{error}; as in `cosched run jobs.toml`")))?;
            let mix = mix::parse(&text, &told(file))?;
            restart = mix.restart;
            inputs = mix.jobs;
            reads_input = is_input(file);
            setting::input("mix", Some((file, text.as_bytes())), is_simulated)
        }
        Source::List(file) => {
            let example = |error| usage(format!("{error}; as in `cosched run -f commands.txt`"));
            reads_input = is_input(file);
            if streams {
                // A coordinator gives jobs only to nodes that it knows.
                let waits = !options.output.frames;
                let most = match options.nodes {
                    Some(_) => nodes::MOST_AT_ONCE,
                    None => u64::MAX,
                };
                arriving = Arriving::commands(file, waits, most).map_err(example)?;
            }
            if arriving.is_some() {
                setting::open_input("list", file)
            } else {
                let bytes = input::read_bytes(file).map_err(example)?;
                inputs = list::parse(&bytes, &told(file))?;
                setting::input("list", Some((file, &bytes)), is_simulated)
            }
        }
        Source::Command(words, reading) => {
            if !words.is_empty() {
                match template::parse(words, reading, streams)? {
                    Parsed::Listed { jobs, .. } if jobs.is_empty() => return Ok(None),
                    Parsed::Listed { jobs, from_input } => {
                        inputs = jobs;
                        reads_input = from_input;
                    }
                    Parsed::Open { lines, jobs } => {
                        arriving = Some(Arriving::values(lines, jobs));
                        reads_input = true;
                    }
                }
            }
            setting::input("command", None, is_simulated)
        }
    };
    let mut defaults = Defaults {
        shells: shell::Shells::new(options.shell.as_deref())?,
        cwd: options.cwd.as_deref().map(input::absolute),
        nice: options.nice,
    };
    for input in &mut inputs {
        defaults.apply(input)?;
    }
    reads_input |= inputs.iter().any(JobInput::reads_own_input);
    if !is_simulated && has_input() {
        check_own_input(options, restart, &inputs)?;
    }
    let jobs = match &arriving {
        Some(_) => Vec::new(),
        None => input::expand(inputs)?,
    };
    Ok(Some(Collected {
        jobs,
        restart,
        input: from,
        reads_input,
        open: arriving.map(|arriving| Open { arriving, defaults }),
    }))
}

/// Whether jobs may come while the run goes on. Otherwise all are read before.
fn may_stream(options: &RunOptions) -> bool {
    !options.is_simulated()
        && !options.dry_run
        && !resume::has_begun(options)
        && options.solo == SoloSource::Nothing
        && options.machine.actuation() == Actuation::Decisions
}

/// Refuses to let jobs read the run's standard input twice: the second time nothing is left of it.
fn check_own_input(options: &RunOptions, restart: Restart, inputs: &[JobInput]) -> Result<()> {
    let readers = inputs.iter().filter(|input| input.reads_own_input());
    let jobs: u64 = readers.map(|input| u64::from(input.copies)).sum();
    let why = match jobs {
        0 => return Ok(()),
        1 if options.solo == SoloSource::Measured => "--solo measure runs a job twice",
        1 if options.limits.attempts > 1 => "--retries runs a job again if it fails",
        1 if restart != Restart::Never => "restart runs a job again",
        1 => return Ok(()),
        jobs => &format!("{jobs} jobs would read it"),
    };
    Err(usage(format!(
        "standard input can be read once, and {why}; give the job a file, or add `< /dev/null` if it reads none"
    )))
}

/// Checks that something can carry out plans where `--actuation` asks for them.
fn check_actuation<P: platform::Platform>(options: &RunOptions, platform: &P) -> Result<()> {
    let view = platform.view();
    if options.machine.actuation == Actuation::Plans
        && let Some(why) = view.capabilities.why_missing(Capability::Plans)
    {
        return Err(incapable(format!(
            "--actuation plans: nothing here can carry out plans ({why}); nothing was started; use --actuator sched-ext or --on MACHINE"
        )));
    }
    Ok(())
}
