//! Where the command of a job begins on the command line.
//!
//! `cosched run --policy fair gzip -k {} ::: a b` is read as `cosched run --policy fair -- gzip -k {} ::: a b`: from
//! the first word that is neither an option nor an option's value, everything belongs to the job, its options too. A
//! mix file (`*.toml`) is no command, and options may follow it.

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};

/// Verbs that take the command of a job.
const RUNNERS: [&str; 2] = ["run", "slurm"];

/// Puts `--` in front of the command of a job, if there is one and the user did not; returns whether it did.
pub fn mark_command(cli: &Command, words: &mut Vec<OsString>) -> bool {
    let Some(at) = command_at(cli, words) else {
        return false;
    };
    words.insert(at, OsString::from("--"));
    true
}

/// The position of the first word of the job's command; `None` without one, or where `--` marks it.
fn command_at(cli: &Command, words: &[OsString]) -> Option<usize> {
    let first = words
        .iter()
        .skip(1)
        .position(|word| !starts_with_dash(word));
    let verb = first? + 1;
    let name = RUNNERS.iter().find(|name| words[verb] == **name)?;
    let run = cli.find_subcommand(name)?;
    let mut at = verb + 1;
    while starts_with_dash(words.get(at)?) {
        if words[at] == "--" {
            return None;
        }
        at += if takes_next(run, &words[at]) { 2 } else { 1 };
    }
    let is_mix = words[at].to_string_lossy().ends_with(".toml");
    (!is_mix).then_some(at)
}

/// The command line with the help of `cosched run` that these words ask for. Both forms give each option one line; the
/// manual page has more.
pub fn with_help(cli: Command, words: &[OsString]) -> Command {
    let mut options = words.iter().take_while(|word| *word != "--");
    if options.all(|word| *word != "run") {
        return cli;
    }
    match options.find(|word| *word == "-h" || *word == "--help") {
        Some(word) if word == "-h" => cli.mut_subcommand("run", short_help),
        Some(_) => cli.mut_subcommand("run", full_help),
        None => cli,
    }
}

/// One list of the most used options. It fits a screen.
fn short_help(run: Command) -> Command {
    let run = run.mut_args(brief).max_term_width(80);
    with_flag(run, "Print this help; --help prints all options")
}

fn brief(arg: Arg) -> Arg {
    let arg = arg.help_heading(None::<&str>).hide_env(true);
    if !arg.get_action().takes_values() {
        return arg;
    }
    arg.hide_default_value(true).hide_possible_values(true)
}

/// All options, under their headings.
fn full_help(run: Command) -> Command {
    let run = run.mut_args(|arg| arg.hide_short_help(false));
    let about = run.get_long_about().cloned();
    let after = run.get_after_long_help().cloned();
    let run = run.about(about.unwrap_or_default());
    let run = run.after_help(after.unwrap_or_default());
    with_flag(
        run,
        "Print this help; `cosched man command-line` explains more",
    )
}

/// Replaces the flag for help by one that prints a line for each option.
fn with_flag(run: Command, help: &'static str) -> Command {
    let flag = Arg::new("help").short('h').long("help").help(help);
    let flag = flag.action(ArgAction::HelpShort);
    run.disable_help_flag(true)
        .arg(flag.help_heading(None::<&str>))
}

/// Options of GNU parallel, xargs and other verbs that are not there, and what to do instead.
const INSTEAD: [(&str, &str); 9] = [
    ("--html", "`cosched report RUN --html FILE` makes a page"),
    (
        "--pipe --pipepart --block --cat --fifo --recstart --recend",
        "divide the input first: `split -n l/8 FILE part.`, then `cosched run 'CMD < {}' ::: part.*`",
    ),
    (
        "-S --sshlogin --slf --sshloginfile --onall --nonall --transfer --transferfile --return --trc --basefile --cleanup",
        "`--nodes ssh:HOST,HOST` runs the jobs on other machines, which share their files",
    ),
    ("-X -m --xargs -L", "`-n N` puts N values into each job"),
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
    (
        "--termseq",
        "--grace DURATION is the time from SIGTERM to SIGKILL",
    ),
];

/// Puts what to do instead into an error about a word that cosched does not know.
pub fn advise(error: &mut clap::Error) {
    // The tip of clap is only that the word could be a value.
    error.remove(ContextKind::Suggested);
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        let advice = format!("`cosched run {word} ...` runs a command");
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let mut known = INSTEAD.iter();
    let Some((_, advice)) = known.find(|(words, _)| words.split(' ').any(|known| known == word))
    else {
        return;
    };
    error.remove(ContextKind::SuggestedArg);
    let advice = ContextValue::StyledStrs(vec![(*advice).into()]);
    error.insert(ContextKind::Suggested, advice);
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn takes_next_word(arg: &Arg) -> bool {
    takes_value(arg) && !arg.is_require_equals_set()
}

fn has_long(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name)
        || arg
            .get_all_aliases()
            .is_some_and(|aliases| aliases.contains(&name))
}

fn has_short(arg: &Arg, letter: char) -> bool {
    arg.get_short() == Some(letter)
        || arg
            .get_all_short_aliases()
            .is_some_and(|aliases| aliases.contains(&letter))
}

fn starts_with_dash(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

/// Whether the option's value is the next word.
fn takes_next(run: &Command, word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    if let Some(long) = text.strip_prefix("--") {
        let option = run.get_arguments().find(|arg| has_long(arg, long));
        return option.is_some_and(takes_next_word);
    }
    // Among short options in one word, the first that takes a value takes the rest of the word, or the next word.
    let mut letters = text.chars().skip(1);
    while let Some(letter) = letters.next() {
        let option = run.get_arguments().find(|arg| has_short(arg, letter));
        if option.is_some_and(takes_value) {
            return letters.next().is_none();
        }
    }
    false
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
        check("cosched run", "cosched run");
        check("cosched workload chase", "cosched workload chase");
        check("cosched --help", "cosched --help");
    }
}
