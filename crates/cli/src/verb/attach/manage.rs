//! `--manage`: a policy binds the attached programs to CPUs, and all of it is undone at the end.

use super::session::AttachSession;
use super::{AttachArgs, Output};
use crate::exit::usage;
use crate::offer;
use crate::stderr::say;
use crate::verb::run::name_value;
use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use clap_complete::engine::ArgValueCandidates;
use cosched_core::{
    Backend as _, Capabilities, Fact, Importance, Nanos, Params, PolicyEntry, Recorder, RunConfig,
    Warning, run_all, spread_has_choice,
};
use cosched_foreign::PolicyPatience;
use cosched_linux::attached::{Attached, ManageConfig, Newcomers, Restored, Sampled};
use cosched_linux::mend::{Reach, mend};
use cosched_linux::root::Root;
use cosched_linux::{Interrupts, settle_signals};
use cosched_report::{RunWarning, visible};
use cosched_run::input::spec;
use cosched_run::{once_each, policy_by_word, unmet};
use std::process::ExitCode;

/// The policy that only allocates.
const SPREAD: &str = "spread";
/// Maximum number of managed programs.
const MOST_TASKS: usize = 4_096;

/// How programs are managed.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("acts").args(["manage"]))]
pub struct ManageArgs {
    /// Bind the programs to CPUs; all is undone at the end
    #[arg(long, conflicts_with = "once")]
    pub manage: bool,

    /// The policy that decides
    #[arg(long, value_name = "NAME", default_value = SPREAD, requires = "acts")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    #[arg(add = ArgValueCandidates::new(offer::policies))]
    policy: String,

    /// Set a parameter of the policy, as in gain_percent=20; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_value, requires = "acts")]
    params: Vec<(String, String)>,

    /// Let the policy pause programs, by the freezer of their own cgroups
    #[arg(long, requires = "acts")]
    pause: bool,
}

/// Manages the programs until they have ended, or a signal comes.
pub fn run(args: AttachArgs, session: AttachSession, mut output: Output) -> Result<ExitCode> {
    let (root, how) = (Root::default(), &args.how);
    let (entry, params) = how.policy()?;
    settle_signals();
    let interrupts = Interrupts::hold_all()?;
    tell_restored(&mend(&root, &Reach::Near).attached);
    let AttachSession {
        sampler,
        counters,
        mut rows,
    } = session;
    let config = ManageConfig {
        interval: args.interval,
        pause: how.pause,
        stays: args.rules.is_some(),
    };
    let watch = |sampled: &Sampled, notes: &[String]| {
        tell(notes);
        let now = rows.of(sampled);
        output.publish(&now);
        // The first look only begins an interval.
        sampled.observed.length == Nanos::ZERO || output.print(&args, &now).is_ok()
    };
    let mut backend = Attached::new(
        &root,
        sampler,
        &counters,
        interrupts,
        config,
        Box::new(watch),
    )?;
    check(entry, &params, &backend.capabilities())?;
    if entry.name == SPREAD && !spread_has_choice(&backend.machine(), &params) {
        say(
            "this machine has one last-level cache, and cores of one thread, so all programs may use all CPUs; \
             --param regions=core binds each to cores",
        );
    }
    let run = RunConfig {
        quantum: Nanos::from_s(params.number("quantum_s")),
        jobs: MOST_TASKS,
        deadline: args.lasts,
        results_max: 0,
        ..RunConfig::default()
    };
    let mut policy = (entry.build)(&params);
    let result = run_all(
        &mut backend,
        &mut *policy,
        &mut FirstFault::default(),
        &mut Newcomers::default(),
        &run,
    );
    tell(&backend.undo());
    let faults = result?.policy_faults;
    if faults > 0 {
        say(format_args!(
            "round-robin made {faults} decisions in place of policy {}",
            entry.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the user of the first decision that could not be carried out.
#[derive(Default)]
struct FirstFault {
    was_told: bool,
}

impl Recorder for FirstFault {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Warned(warning @ Warning::PolicyFault { .. }) = fact
            && !std::mem::replace(&mut self.was_told, true)
        {
            say(RunWarning::of_loop(warning, |task| task.to_string()));
        }
    }
}

impl ManageArgs {
    fn policy(&self) -> Result<(&'static PolicyEntry, Params)> {
        let name = &self.policy;
        if name == spec::AUTO {
            return Err(usage(format!(
                "--policy: {name} is for batches; name a policy, as in --policy {SPREAD}"
            )));
        }
        let found = policy_by_word(name, PolicyPatience::Limited);
        let entry = found.map_err(|problem| usage(format!("--policy: {problem}")))?;
        if !entry.time_shares {
            return Err(usage(format!(
                "--policy: under {} jobs wait until others end, and these run already; use --policy {SPREAD}",
                entry.name
            )));
        }
        once_each(&self.params)?;
        let params = Params::resolve(entry.name, entry.params, &self.params)
            .map_err(|error| usage(format!("--param: {error}")))?;
        Ok((entry, params))
    }
}

/// Refuses a policy that needs what is missing, and tells what is lost without what it wants.
fn check(entry: &PolicyEntry, params: &Params, capabilities: &Capabilities) -> Result<()> {
    for shortfall in entry.shortfalls(params, capabilities) {
        match shortfall.importance {
            Importance::Required => return Err(unmet(entry, &shortfall, "cosched attach")),
            Importance::Wanted(without) => say(format_args!(
                "no {}: {}; {without}",
                shortfall.capability.text(),
                shortfall.why
            )),
        }
    }
    Ok(())
}

fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(visible(note)));
}

/// What a killed session had left.
fn tell_restored(restored: &Restored) {
    if !restored.is_empty() {
        say(format_args!(
            "a session was killed: {} threads have their CPUs again, {} cgroups are thawed",
            restored.threads.len(),
            restored.thawed.len()
        ));
    }
}
