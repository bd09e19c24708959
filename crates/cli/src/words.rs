//! Where the command of a job begins on the command line.
//!
//! `cosched run --policy fair gzip -k {} ::: a b` is read as `cosched run --policy fair -- gzip -k {} ::: a b`: from
//! the first word that is neither an option nor an option's value, everything belongs to the job, its options too. A
//! mix file (`*.toml`, without blanks) is no command, and options may follow it.

use crate::input::spelling::near;
use crate::verb::help::is_page;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// Verbs that take the command of a job.
const RUNNERS: [&str; 2] = ["run", "slurm"];

/// What follows the options, for the parser that finds it.
const REST: &str = "rest";

/// Puts `--` in front of the command of a job, if there is one and the user did not; returns whether it did.
pub fn mark_command(cli: &Command, words: &mut Vec<OsString>) -> bool {
    let Some(at) = command_at(cli, words) else {
        return false;
    };
    words.insert(at, OsString::from("--"));
    true
}

/// The position of the first word of the job's command; `None` without one, or where `--` marks it.
pub fn command_at(cli: &Command, words: &[OsString]) -> Option<usize> {
    let mut before = words.iter().skip(1);
    let verb = 1 + before.position(|word| !starts_with_dash(word))?;
    let name = RUNNERS.iter().find(|name| words[verb] == **name)?;
    let runner = cli.find_subcommand(name)?;
    let after_options = words_after_options(runner, &words[verb..])?;
    let at = words.len() - after_options.len();
    (words[at - 1] != "--" && !is_mix(&words[at])).then_some(at)
}

/// The words of a call of `runner` from the first that is neither an option nor an option's value.
fn words_after_options(runner: &Command, call: &[OsString]) -> Option<Vec<OsString>> {
    let options = runner.get_arguments().filter(|arg| !arg.is_positional());
    let rest = Arg::new(REST)
        .num_args(0..)
        .trailing_var_arg(true)
        .value_parser(clap::value_parser!(OsString));
    // The whole command line is parsed later, and an error reported then.
    let parser = Command::new("options")
        .args(options)
        .arg(rest)
        .disable_help_flag(true)
        .args_override_self(true)
        .ignore_errors(true);
    let mut matches = parser.try_get_matches_from(call).ok()?;
    Some(matches.remove_many(REST)?.collect())
}

/// Whether the first word after the options names a mix file. A word with blanks is a line for the shell, whatever file it
/// ends with.
fn is_mix(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    word.ends_with(".toml") && !word.contains(char::is_whitespace)
}

/// Options of GNU parallel, xargs and other verbs that are not there, and what to do instead.
const INSTEAD: [(&str, &str); 18] = [
    ("--html", "`cosched report RUN --html FILE` makes a page"),
    (
        "--pipe --pipepart --block --cat --fifo --recstart --recend",
        "divide the input first: `split -n l/8 FILE part.`, then `cosched run 'CMD < {}' ::: part.*`",
    ),
    (
        "-S --sshlogin --slf --sshloginfile --onall --nonall --transfer --transferfile --return --trc --basefile --cleanup",
        "`--nodes ssh:HOST,HOST` runs the jobs on other machines, which share their files",
    ),
    (
        "-X -m --xargs -L -l --max-lines",
        "`-n N` puts N values into each job",
    ),
    (
        "--quote --shellquote",
        "leave it out: a program gets its words as they are, and values are quoted in lines for the shell",
    ),
    (
        "--files",
        "`--logs DIR` names the folder of the jobs' output: DIR/NAME.out and DIR/NAME.err",
    ),
    (
        "--tmpdir --tempdir",
        "`--logs DIR` names the folder of the jobs' output; $TMPDIR is for files that do not stay",
    ),
    ("--csv", "`--colsep ,` splits columns without quotes"),
    (
        "--semaphore --semaphorename --semaphoretimeout --id --fg --bg",
        "`cosched serve` keeps a queue for this machine, and `cosched submit` adds a job",
    ),
    (
        "--link --xapply",
        "`:::+` links a list to the one before it",
    ),
    (
        "--resume-failed --retry-failed",
        "--resume runs failed jobs again",
    ),
    (
        "--env --record-env",
        "jobs have all exported variables and functions",
    ),
    (
        "--rpl --plus --trim",
        "change the values beforehand, as in `sed s/a/b/ LIST | cosched run gzip`",
    ),
    ("-i", "{} stands for the value; `-I STR` replaces STR"),
    (
        "-t",
        "`-v` reports each job's start; `--timeout DURATION` limits a job's time",
    ),
    (
        "--ntasks --parallel --threads --workers",
        "`-j N` limits the live jobs; `--cpus-per-job N` gives each job N CPUs",
    ),
    (
        "-J --job-name --array --constraint --exclusive --gres --mem --mem-per-cpu --nodelist --qos",
        "`cosched slurm --sbatch OPTION` hands an option to sbatch, as in --sbatch --mem=8G",
    ),
    (
        "--termseq",
        "--grace DURATION is the time from SIGTERM to SIGKILL",
    ),
];

/// Words that are no verbs, and what their users may want.
const VERBS: [(&str, &str); 3] = [
    (
        "sim simulate",
        "`cosched run MIX.toml --on MACHINE` simulates the jobs",
    ),
    (
        "abort kill scancel stop",
        "`cosched cancel JOB` ends a job of the queue, Ctrl-C a run, `cosched set pause=on` pauses it",
    ),
    (
        "jobs ls ps squeue",
        "`cosched status` shows runs, jobs and the queue",
    ),
];

/// Puts what to do instead into an error about a word that cosched does not know.
pub fn advise(error: &mut clap::Error) {
    // The tip of clap is only that the word could be a value.
    error.remove(ContextKind::Suggested);
    keep_near(
        error,
        ContextKind::InvalidSubcommand,
        ContextKind::SuggestedSubcommand,
    );
    keep_near(error, ContextKind::InvalidArg, ContextKind::SuggestedArg);
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        let command = format!("`cosched run {word} ...` runs a command");
        let meant = meant(word);
        if meant.is_some() {
            error.remove(ContextKind::SuggestedSubcommand);
        }
        suggest(error, meant.unwrap_or(command));
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    if let Some(advice) = of(&INSTEAD, word) {
        error.remove(ContextKind::SuggestedArg);
        suggest(error, advice.to_owned());
    } else if error.get(ContextKind::SuggestedArg).is_none() && is_before_verb() {
        let advice = "options follow a verb, as in `cosched run -j 4 gzip ::: a b`";
        suggest(error, advice.to_owned());
    }
}

/// Drops what clap suggests for a word, unless it differs by a slip of the fingers.
fn keep_near(error: &mut clap::Error, word: ContextKind, suggested: ContextKind) {
    let Some(ContextValue::String(word)) = error.get(word) else {
        return;
    };
    let word = word.trim_start_matches('-');
    let mut offered = match error.get(suggested) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => return,
    };
    offered.retain(|one| near(word, [one.trim_start_matches('-')]).is_some());
    let Some(nearest) = offered.into_iter().next() else {
        error.remove(suggested);
        return;
    };
    error.insert(suggested, ContextValue::String(nearest));
}

/// What a word means that is no verb, if it is known.
fn meant(word: &str) -> Option<String> {
    if is_page(word) {
        return Some(format!("`cosched help {word}` prints this page"));
    }
    of(&VERBS, word).map(str::to_owned)
}

/// Whether the first word is an option.
fn is_before_verb() -> bool {
    let first = std::env::args_os().nth(1);
    first.is_some_and(|first| starts_with_dash(&first))
}

/// The advice of a table for a word.
fn of(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let mut rows = table.iter();
    let row = rows.find(|(words, _)| words.split(' ').any(|known| known == word));
    row.map(|(_, advice)| *advice)
}

fn suggest(error: &mut clap::Error, advice: String) {
    let advice = ContextValue::StyledStrs(vec![advice.into()]);
    error.insert(ContextKind::Suggested, advice);
}

fn starts_with_dash(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::run::RunArgs;
    use clap::Args;

    #[test]
    fn commands_are_found() {
        let cli = Command::new("cosched").subcommand(RunArgs::augment_args(Command::new("run")));
        let check = |words: &str, expected: &str| {
            let mut marked = words.split(' ').map(OsString::from).collect();
            let is_changed = mark_command(&cli, &mut marked);
            assert_eq!(marked.join(OsStr::new(" ")), expected);
            assert_eq!(is_changed, words != expected);
        };
        check(
            "cosched run --policy fair gzip -k {} ::: a",
            "cosched run --policy fair -- gzip -k {} ::: a",
        );
        check(
            "cosched run --policy=fair gzip -k",
            "cosched run --policy=fair -- gzip -k",
        );
        check(
            "cosched run -q -pfair -j 4 -vj4 gzip -9",
            "cosched run -q -pfair -j 4 -vj4 -- gzip -9",
        );
        check(
            "cosched run mix.toml --policy fair",
            "cosched run mix.toml --policy fair",
        );
        check(
            "cosched run --dry-run mix.toml -q",
            "cosched run --dry-run mix.toml -q",
        );
        check(
            "cosched run -f - --policy fair",
            "cosched run -f - --policy fair",
        );
        check("cosched run -- x.toml -k", "cosched run -- x.toml -k");
        check(
            "cosched run -j -2 -P3 -N 2 x",
            "cosched run -j -2 -P3 -N 2 -- x",
        );
        check(
            "cosched run -k --max-procs 3 -a f x",
            "cosched run -k --max-procs 3 -a f -- x",
        );
        check(
            "cosched run --resume gzip --resume",
            "cosched run --resume -- gzip --resume",
        );
        check(
            "cosched run -I{} -I , --header : --wd d --lb x",
            "cosched run -I{} -I , --header : --wd d --lb -- x",
        );
        for line in ["sort a/x.toml", "cat\tx.toml", "true\ncat x.toml"] {
            let words = ["cosched", "run", "-q", line, ":::", "a"];
            let mut marked = words.map(OsString::from).to_vec();
            assert!(mark_command(&cli, &mut marked), "{line}");
            assert_eq!(marked[3..5], ["--", line]);
        }
        check("cosched run", "cosched run");
        check("cosched workload chase", "cosched workload chase");
        check("cosched --help", "cosched --help");
    }
}
