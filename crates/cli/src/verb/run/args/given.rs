//! Options of a run as words that mean the same, for another command line.

use super::RunArgs;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command};
use std::ffi::OsString;

/// The options of `run` that were given and are wanted, by their identifiers and where they were given.
pub fn words_of(
    matches: &ArgMatches,
    is_wanted: impl Fn(&str, ValueSource) -> bool,
) -> Vec<OsString> {
    let run = RunArgs::augment_args(Command::new("run"));
    let mut words = Vec::new();
    for option in run.get_arguments() {
        let id = option.get_id().as_str();
        let source = matches.value_source(id);
        if let Some(long) = option.get_long()
            && source.is_some_and(|source| is_wanted(id, source))
        {
            push(option, long, matches, &mut words);
        }
    }
    words
}

fn push(option: &Arg, long: &str, matches: &ArgMatches, words: &mut Vec<OsString>) {
    let values = matches.get_raw(option.get_id().as_str());
    let values: Vec<_> = values.into_iter().flatten().collect();
    if values.is_empty() || !option.get_action().takes_values() {
        words.push(format!("--{long}").into());
        return;
    }
    for value in values {
        let mut word = OsString::from(format!("--{long}="));
        word.push(value);
        words.push(word);
    }
}
