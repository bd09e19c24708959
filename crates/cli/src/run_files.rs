//! The record and the series of a run: their names, and how they are opened.

use crate::exit::{OrUsage as _, usage};
use crate::input::told;
use anyhow::Result;
use cosched_report::SeriesFile;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The series in a log folder.
pub const SERIES: &str = "series.jsonl";
/// The record in a log folder.
pub const RECORD: &str = "run.json";

/// Opens a file of a run. Others than regular files can block a reader for ever, and are refused.
///
/// # Errors
/// It can't be read, or is no regular file.
pub fn open_file(path: &Path) -> Result<File> {
    let name = told(path);
    let kind = std::fs::metadata(path).or_usage_in(&name)?;
    if !kind.is_file() {
        return Err(usage(format!(
            "{name}: it is no regular file; name a log folder, a record or a series"
        )));
    }
    File::open(path).or_usage_in(&name)
}

/// Opens a series.
///
/// # Errors
/// It can't be read, or is none.
pub fn open_series(path: &Path) -> Result<SeriesFile> {
    SeriesFile::open(open_file(path)?, &told(path)).or_usage()
}

/// The series in a log folder, unless it is empty: a run that ended before its first job leaves such a one.
pub fn series_in(folder: &Path) -> Option<PathBuf> {
    let series = folder.join(SERIES);
    let meta = series.metadata().ok()?;
    (meta.is_file() && meta.len() > 0).then_some(series)
}

/// The series beside a record: `series.jsonl` in a log folder, `NAME.series.jsonl` beside `--record NAME.json`.
pub fn series_beside(record: &Path) -> Option<PathBuf> {
    let name = record.file_name()?.to_str()?;
    let named = record.with_file_name(format!("{}.series.jsonl", name.strip_suffix(".json")?));
    let in_folder = record.with_file_name(SERIES);
    let is_in_folder = name == RECORD && (in_folder.is_file() || !named.is_file());
    Some(if is_in_folder { in_folder } else { named })
}

/// The record beside a series.
pub fn record_beside(series: &Path) -> Option<PathBuf> {
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
