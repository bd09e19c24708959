//! The command lines of the runs of a comparison.

use crate::exit::{OrUsage as _, usage};
use crate::verb::run::RunArgs;
use anyhow::Result;
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Args as _, Command, FromArgMatches as _};
use cosched_experiments::comparison::{
    CandidateRun, ComparedMix, ComparisonDesign, ComparisonFolder, ComparisonMeans,
};
use cosched_report::visible;
use cosched_run::RunOptions;
use std::ffi::OsString;
use std::path::Path;

/// Options of `cosched run` that a comparison sets itself, or that mean nothing in one.
const NOT_HERE: [(&str, &str); 16] = [
    ("policy", "--policy"),
    ("params", "--param"),
    ("on", "--on"),
    ("seed", "--seed"),
    ("solo", "--solo"),
    ("logs", "--logs"),
    ("no_logs", "--no-logs"),
    ("history", "--history"),
    ("joblog", "--joblog"),
    ("resume", "--resume"),
    ("output", "--output"),
    ("tag", "--tag"),
    ("keep_order", "--keep-order"),
    ("record", "--record"),
    ("events", "--events"),
    ("dry_run", "--dry-run"),
];

/// Checks the options behind `--`.
///
/// # Errors
/// They are no options of `cosched run`, or one of them is not for comparisons.
pub fn check(options: &[String]) -> Result<()> {
    // The runs check what variables say.
    let run = RunArgs::augment_args(Command::new("cosched run"))
        .disable_help_flag(true)
        .mut_args(|arg| arg.env(Resettable::Reset));
    let mut words = vec!["cosched run".into()];
    add(&mut words, options);
    let given = run.try_get_matches_from(words);
    let given = given.map_err(|error| first_words(&error.to_string()));
    let given = given.or_usage_in("options behind `--`")?;
    for (id, name) in NOT_HERE {
        if given.value_source(id) == Some(ValueSource::CommandLine) {
            return Err(usage(format!(
                "{name} behind `--`: leave it out, or give it before `--`"
            )));
        }
    }
    Ok(())
}

/// What is wrong, without how to call `cosched run`.
fn first_words(error: &str) -> String {
    let text = error.split("\n\nUsage:").next().unwrap_or(error);
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.retain(|line| !line.is_empty() && !line.starts_with("For more information"));
    let text = lines.join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// The words of `cosched run` for a run of a comparison.
pub fn words(
    design: &ComparisonDesign,
    store: &ComparisonFolder,
    trial: CandidateRun,
) -> Vec<OsString> {
    let logs = store.run(trial);
    let seed = design.seed_of(trial.block).to_string();
    match &design.candidates[trial.candidate].means {
        ComparisonMeans::Policy { policy, params } => {
            let mix = &design.mixes[trial.mix];
            let mut words = start(mix, &logs);
            add(&mut words, &["--seed", &seed]);
            add(&mut words, &["--on", &design.on]);
            add(&mut words, &["--policy", policy]);
            for (name, value) in params {
                add(&mut words, &["--param", &format!("{name}={value}")]);
            }
            add(&mut words, &design.options);
            words
        }
        // One job under the kernel's scheduler, so that it is measured, suspended and ended as other runs are.
        ComparisonMeans::Command(_) => {
            let mut words = start_with(vec![store.command(trial.candidate).into()], &logs);
            add(&mut words, &["--seed", &seed]);
            add(&mut words, &["--on", "host"]);
            add(&mut words, &["--policy", "linux"]);
            add(&mut words, &["--cpus-per-job", "all"]);
            words
        }
    }
}

/// The first words of the runs of a batch.
pub fn start(mix: &ComparedMix, logs: &Path) -> Vec<OsString> {
    let file = mix.file.clone().unwrap_or_default().into();
    let jobs = if mix.is_list {
        vec!["-f".into(), file]
    } else {
        vec![file]
    };
    start_with(jobs, logs)
}

/// The first words of all runs; `jobs` says where their jobs are.
fn start_with(jobs: Vec<OsString>, logs: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["run".into()];
    words.extend(jobs);
    add(&mut words, &["--quiet", "--output", "none"]);
    add(&mut words, &["--history", "off", "--logs"]);
    words.push(logs.into());
    words
}

pub fn add(words: &mut Vec<OsString>, more: &[impl AsRef<str>]) {
    for word in more {
        words.push(word.as_ref().into());
    }
}

/// The options of a run with these words.
///
/// # Errors
/// The words, or variables that stand for options, are wrong.
pub fn run_options(words: Vec<OsString>) -> Result<RunOptions> {
    let args = parse(words).map_err(|error| usage(first_words(&error.to_string())))?;
    args.options()
}

fn parse(words: Vec<OsString>) -> Result<RunArgs, clap::Error> {
    let run = RunArgs::augment_args(Command::new("run"));
    let given = run.try_get_matches_from(words)?;
    let mut args = RunArgs::from_arg_matches(&given)?;
    args.forget_habits(&given);
    Ok(args)
}

/// The name of a run for the user.
pub fn name(design: &ComparisonDesign, trial: CandidateRun) -> String {
    let candidate = visible(&design.candidates[trial.candidate].name);
    let mix = &design.mixes[trial.mix];
    if mix.file.is_none() {
        return candidate;
    }
    format!("{candidate} with {}", visible(&mix.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        check(&words).unwrap_err().to_string()
    }

    #[test]
    fn options_that_a_comparison_sets_are_refused_in_any_form() {
        for words in [&["-p", "fifo"][..], &["-pfifo"], &["--policy=fifo"]] {
            assert!(refusal(words).starts_with("--policy behind `--`: "));
        }
        assert!(refusal(&["--results", "x"]).starts_with("--logs behind `--`: "));
        let passed = ["-j8", "--profile=p.toml", "--cpus", "0"].map(str::to_owned);
        assert!(check(&passed).is_ok());
    }

    #[test]
    fn the_table_names_options_of_run() {
        let run = RunArgs::augment_args(Command::new("cosched run"));
        for (id, name) in NOT_HERE {
            let arg = run.get_arguments().find(|arg| arg.get_id() == id).unwrap();
            assert_eq!(name, format!("--{}", arg.get_long().unwrap()));
        }
    }

    #[test]
    fn unknown_options_are_told_without_how_to_call_run() {
        let text = refusal(&["--cpuss", "0"]);
        assert!(
            text.starts_with("options behind `--`: unexpected argument '--cpuss' found; tip: "),
            "{text}"
        );
        assert!(!text.contains("Usage") && !text.contains('\n'), "{text}");
    }
}
