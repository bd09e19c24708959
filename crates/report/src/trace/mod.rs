//! A run as a trace for Perfetto: who had which CPU, what each job did and why it waited, and counters over time.
//!
//! The trace is made of a series, row by row, and of the record if there is one. [`wire`] is the format of its bytes,
//! [`packet`] that of its packets, [`tracks`] says which tracks there are. [`turn`] brings the rows into the order in
//! which they count; [`convert`] turns them into events, with [`stage`] for what goes on at a time, [`job`] for what is
//! told of a job, and [`sweep`] for counters. `docs/formats.md` describes what a trace holds.

mod convert;
#[cfg(test)]
mod decoded;
mod job;
mod packet;
mod stage;
mod sweep;
#[cfg(test)]
mod tests;
mod tracks;
mod turn;
mod wire;

use crate::record::Record;
use crate::series::{SeriesError, SeriesHeader, SeriesReader};
use convert::{Converter, Refused};
use cosched_core::Nanos;
use std::io::{self, BufRead, Write};
use turn::Turns;

/// A trace that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The series can't be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The header of the series contradicts itself.
    #[error("{file}, line 1: {problem}")]
    Header {
        /// The file, as the caller named it.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A row contradicts the header.
    #[error("{file}, line {line}: {problem}")]
    Row {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the column's name.
        problem: String,
    },
    /// The trace can't be written.
    #[error("the trace can't be written")]
    Write(#[source] io::Error),
}

/// What a trace came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDone {
    /// The time of the last row, from the start of the run.
    pub until: Nanos,
    /// Packets that were written: descriptions of tracks, and events.
    pub packets: u64,
    /// The last line of the series was cut off, and left out: the run goes on, or was killed.
    pub cut_off: bool,
}

/// Whether a record and a series are of the same run, as far as both tell.
pub fn is_of_run(record: &Record, header: &SeriesHeader) -> bool {
    let names = record.jobs.iter().map(|job| &job.name);
    record.run_id == header.run_id
        && record.policy == header.policy
        && record.seed == header.seed
        && names.eq(header.tasks.iter().map(|task| &task.name))
}

/// Writes the trace of a run from its series. The record, if there is one, adds slowdowns and solo times to the ends of
/// jobs; see [`is_of_run`]. The series is read once, and only what goes on at a time is in memory.
///
/// # Errors
/// The series can't be read or contradicts itself, or the trace can't be written. What was written by then is no whole
/// trace.
pub fn write_trace<R: BufRead, W: Write>(
    series: &mut SeriesReader<R>,
    record: Option<&Record>,
    out: W,
) -> Result<TraceDone, TraceError> {
    let file = series.file().to_owned();
    let header = series.header().clone();
    check(&header).map_err(|problem| TraceError::Header {
        file: file.clone(),
        problem,
    })?;
    let mut converter = Converter::new(out, &header, record).map_err(TraceError::Write)?;
    for read in Turns::new(series) {
        let read = read?;
        converter
            .row(read.at, &read.row)
            .map_err(|refused| match refused {
                Refused::Row(problem) => TraceError::Row {
                    file: file.clone(),
                    line: read.line,
                    problem,
                },
                Refused::Io(error) => TraceError::Write(error),
            })?;
    }
    let (until, packets) = converter.finish().map_err(TraceError::Write)?;
    Ok(TraceDone {
        until,
        packets,
        cut_off: series.cut_off(),
    })
}

/// Whether a file that begins so is a trace that [`write_trace`] wrote: its first packet describes the track of the CPUs.
pub fn is_trace(begin: &[u8]) -> bool {
    // Before the name come the tags and lengths of four messages, and the track's number.
    let head = &begin[..begin.len().min(32)];
    head.starts_with(b"\x0a")
        && head
            .windows(tracks::FIRST_NAME.len())
            .any(|part| part == tracks::FIRST_NAME.as_bytes())
}

/// Whether rows can be understood by this header.
fn check(header: &SeriesHeader) -> Result<(), String> {
    header
        .machine
        .validate()
        .map_err(|error| format!("key `machine`: {error}"))?;
    match header
        .tasks
        .iter()
        .zip(0..)
        .find(|(task, number)| task.task != *number)
    {
        Some((task, number)) => Err(format!(
            "key `tasks`: task {} stands where {number} should",
            task.task
        )),
        None => Ok(()),
    }
}
