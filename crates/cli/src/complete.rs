//! Completion of words. A shell calls cosched with [`CALL`] in its environment; the script for that is [`script`]'s.

use crate::input::spec;
use crate::live::{Known, LOGS, known, run_folders, series_of};
use crate::run_files::open_series;
use crate::verb::help::PAGES;
use crate::verb::queue::all_jobs;
use crate::words::command_at;
use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use cosched_core::metric::METRICS;
use cosched_linux::root::Root;
use cosched_queue::{Job, State};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Variable of a shell that asks.
const CALL: &str = "COSCHED_COMPLETE";

/// Where a value's words come from.
#[derive(Clone, Copy)]
enum Origin {
    /// These words.
    List(fn() -> Vec<CompletionCandidate>),
    /// These words, and files.
    ListOrFile(fn() -> Vec<CompletionCandidate>),
    /// The programs in PATH, and files.
    Program,
    /// Files.
    File,
}

/// The values that are not known from the definition of the command line: by verb and argument.
const VALUES: [(&str, &str, Origin); 22] = [
    ("run", "on", Origin::ListOrFile(machines)),
    ("run", "resume", Origin::ListOrFile(folders)),
    ("run", "mix", Origin::Program),
    ("run", "command", Origin::File),
    ("slurm", "mix", Origin::Program),
    ("slurm", "command", Origin::File),
    ("submit", "command", Origin::Program),
    ("compare", "on", Origin::ListOrFile(machines)),
    ("compare", "metrics", Origin::List(metrics)),
    ("report", "metrics", Origin::List(metrics)),
    ("report", "paths", Origin::ListOrFile(folders)),
    ("why", "job", Origin::List(jobs)),
    ("why", "run", Origin::ListOrFile(runs_and_folders)),
    ("trace", "run", Origin::ListOrFile(runs_and_folders)),
    ("status", "run", Origin::List(runs)),
    ("top", "run", Origin::List(runs)),
    ("set", "words", Origin::List(settings)),
    ("cancel", "ids", Origin::List(unfinished)),
    ("wait", "ids", Origin::List(unfinished)),
    ("logs", "id", Origin::List(queued)),
    ("rerun", "ids", Origin::List(lost)),
    ("help", "topic", Origin::List(topics)),
];

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

/// Joins what bash has divided: `--on=host` comes as three words. Their number stays, as an option that nobody knows.
fn join_values(words: &mut [OsString]) {
    for at in 1..words.len() {
        let is_option = words[at - 1].as_encoded_bytes().starts_with(b"--");
        if is_option && words[at] == "=" {
            words.swap(at - 1, at);
            words[at - 1] = "--=".into();
        }
    }
}

/// The command line with the values that fit these words. Words of a job's command are no options of cosched: there `--`
/// replaces the program.
fn command(words: &mut [OsString]) -> Command {
    let mut cli = crate::Cli::command();
    let last = words.len().saturating_sub(1);
    let is_bare = words.last().is_some_and(|word| !is_dash(word));
    let program = command_at(&cli, words).filter(|at| *at < last);
    if let Some(at) = program {
        words[at] = "--".into();
    }
    for (verb, id, origin) in VALUES {
        let is_past = program.is_some() || verb == "submit" && last > 2;
        let origin = match origin {
            Origin::Program if is_past => Origin::File,
            origin => origin,
        };
        let completer = ArgValueCompleter::new(origin);
        cli = cli.mut_subcommand(verb, |verb| verb.mut_arg(id, |arg| arg.add(completer)));
    }
    // Only then it has `--version`.
    cli.build();
    if is_bare { without_options(cli) } else { cli }
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

impl ValueCompleter for Origin {
    fn complete(&self, begin: &OsStr) -> Vec<CompletionCandidate> {
        let mut words = match self {
            Origin::List(list) | Origin::ListOrFile(list) => list(),
            Origin::Program => programs(begin),
            Origin::File => Vec::new(),
        };
        let begin_bytes = begin.as_encoded_bytes();
        words.retain(|word| word.get_value().as_encoded_bytes().starts_with(begin_bytes));
        if !matches!(self, Origin::List(_)) {
            let mut files = PathCompleter::any().complete(begin);
            files.retain(|file| file.get_value() != ".");
            words.extend(files);
        }
        words
    }
}

fn word(word: impl Into<OsString>, about: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(about.into().into()))
}

fn machines() -> Vec<CompletionCandidate> {
    let names = spec::machine_names();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn metrics() -> Vec<CompletionCandidate> {
    let names = METRICS.iter().map(|metric| metric.name);
    names.map(CompletionCandidate::new).collect()
}

/// The programs in PATH whose names begin so; none for an empty word.
fn programs(begin: &OsStr) -> Vec<CompletionCandidate> {
    let path = std::env::var_os("PATH").filter(|_| !begin.is_empty());
    let mut names = Vec::new();
    for folder in std::env::split_paths(&path.unwrap_or_default()) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let begins = name
                .as_encoded_bytes()
                .starts_with(begin.as_encoded_bytes());
            if begins && is_program(&entry.path()) {
                names.push(name);
            }
        }
    }
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn is_program(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The live runs, by their processes. Another container's may have the same ones.
fn runs() -> Vec<CompletionCandidate> {
    let mut words = Vec::new();
    for run in known(&Root::default()).into_iter().filter(is_seen) {
        let folder = run.status.ok().and_then(|status| status.run.folder.clone());
        words.push(word(run.run.pid.to_string(), folder.unwrap_or_default()));
    }
    words
}

/// The log folders in the default folder, the last first.
fn folders() -> Vec<CompletionCandidate> {
    let mut folders = run_folders(Path::new(LOGS));
    folders.sort();
    folders.reverse();
    folders.into_iter().map(CompletionCandidate::new).collect()
}

fn runs_and_folders() -> Vec<CompletionCandidate> {
    let mut words = runs();
    words.extend(folders());
    words
}

fn is_seen(known: &Known) -> bool {
    known.run.is_seen
}

fn settings() -> Vec<CompletionCandidate> {
    let mut words = runs();
    words.extend(["jobs=", "pause=on", "pause=off"].map(CompletionCandidate::new));
    words
}

/// The jobs of the run that `why` means. Names that a shell would take apart are left out.
fn jobs() -> Vec<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "#._-+/@%,".contains(c);
    let series = series_of(None).and_then(|file| open_series(&file));
    let Ok(series) = series else {
        return Vec::new();
    };
    let names = series.header().tasks.iter().map(|task| &task.name);
    let plain = names.filter(|name| name.chars().all(is_plain));
    plain.map(CompletionCandidate::new).collect()
}

fn queued() -> Vec<CompletionCandidate> {
    jobs_of_queue(|_| true)
}

fn unfinished() -> Vec<CompletionCandidate> {
    jobs_of_queue(|job| !job.state.is_over())
}

fn lost() -> Vec<CompletionCandidate> {
    jobs_of_queue(|job| matches!(job.state, State::Lost | State::Unknown))
}

fn jobs_of_queue(is_wanted: fn(&Job) -> bool) -> Vec<CompletionCandidate> {
    let mut jobs = all_jobs().unwrap_or_default();
    jobs.retain(is_wanted);
    let words = jobs.iter().map(|job| word(job.id.to_string(), &job.name));
    words.collect()
}

/// What `help` explains.
fn topics() -> Vec<CompletionCandidate> {
    let cli = crate::Cli::command();
    let mut words = Vec::new();
    for verb in cli.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let about = verb.get_about().map(ToString::to_string);
        words.push(word(verb.get_name(), about.unwrap_or_default()));
    }
    words.extend(PAGES.map(|page| word(page.name, page.about)));
    words
}
