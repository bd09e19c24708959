//! What a path on the command line names: a comparison, or runs.

use crate::exit::usage;
use crate::input::told;
use crate::live::{last_run, series_of};
use crate::run_files::{
    RECORD, SERIES, open_file, open_series, record_beside, series_beside, series_in,
};
use crate::stderr::say;
use anyhow::{Context as _, Result};
use cosched_experiments::comparison::COMPARISON_FILE;
use cosched_report::{RECORD_SCHEMA, RunRecord, SERIES_SCHEMA, is_of_run};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The files of a run. At least one of them is there.
#[derive(Clone, PartialEq, Eq)]
pub struct RunFiles {
    /// What the reader calls it.
    pub label: String,
    pub record: Option<PathBuf>,
    pub series: Option<PathBuf>,
}

/// What is to be reported on.
pub enum ReportSource {
    Comparison(PathBuf),
    Runs(Vec<RunFiles>),
}

/// What these paths name; without one, the last run.
///
/// # Errors
/// One of them is neither a comparison nor a run; or there is a comparison and something else.
pub fn find(paths: &[PathBuf]) -> Result<ReportSource> {
    let last = match paths {
        [] => vec![last_run()?],
        _ => Vec::new(),
    };
    let mut runs: Vec<RunFiles> = Vec::new();
    for path in paths.iter().chain(&last) {
        match one(path)? {
            ReportSource::Runs(more) => runs.extend(more),
            ReportSource::Comparison(folder) if paths.len() == 1 => {
                return Ok(ReportSource::Comparison(folder));
            }
            ReportSource::Comparison(_) => {
                let path = told(path);
                return Err(usage(format!(
                    "{path}: this is a comparison; report on it alone"
                )));
            }
        }
    }
    // The same run can be named in two ways.
    let mut known = BTreeSet::new();
    runs.retain(|run| {
        let file = run.record.as_ref().or(run.series.as_ref());
        match file.and_then(|file| file.canonicalize().ok()) {
            Some(file) => known.insert(file),
            None => true,
        }
    });
    Ok(ReportSource::Runs(runs))
}

fn one(path: &Path) -> Result<ReportSource> {
    if let Ok(false) = path.try_exists() {
        // The process of a live run.
        let series = series_of(Some(path))?;
        return one(series.parent().unwrap_or(&series));
    }
    if !path.is_dir() {
        return file(path);
    }
    if path.join(COMPARISON_FILE).exists() {
        return Ok(ReportSource::Comparison(path.to_owned()));
    }
    if let Some(run) = folder(path) {
        return Ok(ReportSource::Runs(vec![run]));
    }
    if let Some(empty) = file_in(path, SERIES) {
        // It says why there is nothing to show.
        open_series(&empty)?;
    }
    let entries = path.read_dir();
    let entries = entries.with_context(|| format!("reading {}", told(path)))?;
    let inner: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let mut runs: Vec<RunFiles> = inner.iter().filter_map(|path| folder(path)).collect();
    if runs.is_empty() {
        if let Some(last) = last_comparison(inner) {
            say(format_args!(
                "cosched: this is the last comparison, {}",
                told(&last)
            ));
            return Ok(ReportSource::Comparison(last));
        }
        let path = told(path);
        return Err(usage(format!(
            "{path}: no run in this folder: it has no run.json, series.jsonl or {COMPARISON_FILE}, and no folder in it has one"
        )));
    }
    runs.sort_by(|a, b| a.label.cmp(&b.label));
    Ok(ReportSource::Runs(runs))
}

/// The comparison among these folders that was written last.
fn last_comparison(mut folders: Vec<PathBuf>) -> Option<PathBuf> {
    folders.retain(|folder| folder.join(COMPARISON_FILE).exists());
    let written = |folder: &PathBuf| folder.join(COMPARISON_FILE).metadata()?.modified();
    folders
        .into_iter()
        .max_by_key(|folder| written(folder).ok())
}

/// What a reader calls a folder or file.
fn name_of(path: &Path) -> String {
    match crate::input::absolute(path).file_name() {
        Some(name) => told(Path::new(name)),
        None => told(path),
    }
}

fn file_in(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|file| file.is_file())
}

/// The run in a log folder.
fn folder(path: &Path) -> Option<RunFiles> {
    let record = file_in(path, RECORD);
    let series = series_in(path);
    if record.is_none() && series.is_none() {
        return None;
    }
    Some(RunFiles {
        label: name_of(path),
        record,
        series,
    })
}

/// The record beside a series, if it can be read and is of the same run: who names a series of a damaged record wants what it
/// tells by itself.
fn record_of(series: &Path) -> Option<PathBuf> {
    let file = record_beside(series).filter(|file| file.is_file())?;
    let record = RunRecord::from_json(&std::fs::read_to_string(&file).ok()?).ok()?;
    is_of_run(&record, open_series(series).ok()?.header()).then_some(file)
}

/// Whether a schema is named near the beginning of a file.
fn has_schema(begin: &str, schema: &str) -> bool {
    match begin.split_once(schema) {
        Some((before, _)) => before.len() < 40,
        None => false,
    }
}

/// So much of a file tells what it is.
const BEGINNING: u64 = 4096;

fn file(path: &Path) -> Result<ReportSource> {
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
    Ok(ReportSource::Runs(vec![files]))
}

fn beginning(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    open_file(path)?
        .take(BEGINNING)
        .read_to_end(&mut bytes)
        .with_context(|| format!("reading {}", told(path)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The error of a file that is no file of a run.
fn refused(path: &Path, begin: &str) -> anyhow::Error {
    let name = told(path);
    if has_schema(begin, "cosched.compare/") || has_schema(begin, "cosched.comparison/") {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => told(folder),
            _ => ".".to_owned(),
        };
        return usage(format!(
            "{name}: report on the folder of the comparison, {folder}"
        ));
    }
    usage(format!(
        "{name}: this is no run record ({RECORD_SCHEMA}) and no series ({SERIES_SCHEMA})"
    ))
}
