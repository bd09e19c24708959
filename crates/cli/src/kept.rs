//! The files that a run has left, and the run that a user means by a path, by a process, or by nothing at all.

use crate::exit::usage;
use crate::input::told;
use crate::live::{Known, known, meant};
use cosched_linux::root::Root;
use cosched_linux::{Fate, LiveRun, fate_of};
use cosched_report::{BackendKind, JOBLOG_HEADER, SeriesHeader, SeriesReader};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// The series in a log folder.
pub(crate) const SERIES: &str = "series.jsonl";
/// The record in a log folder.
pub(crate) const RECORD: &str = "run.json";
/// Where runs leave their folders unless they are told otherwise.
const LOGS: &str = "cosched-logs";

/// Opens a file of a run. Nothing else than a regular file is opened: others can keep a reader waiting for ever.
///
/// # Errors
/// It can't be read, or is no regular file.
pub(crate) fn open_file(path: &Path) -> anyhow::Result<File> {
    let named = |problem: &dyn std::fmt::Display| usage(format!("{}: {problem}", told(path)));
    let kind = std::fs::metadata(path).map_err(|error| named(&error))?;
    if !kind.is_file() {
        return Err(named(
            &"it is no regular file; name a log folder, a record or a series",
        ));
    }
    File::open(path).map_err(|error| named(&error))
}

/// Whether the run of a series goes on.
pub(crate) fn goes_on(header: &SeriesHeader) -> bool {
    let is_alive = |run: &str| fate_of(&Root::default(), run) == Fate::Alive;
    header.backend == BackendKind::Host && header.run_id.as_deref().is_some_and(is_alive)
}

/// Opens a series.
///
/// # Errors
/// It can't be read, or is none.
pub(crate) fn open_series(path: &Path) -> anyhow::Result<SeriesReader<BufReader<File>>> {
    let name = told(path);
    let file = open_file(path)?;
    SeriesReader::new(BufReader::new(file), &name).map_err(|error| usage(error.to_string()))
}

/// The series of the run that is meant: by its log folder, its record, its series, or, while it goes on, also by its process
/// or its identity. Without a name it is the newest run in `cosched-logs`; where there is none, the only one that goes on.
///
/// # Errors
/// No run is meant, or it has left no series.
pub(crate) fn series_of(run: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(path) = run else { return by_default() };
    if path.is_dir() {
        return in_folder(path);
    }
    if !path.exists() {
        let named = path
            .to_str()
            .filter(|name| !name.contains('/'))
            .map(|name| meant(&Root::default(), name));
        return match named {
            Some(Ok(run)) => of_live(&run),
            Some(Err(_)) => {
                let advice = "name a log folder, a record or a series, or a run that goes on as `cosched status` lists it";
                Err(usage(format!(
                    "{}: there is no such file, and no such run goes on; {advice}",
                    told(path)
                )))
            }
            None => Err(usage(format!("{}: No such file or directory", told(path)))),
        };
    }
    if path.extension().is_some_and(|end| end == "json") {
        let series = series_beside(path).filter(|file| file.is_file());
        let advice = "there is no series beside this record; name the log folder of the run";
        return series.ok_or_else(|| usage(format!("{}: {advice}", told(path))));
    }
    if is_joblog(path) {
        let file = told(path);
        return Err(usage(format!(
            "{file}: this is a job log, which can be of several runs; name the log folder of one of them, as {file}.runs lists \
             them"
        )));
    }
    Ok(path.to_owned())
}

fn is_joblog(path: &Path) -> bool {
    let mut begin = Vec::new();
    let header = JOBLOG_HEADER.trim_end().as_bytes();
    let read = open_file(path).is_ok_and(|file| {
        file.take(header.len() as u64)
            .read_to_end(&mut begin)
            .is_ok()
    });
    read && begin == header
}

fn in_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let series = folder.join(SERIES);
    if series.exists() {
        return Ok(series);
    }
    let advice = match newest_in(folder) {
        Some(newest) => format!("the last of the runs in it is {}", told(&newest)),
        None => "give the log folder of a run (`--logs`), or its series; a run with `--no-logs` leaves none".to_owned(),
    };
    Err(usage(format!(
        "{}: there is no {SERIES} in it; {advice}",
        told(folder)
    )))
}

fn of_live(run: &Known) -> anyhow::Result<PathBuf> {
    let told_run = |why: &str| usage(format!("run {}: {why}", run.run.run));
    let (status, _) = run.status.as_ref().map_err(|why| told_run(why))?;
    let absent = || {
        told_run(
            status
                .run
                .absent
                .why("series")
                .unwrap_or("it keeps no series"),
        )
    };
    status
        .run
        .series
        .as_ref()
        .map(PathBuf::from)
        .ok_or_else(absent)
}

fn by_default() -> anyhow::Result<PathBuf> {
    if let Some(newest) = newest_in(Path::new(LOGS)) {
        return Ok(newest.join(SERIES));
    }
    let own = rustix::process::geteuid().as_raw();
    match &known(&Root::default(), |run: &LiveRun| {
        run.owner == own && run.has_window()
    })[..]
    {
        [only] => of_live(only),
        [] => Err(usage(format!(
            "there is no run in {LOGS} here, and none goes on; name the log folder of one"
        ))),
        _ => Err(usage(format!(
            "there is no run in {LOGS} here, and several go on; name one of them, as `cosched status` lists them"
        ))),
    }
}

/// The run in a folder of runs whose series was written last.
fn newest_in(folder: &Path) -> Option<PathBuf> {
    let written = |run: PathBuf| Some((run.join(SERIES).metadata().ok()?.modified().ok()?, run));
    folder
        .read_dir()
        .ok()?
        .filter_map(|entry| written(entry.ok()?.path()))
        .max()
        .map(|(_, run)| run)
}

/// The series beside a record. In a log folder it is `series.jsonl`, beside the file of `--record` it has its name; that file
/// can be called `run.json` as well.
pub(crate) fn series_beside(record: &Path) -> Option<PathBuf> {
    let name = record.file_name()?.to_str()?;
    let named = record.with_file_name(format!("{}.series.jsonl", name.strip_suffix(".json")?));
    let in_folder = record.with_file_name(SERIES);
    Some(
        if name == RECORD && (in_folder.is_file() || !named.is_file()) {
            in_folder
        } else {
            named
        },
    )
}

/// What the record beside a series is called.
pub(crate) fn record_beside(series: &Path) -> Option<PathBuf> {
    let name = series.file_name()?.to_str()?;
    let record = if name == SERIES {
        RECORD.to_owned()
    } else {
        format!("{}.json", name.strip_suffix(".series.jsonl")?)
    };
    Some(series.with_file_name(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_series_lie_beside_each_other() {
        for (record, series) in [
            ("L/run.json", "L/series.jsonl"),
            ("r.json", "r.series.jsonl"),
            ("a.b.json", "a.b.series.jsonl"),
        ] {
            assert_eq!(
                series_beside(Path::new(record)).as_deref(),
                Some(Path::new(series))
            );
            assert_eq!(
                record_beside(Path::new(series)).as_deref(),
                Some(Path::new(record))
            );
        }
        assert_eq!(
            (
                series_beside(Path::new("r.txt")),
                record_beside(Path::new("r.jsonl"))
            ),
            (None, None)
        );
    }
}
