//! `cosched conform`: does a policy or a world do what every one of them must?

use crate::exit::usage;
use crate::print::print;
use crate::stderr::say;
use anyhow::Result;
use clap::Args;
use cosched_conformance::{
    Case, ForeignFixture, Played, ScenarioVerdict, WorldJobs, of_policy, on_fixture, play,
};
use cosched_foreign::{Command, PolicyPatience};
use cosched_report::{visible, visible_lines};
use cosched_run::policy_by_word;
use std::path::PathBuf;
use std::process::ExitCode;

/// Play scenarios that every policy, or every world, must pass
///
/// A policy decides for simulated jobs that come, end, fail and need several CPUs, on all built-in machines. A world runs the jobs
/// that `--jobs` describes, and each of its answers is checked.
#[derive(Args)]
pub struct ConformArgs {
    /// Policy: a name, or `cmd:COMMAND`
    #[arg(short, long, value_name = "P", required_unless_present = "on")]
    policy: Option<String>,

    /// World: `cmd:COMMAND`
    #[arg(
        long,
        value_name = "cmd:COMMAND",
        conflicts_with = "policy",
        requires = "jobs"
    )]
    on: Option<String>,

    /// File that says what the world is given for each kind of job
    #[arg(long, value_name = "FILE", requires = "on")]
    jobs: Option<PathBuf>,

    /// Parts of the names of scenarios; default: all
    scenarios: Vec<String>,
}

pub fn run(args: &ConformArgs) -> Result<ExitCode> {
    let mut cases = cases(args)?;
    cases.retain(|case| is_wanted(&case.name, &args.scenarios));
    if cases.is_empty() {
        return Err(usage("no scenario has such a name"));
    }
    let played = play(&cases, |played| {
        // A reader that has gone hears the end in the exit code.
        let _ = print(line(played));
        !hangs(&played.verdict)
    });
    let count =
        |is: fn(&ScenarioVerdict) -> bool| played.iter().filter(|one| is(&one.verdict)).count();
    let failed = count(|verdict| matches!(verdict, ScenarioVerdict::Failed(_)));
    let skipped = count(|verdict| matches!(verdict, ScenarioVerdict::Skipped(_)));
    let passed = played.len() - failed - skipped;
    for one in &played {
        if matches!(one.verdict, ScenarioVerdict::Failed(_)) {
            say(format_args!("FAILED {}", visible(&one.name)));
        }
    }
    let left = match cases.len() - played.len() {
        0 => String::new(),
        left => format!("; {left} were not played, since one did not answer"),
    };
    say(format_args!(
        "{passed} passed, {failed} failed, {skipped} skipped{left}"
    ));
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn cases(args: &ConformArgs) -> Result<Vec<Case>> {
    if let Some(word) = &args.policy {
        let found = policy_by_word(word, PolicyPatience::Simulated);
        let entry = found.map_err(|problem| usage(format!("--policy: {problem}")))?;
        return Ok(of_policy(entry));
    }
    let word = args.on.as_deref().unwrap_or_default();
    let command = Command::of(word).ok_or_else(|| {
        usage(format!(
            "--on {}: a world is a command, as in --on \"{}python3 world.py\"",
            visible(word),
            Command::MARK
        ))
    })?;
    let jobs = match &args.jobs {
        Some(file) => WorldJobs::read(file).map_err(|error| usage(format!("--jobs {error}")))?,
        None => WorldJobs::default(),
    };
    let world = ForeignFixture::new(command, jobs);
    Ok(on_fixture("world", move || Ok(world.clone())))
}

/// Whether a process did not answer. It would not answer the others either, and each would wait for a minute.
fn hangs(verdict: &ScenarioVerdict) -> bool {
    matches!(verdict, ScenarioVerdict::Failed(said) if said.contains("has not answered within"))
}

fn is_wanted(name: &str, parts: &[String]) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

/// A scenario and what became of it.
fn line(played: &Played) -> String {
    let name = visible(&played.name);
    let verdict = match &played.verdict {
        ScenarioVerdict::Passed => "ok".to_owned(),
        ScenarioVerdict::Skipped(why) => format!("skipped, because {}", visible(why)),
        ScenarioVerdict::Failed(said) => format!("FAILED\n{}", visible_lines(said)),
    };
    format!("{name} ... {verdict}\n")
}
