//! Options of `cosched run` that a comparison passes on, and variables that stand for some.

use crate::exit::usage;
use crate::verb::run::RunArgs;
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to do instead of giving an option that would make a run another one than its candidate, mix and block say, or that
/// would not be heard.
const NOT_HERE: [(&str, &str); 29] = [
    ("mix", "mixes come before `--`"),
    ("command", "a comparison runs mix files"),
    ("list", "a comparison runs mix files"),
    ("arg_file", "a comparison runs mix files"),
    ("null", "a comparison runs mix files"),
    ("colsep", "a comparison runs mix files"),
    ("max_args", "a comparison runs mix files"),
    ("max_replace_args", "a comparison runs mix files"),
    ("no_run_if_empty", "a comparison runs mix files"),
    ("policy", "give --policies before `--`"),
    ("params", "give --param before `--`"),
    ("on", "give --on before `--`"),
    ("seed", "give --seed before `--`"),
    ("solo", "give --solo-runs before `--`"),
    ("history", "a comparison runs without a history"),
    ("logs", "give --out before `--`"),
    ("no_logs", "a comparison needs the records of its runs"),
    ("keep_logs", "a comparison keeps all of its runs"),
    ("output", "a comparison shows no output"),
    ("tag", "a comparison shows no output"),
    ("keep_order", "a comparison shows no output"),
    ("format", "give --format before `--`"),
    ("record", "each run keeps its record in the folder of --out"),
    (
        "events",
        "every run would write over the file of the one before",
    ),
    (
        "orphans",
        "it is for --resume of `cosched run`, and a comparison goes on by its own --resume",
    ),
    ("resume", "a comparison goes on by its own --resume"),
    ("joblog", "a comparison keeps a record of each run"),
    ("dry_run", "give --dry-run before `--`"),
    ("verbose", "a comparison shows no output"),
];

/// The command line of `cosched run`.
fn run() -> Command {
    RunArgs::augment_args(Command::new("cosched run")).disable_help_flag(true)
}

/// Checks the words behind `--`, and returns the machine profile that they name.
///
/// # Errors
/// They are no options of `cosched run`, or one of them is not for comparisons.
pub(super) fn check(words: &[String]) -> anyhow::Result<Option<PathBuf>> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Err(usage(
            "options behind `--`: `cosched run --help` shows them",
        ));
    }
    // What variables say is checked by the runs.
    let run = run().mut_args(|arg| arg.env(Resettable::Reset));
    let parse = |more: &[&str]| {
        let words = words.iter().map(String::as_str);
        run.clone().try_get_matches_from(
            std::iter::once("cosched run")
                .chain(more.iter().copied())
                .chain(words),
        )
    };
    let parsed = parse(&[]).or_else(|error| match error.kind() {
        // Some options want a job log, which is not for comparisons either. They are told by their own names.
        ErrorKind::MissingRequiredArgument => parse(&["--joblog", "x"])
            .or_else(|_| parse(&["--joblog", "x", "--resume"]))
            .map_err(|_| error),
        _ => Err(error),
    });
    let matches = parsed.map_err(|error| {
        usage(format!(
            "options behind `--`: {}",
            first_words(&error.to_string())
        ))
    })?;
    for (id, advice) in NOT_HERE {
        if is_given(&matches, id) {
            return Err(usage(format!("{} behind `--`: {advice}", name(id))));
        }
    }
    Ok(matches.get_one("profile").cloned())
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// What a reader calls an option.
fn name(id: &str) -> String {
    let run = run();
    let arg = run.get_arguments().find(|arg| arg.get_id() == id);
    match arg.and_then(|arg| arg.get_long()) {
        Some(long) => format!("--{long}"),
        None => format!("a {id}"),
    }
}

/// What is wrong, without how to call `cosched run`.
fn first_words(error: &str) -> String {
    let text = error.split("\n\nUsage:").next().unwrap_or(error);
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let text = lines.collect::<Vec<_>>().join("; ");
    text.strip_prefix("error: ")
        .map_or(text.clone(), str::to_owned)
}

/// The names of the variables that stand for options of `cosched run`.
pub(super) fn variables() -> Vec<String> {
    run()
        .get_arguments()
        .filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned))
        .collect()
}

/// Those of them that would make a run another one than its candidate, mix and block say.
pub(super) fn own_variables() -> Vec<String> {
    let run = run();
    let is_ours = |arg: &&clap::Arg| NOT_HERE.iter().any(|(id, _)| arg.get_id() == id);
    run.get_arguments()
        .filter(is_ours)
        .filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned))
        .collect()
}

/// The user's variables that runs hear, with their values; and where commands are compared all that stand for options, because
/// a command may call cosched.
///
/// # Errors
/// A value is no UTF-8.
pub(super) fn heard(has_commands: bool) -> anyhow::Result<BTreeMap<String, String>> {
    let own = if has_commands {
        Vec::new()
    } else {
        own_variables()
    };
    let mut heard = BTreeMap::new();
    for name in variables().into_iter().filter(|name| !own.contains(name)) {
        if let Some(value) = std::env::var_os(&name) {
            let value = value
                .into_string()
                .map_err(|_| usage(format!("{name}: its value is no UTF-8")))?;
            heard.insert(name, value);
        }
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        check(&words).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_passed_on_is_an_option_of_run() {
        let run = run();
        for (id, _) in NOT_HERE {
            assert!(run.get_arguments().any(|arg| arg.get_id() == id), "{id}");
        }
        let own = own_variables();
        for name in [
            "COSCHED_ON",
            "COSCHED_POLICY",
            "COSCHED_SEED",
            "COSCHED_LOGS",
            "COSCHED_SOLO",
            "COSCHED_HISTORY",
        ] {
            assert!(own.iter().any(|own| own == name), "{name}");
        }
        assert!(
            variables().iter().any(|name| name == "COSCHED_JOBS")
                && !own.iter().any(|name| name == "COSCHED_JOBS")
        );
    }

    #[test]
    fn however_an_option_is_written_it_is_seen() {
        for words in [&["-p", "fifo"][..], &["-pfifo"], &["--policy=fifo"]] {
            assert_eq!(
                told(words),
                "--policy behind `--`: give --policies before `--`"
            );
        }
        assert_eq!(
            told(&["--results", "x"]),
            "--logs behind `--`: give --out before `--`"
        );
        assert_eq!(
            told(&["b.toml"]),
            "a mix behind `--`: mixes come before `--`"
        );
        assert_eq!(
            told(&["--", "true"]),
            "a command behind `--`: a comparison runs mix files"
        );
        let passed = check(&[
            "-j8".to_owned(),
            "--profile=p.toml".to_owned(),
            "--cpus".to_owned(),
            "0".to_owned(),
        ]);
        assert_eq!(passed.unwrap(), Some(PathBuf::from("p.toml")));
    }

    #[test]
    fn unknown_options_are_told_without_how_to_call_run() {
        let text = told(&["--cpuss", "0"]);
        assert!(
            text.starts_with("options behind `--`: unexpected argument '--cpuss' found; tip: "),
            "{text}"
        );
        assert!(!text.contains("Usage") && !text.contains('\n'), "{text}");
    }

    #[test]
    fn options_that_want_others_are_told_by_their_own_names() {
        assert_eq!(
            told(&["--resume"]),
            "--resume behind `--`: a comparison goes on by its own --resume"
        );
        assert!(
            told(&["--orphans", "wait"]).starts_with("--orphans behind `--`: it is for --resume")
        );
        assert_eq!(
            told(&["--joblog", "x"]),
            "--joblog behind `--`: a comparison keeps a record of each run"
        );
        assert_eq!(
            told(&["-j8", "--help"]),
            "options behind `--`: `cosched run --help` shows them"
        );
    }
}
