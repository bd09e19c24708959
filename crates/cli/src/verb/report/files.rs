//! Opens files of runs.
//!
//! Other verbs that look at one run find its series here too.

use crate::exit::usage;
use crate::input::told;
use cosched_report::SeriesReader;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Opens a series.
///
/// # Errors
/// It can't be read, or is none.
pub(super) fn open_series(path: &Path) -> anyhow::Result<SeriesReader<BufReader<File>>> {
    let name = told(path);
    let file = File::open(path).map_err(|error| usage(format!("{name}: {error}")))?;
    SeriesReader::new(BufReader::new(file), &name).map_err(|error| usage(error.to_string()))
}

/// The series of a run, open.
pub(crate) struct Series {
    pub(crate) file: PathBuf,
    pub(crate) reader: SeriesReader<BufReader<File>>,
}

/// The series of the run that a path names: its log folder, its record, or the series itself.
///
/// # Errors
/// There is none, or it can't be read.
pub(crate) fn series_of(path: &Path) -> anyhow::Result<Series> {
    let file = match path {
        path if path.is_dir() => path.join("series.jsonl"),
        path if path.extension().is_some_and(|end| end == "json") => beside(path).ok_or_else(|| {
            usage(format!("{}: there is no series beside this record; name the log folder of the run", told(path)))
        })?,
        path => path.to_owned(),
    };
    let reader = open_series(&file)?;
    Ok(Series { file, reader })
}

/// Where runs leave their folders unless they are told otherwise.
const LOGS: &str = "cosched-logs";

/// The log folder in `cosched-logs` whose series was written last.
///
/// # Errors
/// There is none.
pub(crate) fn newest_run() -> anyhow::Result<PathBuf> {
    let none =
        || usage(format!("there is no run in {LOGS} here; name the log folder of one, as in `cosched why JOB FOLDER`"));
    let entries = Path::new(LOGS).read_dir().map_err(|_| none())?;
    let written = |folder: PathBuf| Some((folder.join("series.jsonl").metadata().ok()?.modified().ok()?, folder));
    let runs = entries.filter_map(|entry| written(entry.ok()?.path()));
    runs.max().map(|(_, folder)| folder).ok_or_else(none)
}

/// The series beside a record.
pub(super) fn beside(record: &Path) -> Option<PathBuf> {
    let named = if record.file_name().is_some_and(|name| name == "run.json") {
        record.with_file_name("series.jsonl")
    } else {
        record.with_extension("series.jsonl")
    };
    Some(named).filter(|file| file.is_file())
}
