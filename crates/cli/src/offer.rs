//! Words that a shell offers for values of several verbs.

use crate::input::spec;
use crate::live::{LOGS, LiveRunStatus, known, run_folders};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use cosched_core::metric::METRICS;
use cosched_linux::root::Root;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A word, and what is known of it.
pub fn word(word: impl Into<OsString>, about: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(about.into().into()))
}

/// Files.
pub fn file(begin: &OsStr) -> Vec<CompletionCandidate> {
    let mut files = PathCompleter::any().complete(begin);
    files.retain(|file| file.get_value() != ".");
    files
}

/// Programs in PATH, and files.
pub fn program_or_file(begin: &OsStr) -> Vec<CompletionCandidate> {
    or_file(programs(begin), begin)
}

/// Built-in machines, and files.
pub fn machine_or_file(begin: &OsStr) -> Vec<CompletionCandidate> {
    or_file(names(spec::machine_names()), begin)
}

/// Log folders, and files.
pub fn folder_or_file(begin: &OsStr) -> Vec<CompletionCandidate> {
    or_file(folders(), begin)
}

/// Live runs, log folders, and files.
pub fn run_or_file(begin: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = runs();
    words.extend(folders());
    or_file(words, begin)
}

/// The words that begin so, and files.
fn or_file(mut words: Vec<CompletionCandidate>, begin: &OsStr) -> Vec<CompletionCandidate> {
    let begin_bytes = begin.as_encoded_bytes();
    words.retain(|word| word.get_value().as_encoded_bytes().starts_with(begin_bytes));
    words.extend(file(begin));
    words
}

/// Names, of which nothing else is known.
pub fn names<T: Into<OsString>>(names: impl IntoIterator<Item = T>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Policies.
pub fn policies() -> Vec<CompletionCandidate> {
    names(spec::policy_names())
}

/// Metrics.
pub fn metrics() -> Vec<CompletionCandidate> {
    names(METRICS.iter().map(|metric| metric.name))
}

/// The live runs, by their processes. Another container's may have the same ones.
pub fn runs() -> Vec<CompletionCandidate> {
    let mut words = Vec::new();
    for run in known(&Root::default()).into_iter().filter(is_seen) {
        let folder = run.status.ok().and_then(|status| status.run.folder.clone());
        words.push(word(run.run.pid.to_string(), folder.unwrap_or_default()));
    }
    words
}

fn is_seen(known: &LiveRunStatus) -> bool {
    known.run.is_seen
}

/// The log folders in the default folder, the last first.
fn folders() -> Vec<CompletionCandidate> {
    let mut folders = run_folders(Path::new(LOGS));
    folders.sort();
    folders.reverse();
    names(folders)
}

/// The programs in PATH whose names begin so; none for an empty word.
fn programs(begin: &OsStr) -> Vec<CompletionCandidate> {
    let path = std::env::var_os("PATH").filter(|_| !begin.is_empty());
    let mut found = Vec::new();
    for folder in std::env::split_paths(&path.unwrap_or_default()) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let begins = name
                .as_encoded_bytes()
                .starts_with(begin.as_encoded_bytes());
            if begins && is_program(&entry.path()) {
                found.push(name);
            }
        }
    }
    found.sort();
    found.dedup();
    names(found)
}

fn is_program(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
