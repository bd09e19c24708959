//! Where the command of a job begins on the command line.
//!
//! `cosched run --policy fair gzip -k {} ::: a b` is read as `cosched run --policy fair -- gzip -k {} ::: a b`: from
//! the first word that is neither an option nor an option's value, everything belongs to the job, its options too. A
//! mix file (`*.toml`) is no command, and options may follow it.

use crate::parallel;
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};

/// A word of `cosched run` before the job's command, by its position.
enum Word {
    Option(usize),
    /// A mix file.
    Mix,
    /// The job's command begins here.
    Command(usize),
}

/// The verb `run` and its words up to the first of the command, or to `--`; `None` if the verb is another.
fn words_of_run<'a>(
    cli: &'a Command,
    words: &'a [OsString],
) -> Option<(&'a Command, impl Iterator<Item = Word>)> {
    let at = words
        .iter()
        .skip(1)
        .position(|word| !starts_with_dash(word))
        .map(|pos| pos + 1)?;
    let run = cli.find_subcommand("run").filter(|_| words[at] == "run")?;
    let mut next = Some(at + 1);
    let each = std::iter::from_fn(move || {
        let at = next.take()?;
        let word = words.get(at).filter(|word| *word != "--")?;
        if starts_with_dash(word) {
            next = Some(at + if takes_next(run, word) { 2 } else { 1 });
            return Some(Word::Option(at));
        }
        if word.to_string_lossy().ends_with(".toml") {
            next = Some(at + 1);
            return Some(Word::Mix);
        }
        Some(Word::Command(at))
    });
    Some((run, each))
}

/// Puts `--` in front of the command of `cosched run`, if there is one and the user did not.
pub(crate) fn mark_command(cli: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let command = words_of_run(cli, &words).and_then(|(_, mut each)| {
        // What follows a mix file is no command.
        each.find_map(|word| match word {
            Word::Option(_) => None,
            Word::Mix => Some(None),
            Word::Command(at) => Some(Some(at)),
        })
    });
    if let Some(Some(at)) = command {
        words.insert(at, OsString::from("--"));
    }
    words
}

/// The command line with a `-h` that fits a screen: one list of options, each on a line of its own. `--help` has all.
pub(crate) fn short_help(cli: Command) -> Command {
    cli.mut_subcommand("run", |run| {
        let brief = |arg: Arg| {
            let arg = arg.help_heading(None::<&str>).hide_env(true);
            if !arg.get_action().takes_values() {
                return arg;
            }
            arg.hide_default_value(true).hide_possible_values(true)
        };
        let run = run.mut_args(brief).max_term_width(80);
        let help = Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::HelpShort);
        run.disable_help_flag(true).arg(
            help.help("Print this help; --help prints all")
                .help_heading(None::<&str>),
        )
    })
}

/// What to do instead, if an option of `cosched run` is one of GNU parallel's that cosched does not have.
pub(crate) fn foreign_option(cli: &Command, words: &[OsString]) -> Option<String> {
    let (run, mut each) = words_of_run(cli, words)?;
    each.find_map(|word| {
        let Word::Option(at) = word else { return None };
        let text = words[at].to_string_lossy();
        match text.strip_prefix("--") {
            Some(long) => {
                let name = long.split('=').next().unwrap_or_default();
                let known = run.get_arguments().any(|arg| has_long(arg, name)) || name == "help";
                (!known)
                    .then(|| parallel::advice(&format!("--{name}")))
                    .flatten()
            }
            None => {
                unknown_short(run, &text).and_then(|letter| parallel::advice(&format!("-{letter}")))
            }
        }
    })
}

/// The first letter of `-abc` that is no option of the command.
fn unknown_short(run: &Command, word: &str) -> Option<char> {
    for letter in word.chars().skip(1) {
        match run.get_arguments().find(|arg| has_short(arg, letter)) {
            // The rest of the word is its value.
            Some(arg) if takes_value(arg) => return None,
            Some(_) => {}
            None if letter == 'h' => {}
            None => return Some(letter),
        }
    }
    None
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
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
        if long.contains('=') {
            return false;
        }
        return run
            .get_arguments()
            .find(|arg| has_long(arg, long))
            .is_some_and(takes_value);
    }
    // Among short options in one word, the first that takes a value takes the rest of the word, or the next word.
    let letters: Vec<char> = text.chars().skip(1).collect();
    for (ix, letter) in letters.iter().enumerate() {
        if run
            .get_arguments()
            .find(|arg| has_short(arg, *letter))
            .is_some_and(takes_value)
        {
            return ix + 1 == letters.len();
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
            let words = words.split(' ').map(OsString::from).collect();
            let marked = mark_command(&cli, words);
            assert_eq!(marked.join(OsStr::new(" ")), expected);
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
        check("cosched run", "cosched run");
        check("cosched workload chase", "cosched workload chase");
        check("cosched --help", "cosched --help");
    }

    /// Every option that GNU parallel has and cosched has not is an error with advice, wherever it stands before the
    /// command; after the command it belongs to that.
    #[test]
    fn options_of_gnu_parallel_are_recognised() {
        let cli = Command::new("cosched").subcommand(RunArgs::augment_args(Command::new("run")));
        let advice = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            foreign_option(&cli, &words)
        };
        for (words, part) in [
            ("cosched run --pipe cat", "--pipe"),
            ("cosched run -j 2 -S host cat ::: a", "-S"),
            ("cosched run --sshlogin=host cat", "--sshlogin"),
            ("cosched run -kX echo", "-X"),
            ("cosched run --policy fair --bar echo", "progress line"),
            ("cosched run mix.toml --eta", "progress line"),
            ("cosched run --memfree 1G x", "--mem-keep"),
            ("cosched run -u x", "--output live"),
        ] {
            let found = advice(words).unwrap_or_else(|| panic!("{words}"));
            assert!(found.contains(part), "{found}");
        }
        for words in [
            "cosched run gzip --pipe -X",
            "cosched run -- --bar",
            "cosched run -qk -j2 x -m",
            "cosched run --polcy",
            "cosched --bar",
            "cosched run -h",
        ] {
            assert_eq!(advice(words), None, "{words}");
        }
        // The table names nothing that cosched has itself.
        let run = cli.find_subcommand("run").unwrap();
        for name in parallel::names() {
            let known = match name.strip_prefix("--") {
                Some(long) => run.get_arguments().any(|arg| has_long(arg, long)),
                None => run
                    .get_arguments()
                    .any(|arg| has_short(arg, name.chars().nth(1).unwrap())),
            };
            assert!(!known, "{name} is an option of cosched");
        }
    }
}
