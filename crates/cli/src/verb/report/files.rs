//! Opens files of runs.

use crate::exit::usage;
use crate::input::told;
use cosched_report::SeriesReader;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Opens a series.
///
/// # Errors
/// It can't be read, or is none.
pub(super) fn open_series(path: &Path) -> anyhow::Result<SeriesReader<BufReader<File>>> {
    let name = told(path);
    let file = File::open(path).map_err(|error| usage(format!("{name}: {error}")))?;
    SeriesReader::new(BufReader::new(file), &name).map_err(|error| usage(error.to_string()))
}
