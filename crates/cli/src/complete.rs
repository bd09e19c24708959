//! Completion of words. A shell calls cosched with [`CALL`] in its environment; the script for that is [`script`]'s.

use crate::offer::file;
use crate::words::command_at;
use anyhow::Result;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use std::ffi::{OsStr, OsString};

/// Variable of a shell that asks.
const CALL: &str = "COSCHED_COMPLETE";

/// The script that lets a shell ask.
pub fn script(shell: Shell) -> Result<Vec<u8>> {
    let mut script = Vec::new();
    let name = shell.to_string();
    if let Some(shell) = Shells::builtins().completer(&name) {
        shell.write_registration(CALL, "cosched", "cosched", "cosched", &mut script)?;
    }
    if shell == Shell::Zsh {
        // In a folder of `fpath`, the script is the body of the function `_cosched` when it is called first.
        let call = b"[[ $funcstack[1] != _cosched ]] || _clap_dynamic_completer_cosched \"$@\"\n";
        script.extend_from_slice(call);
    }
    Ok(script)
}

/// Answers a shell; returns whether one asked.
///
/// # Errors
/// The shell is unknown, or its call is.
pub fn answer() -> Result<bool, clap::Error> {
    if std::env::var_os(CALL).is_none() {
        return Ok(false);
    }
    let mut words = asked();
    let command = command(&mut words);
    let engine = CompleteEnv::with_factory(|| command.clone()).var(CALL);
    let call = ["cosched".into(), "--".into()];
    let folder = std::env::current_dir().ok();
    engine.try_complete(call.into_iter().chain(words), folder.as_deref())
}

/// The words of the user's line up to the one to complete.
fn asked() -> Vec<OsString> {
    let mut words: Vec<_> = std::env::args_os().skip(2).collect();
    let index = std::env::var("_CLAP_COMPLETE_INDEX");
    if let Some(index) = index.ok().and_then(|index| index.parse::<u16>().ok()) {
        words.resize(usize::from(index) + 1, OsString::new());
    }
    join_values(&mut words);
    words
}

/// An option that nobody knows.
const NO_OPTION: &str = "--=";

/// Joins what bash has divided: `--on=host` comes as three words. Their number stays, as an option that nobody knows.
fn join_values(words: &mut [OsString]) {
    for at in 1..words.len() {
        let is_option = words[at - 1].as_encoded_bytes().starts_with(b"--");
        if is_option && words[at] == "=" {
            words.swap(at - 1, at);
            words[at - 1] = NO_OPTION.into();
        }
    }
}

/// The command line as far as it can be for these words. Words of a job's command are no options of cosched: there `--`
/// replaces the program.
fn command(words: &mut [OsString]) -> Command {
    let mut cli = crate::Cli::command();
    let last = words.len().saturating_sub(1);
    let is_bare = words.last().is_some_and(|word| !is_dash(word));
    if let Some(at) = program_before(&cli, words) {
        words[at] = "--".into();
    }
    if last > 2 {
        cli = cli.mut_subcommand("submit", |submit| submit.mut_arg("command", only_files));
    }
    // Only then it has `--version`.
    cli.build();
    if is_bare { without_options(cli) } else { cli }
}

/// The position of a job's program before the last word.
fn program_before(cli: &Command, words: &[OsString]) -> Option<usize> {
    let mut known = Vec::new();
    let mut positions = Vec::new();
    for (position, word) in words.iter().enumerate() {
        if word != NO_OPTION {
            known.push(word.clone());
            positions.push(position);
        }
    }
    let at = positions[command_at(cli, &known)?];
    (at + 1 < words.len()).then_some(at)
}

/// A word of a queued command after its program.
fn only_files(arg: Arg) -> Arg {
    arg.add(ArgValueCompleter::new(file))
}

fn is_dash(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Offers options only where there is nothing else.
fn without_options(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_hidden = arg.is_hide_set() || !arg.is_positional();
        arg.hide(is_hidden)
    });
    command.mut_subcommands(without_options)
}
