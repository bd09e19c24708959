//! What a path on the command line names: a comparison, or runs.

use crate::exit::usage;
use crate::input::told;
use crate::run_files::{RECORD, SERIES, open_file, open_series, record_beside, series_beside};
use anyhow::Context as _;
use cosched_experiments::comparison::COMPARISON_FILE;
use cosched_report::{RECORD_SCHEMA, Record, SERIES_SCHEMA, is_of_run};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The files of a run. At least one of them is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunFiles {
    /// What the reader calls it.
    pub(super) label: String,
    pub(super) record: Option<PathBuf>,
    pub(super) series: Option<PathBuf>,
}

/// What is to be reported on.
#[derive(Debug)]
pub(super) enum Source {
    Comparison(PathBuf),
    Runs(Vec<RunFiles>),
}

/// What these paths name.
///
/// # Errors
/// One of them is neither a comparison nor a run; or there is a comparison and something else.
pub(super) fn find(paths: &[PathBuf]) -> anyhow::Result<Source> {
    let mut runs: Vec<RunFiles> = Vec::new();
    for path in paths {
        match one(path)? {
            Source::Comparison(_) if paths.len() > 1 => {
                return Err(usage(format!(
                    "{}: this is a comparison; report on it alone",
                    told(path)
                )));
            }
            Source::Comparison(folder) => return Ok(Source::Comparison(folder)),
            Source::Runs(more) => runs.extend(more),
        }
    }
    // The same run can be named in two ways.
    let mut known = std::collections::BTreeSet::new();
    runs.retain(|run| {
        let file = run.record.as_ref().or(run.series.as_ref());
        known.insert(file.map(|file| std::fs::canonicalize(file).unwrap_or_else(|_| file.clone())))
    });
    Ok(Source::Runs(runs))
}

fn one(path: &Path) -> anyhow::Result<Source> {
    let meta =
        std::fs::metadata(path).map_err(|error| usage(format!("{}: {error}", told(path))))?;
    if !meta.is_dir() {
        return file(path);
    }
    if path.join(COMPARISON_FILE).exists() {
        return Ok(Source::Comparison(path.to_owned()));
    }
    if let Some(run) = folder(path, &name_of(path)) {
        return Ok(Source::Runs(vec![run]));
    }
    let mut below: Vec<PathBuf> = path
        .read_dir()
        .with_context(|| format!("reading {}", told(path)))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    let runs: Vec<RunFiles> = below
        .iter()
        .filter_map(|path| folder(path, &name_of(path)))
        .collect();
    if runs.is_empty() {
        return Err(usage(format!(
            "{}: there is no run in this folder, nor in a folder in it; a run has run.json or series.jsonl there, and a \
             comparison has {COMPARISON_FILE}",
            told(path)
        )));
    }
    Ok(Source::Runs(runs))
}

/// What a reader calls a folder or file.
fn name_of(path: &Path) -> String {
    let whole = crate::input::absolute(path);
    whole
        .file_name()
        .map_or_else(|| told(path), |name| told(Path::new(name)))
}

fn file_in(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|file| file.is_file())
}

/// The run in a log folder.
fn folder(path: &Path, label: &str) -> Option<RunFiles> {
    let (record, series) = (file_in(path, RECORD), file_in(path, SERIES));
    (record.is_some() || series.is_some()).then(|| RunFiles {
        label: label.to_owned(),
        record,
        series,
    })
}

/// The record beside a series, if it can be read and is of the same run: who names a series of a damaged record wants what it
/// tells by itself.
fn record_of(series: &Path) -> Option<PathBuf> {
    let file = record_beside(series).filter(|file| file.is_file())?;
    let record = Record::from_json(&std::fs::read_to_string(&file).ok()?).ok()?;
    is_of_run(&record, open_series(series).ok()?.header()).then_some(file)
}

/// Whether a schema is named near the beginning of a file.
fn has_schema(begin: &str, schema: &str) -> bool {
    begin
        .split_once(schema)
        .is_some_and(|(before, _)| before.len() < 40)
}

/// So much of a file tells what it is.
const BEGINNING: u64 = 4096;

fn file(path: &Path) -> anyhow::Result<Source> {
    let begin = beginning(path)?;
    let mut files = RunFiles {
        label: name_of(path),
        record: None,
        series: None,
    };
    if has_schema(&begin, SERIES_SCHEMA) {
        files.record = record_of(path);
        files.series = Some(path.to_owned());
    } else if has_schema(&begin, RECORD_SCHEMA) {
        files.series = series_beside(path).filter(|file| file.is_file());
        files.record = Some(path.to_owned());
    } else {
        return Err(refused(path, &begin));
    }
    Ok(Source::Runs(vec![files]))
}

fn beginning(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    open_file(path)?
        .take(BEGINNING)
        .read_to_end(&mut bytes)
        .with_context(|| format!("reading {}", told(path)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The error of a file that is no file of a run.
fn refused(path: &Path, begin: &str) -> anyhow::Error {
    if has_schema(begin, "cosched.compare/") || has_schema(begin, "cosched.comparison/") {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = told(folder.unwrap_or(Path::new(".")));
        return usage(format!(
            "{}: report on the folder of the comparison, {folder}",
            told(path)
        ));
    }
    usage(format!(
        "{}: this is no run record ({RECORD_SCHEMA}) and no series ({SERIES_SCHEMA}); name one of them, or a folder that holds \
         runs or a comparison",
        told(path)
    ))
}
