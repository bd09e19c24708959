//! Where the command of a job begins on the command line.
//!
//! `cosched run --policy fair gzip -k {} ::: a b` is read as `cosched run --policy fair -- gzip -k {} ::: a b`: from
//! the first word that is neither an option nor an option's value, everything belongs to the job, its options too. A
//! mix file (`*.toml`) is no command, and options may follow it.

use clap::{ArgAction, Command};
use std::ffi::{OsStr, OsString};

/// Puts `--` in front of the command of `cosched run`, if there is one and the user did not.
pub(crate) fn mark_command(cli: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = words.iter().skip(1).position(|word| !starts_with_dash(word)).map(|pos| pos + 1) else {
        return words;
    };
    if words[at] != "run" {
        return words;
    }
    let Some(run) = cli.find_subcommand("run") else { return words };
    let mut next = at + 1;
    while let Some(word) = words.get(next) {
        if word == "--" {
            return words;
        }
        if starts_with_dash(word) {
            next += if takes_next(run, word) { 2 } else { 1 };
            continue;
        }
        if word.to_string_lossy().ends_with(".toml") {
            return words;
        }
        let mut marked = words.clone();
        marked.insert(next, OsString::from("--"));
        return marked;
    }
    words
}

fn starts_with_dash(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

/// Whether the option's value is the next word.
fn takes_next(run: &Command, word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    let takes_value = |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    if let Some(long) = text.strip_prefix("--") {
        if long.contains('=') {
            return false;
        }
        let names =
            |arg: &&clap::Arg| arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|a| a.contains(&long));
        return run.get_arguments().find(names).is_some_and(takes_value);
    }
    // Among short options in one word, the first that takes a value takes the rest of the word, or the next word.
    let letters: Vec<char> = text.chars().skip(1).collect();
    for (ix, letter) in letters.iter().enumerate() {
        if run.get_arguments().find(|arg| arg.get_short() == Some(*letter)).is_some_and(takes_value) {
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
        check("cosched run --policy fair gzip -k {} ::: a", "cosched run --policy fair -- gzip -k {} ::: a");
        check("cosched run --policy=fair gzip -k", "cosched run --policy=fair -- gzip -k");
        check("cosched run -q -pfair -j 4 -vj4 gzip -9", "cosched run -q -pfair -j 4 -vj4 -- gzip -9");
        check("cosched run mix.toml --policy fair", "cosched run mix.toml --policy fair");
        check("cosched run --dry-run mix.toml -q", "cosched run --dry-run mix.toml -q");
        check("cosched run -f - --policy fair", "cosched run -f - --policy fair");
        check("cosched run -- x.toml -k", "cosched run -- x.toml -k");
        check("cosched run", "cosched run");
        check("cosched workload chase", "cosched workload chase");
        check("cosched --help", "cosched --help");
    }
}
