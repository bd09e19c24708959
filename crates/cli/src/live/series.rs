//! The series of the run that a user means: by a path, by a process, or by nothing at all.

use super::find::{LiveRunStatus, chosen, meant};
use crate::exit::usage;
use crate::input::told;
use crate::run_files::{SERIES, open_series, series_beside, series_in};
use anyhow::Result;
use cosched_linux::root::Root;
use cosched_linux::{RunFate, fate_of};
use cosched_report::{BackendKind, SeriesHeader};
use std::path::{Path, PathBuf};

/// The default folder of the log folders.
pub const LOGS: &str = "cosched-logs";

/// Whether the run of a series goes on.
pub fn goes_on(header: &SeriesHeader) -> bool {
    let Some(run) = &header.run_id else {
        return false;
    };
    header.backend != BackendKind::Sim && fate_of(&Root::default(), run) == RunFate::Alive
}

/// The series of the run that is meant: by its log folder, its record, its series, or, while it goes on, also by its process
/// or its identity. Without a name it is the run in `cosched-logs` that was started last, or, if there is none, the only
/// live run.
///
/// # Errors
/// No run is meant, or it has left no series.
pub fn series_of(run: Option<&Path>) -> Result<PathBuf> {
    let Some(path) = run else {
        return last_or_live();
    };
    if path.is_dir() {
        return in_folder(path);
    }
    if !path.exists() {
        return of_name(path);
    }
    if path.extension().is_some_and(|end| end == "json") {
        let series = series_beside(path).filter(|file| file.is_file());
        return series.ok_or_else(|| {
            usage(format!(
                "{}: there is no series beside this record; name the log folder of the run",
                told(path)
            ))
        });
    }
    Ok(path.to_owned())
}

fn last_or_live() -> Result<PathBuf> {
    let none_here = match last_run() {
        Ok(run) => return Ok(run.join(SERIES)),
        Err(why) => why,
    };
    match chosen(&Root::default(), None)? {
        Some(run) => of_live(&run),
        None => Err(none_here),
    }
}

/// The series of a run that goes on, by its process or its identity.
fn of_name(name: &Path) -> Result<PathBuf> {
    let shown = told(name);
    let Some(name) = name.to_str().filter(|name| !name.contains('/')) else {
        return Err(usage(format!(
            "{shown}: there is no such file; name a log folder, as in {LOGS}/RUN"
        )));
    };
    match meant(&Root::default(), name) {
        Ok(run) => of_live(&run),
        Err(_) => Err(usage(format!(
            "{shown}: there is no such file and no such live run; name a log folder, as in {LOGS}/RUN"
        ))),
    }
}

fn in_folder(folder: &Path) -> Result<PathBuf> {
    let series = folder.join(SERIES);
    if series.exists() {
        return Ok(series);
    }
    let advice = match newest_in(folder) {
        Some(newest) => format!("the last of the runs in it is {}", told(&newest)),
        None => "give the log folder of a run; with `--no-logs` it leaves no series".to_owned(),
    };
    Err(usage(format!(
        "{}: there is no {SERIES} in it; {advice}",
        told(folder)
    )))
}

fn of_live(run: &LiveRunStatus) -> Result<PathBuf> {
    let id = &run.run.run;
    let status = run
        .status
        .as_ref()
        .map_err(|why| usage(format!("run {id}: {why}")))?;
    if let Some(series) = &status.run.series {
        return Ok(PathBuf::from(series));
    }
    let why = status.run.absent.why("series");
    let why = why.unwrap_or("it keeps no series");
    Err(usage(format!("run {id}: {why}")))
}

/// The log folder in `cosched-logs` of the run that was started last.
///
/// # Errors
/// There is none.
pub fn last_run() -> Result<PathBuf> {
    newest_in(Path::new(LOGS)).ok_or_else(|| {
        usage(format!(
            "there is no run in {LOGS} here; name a log folder or a live run"
        ))
    })
}

/// The run in a folder of runs that was started last.
fn newest_in(folder: &Path) -> Option<PathBuf> {
    let mut runs = Vec::new();
    for run in run_folders(folder) {
        if let Some(started) = started(&run.join(SERIES)) {
            runs.push((started, run));
        }
    }
    runs.into_iter().max().map(|(_, run)| run)
}

/// The log folders in a folder.
pub fn run_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|run| series_in(run).is_some());
    runs
}

/// The start of the run of a series, RFC 3339 in UTC. That of a simulation is when the series was written.
fn started(series: &Path) -> Option<String> {
    let written = series.metadata().ok()?.modified().ok()?;
    let header = open_series(series)
        .ok()
        .map(|series| series.header().started_at.clone());
    let written = humantime::format_rfc3339_millis(written).to_string();
    Some(header.flatten().unwrap_or(written))
}
