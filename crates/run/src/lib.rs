//! A run: from jobs and options to a record and an exit code.
//!
//! [`run`] is its steps: it reads the jobs, looks at the machine, makes a plan and carries it out. All that can be checked is
//! checked before the first job starts. Jobs run alone first if the user asked for solo times, then together under the policy. At
//! the end it prints a summary and writes the record.
//!
//! The files, in the order of the steps:
//!
//! - `options`, with `limits`, `cpus`: the options of a run
//! - `source`: reads the jobs, with `input`, `shell`; `stream` takes those that come while the run goes on
//! - `platform`: the factory of the backend: this machine, nodes or a simulation
//! - `plan`: a run that is ready to start: `resume` with `killed` leaves out what is done, `policy` with `replay` and `bus_rate`
//!   chooses the policy, `prepare` makes the jobs ready, `memory` knows them from earlier runs
//! - `explain`: the plan as text, for `--dry-run`
//! - `execute`: carries the plan out; `solo`: solo times before; `context`: what both batches share
//! - `folder`, `temporary`, `named_files`, `files`, `runs`: the log folder and the files that a run writes
//! - `batch`: one run of the loop; `setting`: what its record says of the options
//! - `reporter`: tells all who watch: `screen` with `terminal` and `console`, `watch`, `progress_to`, `job_frames`, `frames`; `gauge`:
//!   the machine's load
//! - `answer`: summary and exit code
//! - `exit`, `stderr`, `signals`, `whole_file`, `sha256`: exit codes, messages, signals, safe writing, digests
//!
//! A run of real jobs also starts its own program with the word `console`. That process calls [`console`](fn@console).

mod answer;
mod batch;
mod bus_rate;
mod console;
mod context;
mod cpus;
mod execute;
pub mod exit;
mod explain;
mod files;
mod folder;
mod frames;
mod gauge;
pub mod input;
mod job_frames;
mod killed;
mod limits;
mod memory;
mod named_files;
mod options;
mod plan;
mod platform;
mod policy;
mod prepare;
mod progress_to;
mod replay;
mod reporter;
mod resume;
mod runs;
mod screen;
mod setting;
mod sha256;
mod shell;
mod signals;
mod solo;
mod source;
pub mod stderr;
mod stream;
mod temporary;
mod terminal;
mod watch;
pub mod whole_file;

use anyhow::Result;
pub use console::main as console;
pub use cpus::{CpuChoice, CpusPerJob};
pub use folder::stamp;
pub use killed::{ending_command, orphan_text};
pub use limits::{JobLimit, LoadLimit};
pub use options::{
    Actuator, AnswerFormat, Freeze, JobSource, LimitOptions, Logs, MachineOptions, NodeOptions,
    Orphans, OutputOptions, PolicyOptions, RunOptions, Show, SoloTimes, ThreadsEnv,
};
pub use platform::{Allotted, Nodes};
pub use policy::{once_each, policy_by_word, unmet};
pub use progress_to::ProgressTarget;
pub use screen::Screen;
pub use sha256::sha256;
pub use shell::of_caller as shell_of_caller;
pub use source::job_lines;
pub use terminal::{terminal_width, width_of};

use cosched_core::{Actuation, Capability, JobKind, Restart};
use cosched_foreign::Command;
use cosched_linux::root::Root;
use cosched_report::RunRecord;
use exit::{Exit, incapable, usage};
use plan::RunPlan;
use platform::{HostPlatform, NodesPlatform, Platform, SimPlatform, WorldPlatform};
use platform::{nodes, simulation};
use signals::Signals;
use source::RunJobs;

/// The end of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Why it ended.
    pub exit: Exit,
    /// Its record; `None` if no job was to run.
    pub record: Option<RunRecord>,
}

impl From<Exit> for RunOutcome {
    fn from(exit: Exit) -> RunOutcome {
        RunOutcome { exit, record: None }
    }
}

/// Runs a batch: real jobs on this machine, or simulated ones. A quiet simulation without a log folder writes nothing.
///
/// # Errors
/// The options or the jobs are wrong, or the machine lacks something that they need: nothing was started then. Or the run
/// failed. The error is a [`Failure`](exit::Failure) if it has an exit code of its own.
pub fn run(options: &RunOptions) -> Result<RunOutcome> {
    cosched_linux::settle_signals();
    if let Some(on) = &options.machine.on {
        simulation::check_options(options, on)?;
    }
    if options.output.frames {
        frames::check_options(options)?;
    }
    let Some(jobs) = source::read_jobs(options)? else {
        return no_values(options);
    };
    // Reading the jobs may take for ever. What follows makes files.
    let signals = Signals::hold(options)?;
    match (&options.machine.on, &options.nodes) {
        (Some(on), _) => simulate(options, on, jobs, &signals),
        (None, Some(nodes)) => run_over_nodes(options, nodes, jobs, &signals),
        (None, None) => {
            let platform = HostPlatform::look(&Root::default(), options)?;
            run_on(options, &platform, jobs, &signals)
        }
    }
}

/// Ends a run without values for its command.
fn no_values(options: &RunOptions) -> Result<RunOutcome> {
    if options.resume.is_some() && options.output.joblog.is_none() {
        return Err(usage(
            "--resume: there are no values; give the values of the run, as on standard input; nothing was started",
        ));
    }
    if !options.output.quiet {
        stderr::say("cosched: there are no values, so nothing to run");
    }
    Ok(Exit::Success.into())
}

/// Runs the jobs in the built-in simulation, or in a world in a process of its own.
fn simulate(
    options: &RunOptions,
    on: &str,
    jobs: RunJobs,
    signals: &Signals,
) -> Result<RunOutcome> {
    let taken = signals.clone();
    if let Some(command) = Command::of(on) {
        let platform = WorldPlatform::open(options, command, on, &jobs.jobs, taken)?;
        return run_on(options, &platform, jobs, signals);
    }
    let platform = SimPlatform::open(options, on, &jobs.jobs, taken)?;
    run_on(options, &platform, jobs, signals)
}

fn run_over_nodes(
    options: &RunOptions,
    nodes: &NodeOptions,
    jobs: RunJobs,
    signals: &Signals,
) -> Result<RunOutcome> {
    if jobs.restart != Restart::Never {
        return Err(usage("--nodes restarts no jobs; leave out `restart`"));
    }
    let platform = NodesPlatform::open(options, nodes)?;
    run_on(&nodes::own_options(options), &platform, jobs, signals)
}

/// Runs the jobs on a platform: makes a plan, and shows it or carries it out.
fn run_on<P: Platform>(
    options: &RunOptions,
    platform: &P,
    jobs: RunJobs,
    signals: &Signals,
) -> Result<RunOutcome> {
    check_platform(options, platform)?;
    let mut plan = RunPlan::new(options, platform, jobs)?;
    if options.dry_run {
        signals.look()?;
        signals.release();
        explain::explain(options, platform, &plan)?;
        return Ok(Exit::Success.into());
    }
    if plan.is_done() && tell_done(options, &mut plan) {
        return Ok(Exit::Success.into());
    }
    plan.measure_bus_rate(options, platform.view(), signals)?;
    platform.prepare()?;
    signals.look()?;
    execute::execute(options, platform, plan, signals)
}

/// Says that all jobs succeeded before, and returns whether the run ends with that. A record is of the whole batch, whoever ran it.
fn tell_done<P: Platform>(options: &RunOptions, plan: &mut RunPlan<P>) -> bool {
    let output = &options.output;
    let screen = Screen::new(output.quiet);
    let done = plan.batch.earlier.len();
    screen.say(&format!(
        "cosched: all {done} jobs succeeded before; nothing is left to run"
    ));
    if output.record.is_some() || output.format != AnswerFormat::Text {
        return false;
    }
    for warning in std::mem::take(&mut plan.warnings) {
        screen.warn(warning);
    }
    true
}

/// Checks that the platform can carry out what the options ask for, before any file is made.
fn check_platform<P: Platform>(options: &RunOptions, platform: &P) -> Result<()> {
    let view = platform.view();
    if options.machine.actuation == Actuation::Plans
        && let Some(why) = view.capabilities.why_missing(Capability::Plans)
    {
        return Err(incapable(format!(
            "--actuation plans: nothing here can carry out plans ({why}); nothing was started; use --actuator sched-ext or --on MACHINE"
        )));
    }
    if options.dry_run {
        return Ok(());
    }
    if let Some(refused) = &view.refused {
        // A wrong command line is reported first.
        plan::choose_policy(options, platform, JobKind::Any, false)?;
        return Err(refused.clone().into());
    }
    // Resuming writes beside the job log.
    named_files::NamedFiles::check(options)?;
    Ok(())
}
