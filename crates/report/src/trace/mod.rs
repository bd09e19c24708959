//! A run as a trace for Perfetto: who had which CPU, what each job did and why it waited, and counters over time.
//!
//! A trace is in the Trace Event Format, JSON that Perfetto and other viewers open. It comes from a series, row by row.
//! [`event`] writes events, [`convert`] turns rows into them, with [`names`] for their
//! names and values and [`sums`] for sums over all jobs. `docs/formats.md` describes the contents.

mod convert;
mod event;
mod names;
mod sums;
#[cfg(test)]
mod tests;

use crate::series::in_order::RowsInOrder;
use crate::series::{SeriesError, SeriesReader};
use convert::Converter;
use cosched_core::Nanos;
use std::io::{self, BufRead, Write};

/// A trace that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The series cannot be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The trace cannot be written.
    #[error("cannot write the trace")]
    Write(#[from] io::Error),
}

/// A trace that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDone {
    /// The time of the last row, from the start of the run.
    pub until: Nanos,
    /// The last line of the series was cut off, and left out: the run is live, or was killed.
    pub cut_off: bool,
}

/// Write the trace of a run from its series, in one pass.
///
/// # Errors
/// The series cannot be read, or the trace cannot be written. The output is then no whole trace.
pub fn write_trace<R: BufRead, W: Write>(
    series: &mut SeriesReader<R>,
    out: W,
) -> Result<TraceDone, TraceError> {
    let header = series.header().clone();
    let mut converter = Converter::new(out, &header)?;
    for row in RowsInOrder::new(series) {
        let (at, row) = row?;
        converter.row(at, &row)?;
    }
    Ok(TraceDone {
        until: converter.finish()?,
        cut_off: series.cut_off(),
    })
}

/// Whether a file that begins so was written by [`write_trace`].
pub fn is_trace(begin: &[u8]) -> bool {
    begin.starts_with(event::BEGIN.as_bytes())
}
