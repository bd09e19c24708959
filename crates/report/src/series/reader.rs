//! Reads a series line by line.

use super::{Row, SERIES_SCHEMA, SeriesHeader};
use crate::json::{self, JsonError};
use cosched_core::{CpuSet, Nanos, Switched};
use std::io::{self, BufRead, Read as _};

/// A series that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The file can't be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The first line is no header.
    #[error(
        "{file}: expected a series, whose first line says `\"schema\":\"{SERIES_SCHEMA}\"`: {problem}"
    )]
    Header {
        /// The file, as the caller named it.
        file: String,
        /// What is wrong.
        problem: JsonError,
    },
    /// A line can't be read.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// No line is longer, in bytes; what is longer is no series.
const MOST_LINE: u64 = 1 << 28;
/// No run takes longer: 146 years. Sums of such times can be told.
const MOST_TIME: Nanos = Nanos(u64::MAX / 4);

/// Reads a series, one line in memory at a time.
///
/// The last line may be cut off, because the disk was full or the run goes on. Reading then ends before it, and
/// [`SeriesReader::cut_off`] says so.
#[derive(Debug)]
pub struct SeriesReader<R> {
    file: String,
    input: R,
    header: SeriesHeader,
    /// The CPUs of the header's machine.
    cpus: CpuSet,
    line: usize,
    buffer: Vec<u8>,
    cut_off: bool,
    done: bool,
}

impl<R: BufRead> SeriesReader<R> {
    /// Reads the header; `file` names the file in errors.
    ///
    /// # Errors
    /// The file can't be read, or does not begin with a header.
    pub fn new(mut input: R, file: &str) -> Result<SeriesReader<R>, SeriesError> {
        let file = file.to_owned();
        let mut first = Vec::new();
        if let Err(error) = input.by_ref().take(MOST_LINE).read_until(b'\n', &mut first) {
            return Err(SeriesError::Io { file, error });
        }
        let text = String::from_utf8_lossy(&first);
        let header: SeriesHeader = match json::parse(text.trim_end()) {
            Ok(header) => header,
            Err(problem) => return Err(SeriesError::Header { file, problem }),
        };
        if header.schema != SERIES_SCHEMA {
            let problem = JsonError::at("schema", format!("found `{}`", header.schema));
            return Err(SeriesError::Header { file, problem });
        }
        Ok(SeriesReader {
            file,
            input,
            cpus: header.machine.all_cpus(),
            header,
            line: 1,
            buffer: Vec::new(),
            cut_off: false,
            done: false,
        })
    }

    /// The header.
    pub fn header(&self) -> &SeriesHeader {
        &self.header
    }

    /// The file, as the caller named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Whether the last line was cut off and left out; known once reading has ended.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    fn damaged(&self, problem: String) -> SeriesError {
        SeriesError::Line {
            file: self.file.clone(),
            line: self.line,
            problem,
        }
    }

    /// Whether a line can be of a run with this header.
    fn check(&self, at: Nanos, row: &Row) -> Result<(), String> {
        if at > MOST_TIME {
            return Err(format!(
                "column `t_ns`: {} ns are more than a run takes",
                at.0
            ));
        }
        let on = |column: &str, cpus: &CpuSet| match cpus.is_subset(&self.cpus) {
            true if !cpus.is_empty() => Ok(()),
            _ => Err(format!(
                "column `{column}`: `{cpus}`, but the header's machine has {}",
                self.cpus
            )),
        };
        match row {
            Row::Placed { cpus, .. } => on("cpus", cpus)?,
            Row::Switched(Switched::To { cpu, .. }) => on("cpu", &CpuSet::from_iter([*cpu]))?,
            _ => {}
        }
        let known = self.header.tasks.len();
        match row.task() {
            Some(task) if task.0 as usize >= known => Err(format!(
                "column `task`: {}, but the header has {known}",
                task.0
            )),
            _ => Ok(()),
        }
    }

    fn next_row(&mut self) -> Result<Option<(Nanos, Row)>, SeriesError> {
        loop {
            self.buffer.clear();
            match self
                .input
                .by_ref()
                .take(MOST_LINE)
                .read_until(b'\n', &mut self.buffer)
            {
                Ok(0) => return Ok(None),
                Ok(_) => self.line += 1,
                Err(error) => {
                    return Err(SeriesError::Io {
                        file: self.file.clone(),
                        error,
                    });
                }
            }
            if self.buffer.last() != Some(&b'\n') {
                // A number that was cut off still reads as a number, so only whole lines are accepted.
                self.cut_off = true;
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&self.buffer);
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            match Row::read(text) {
                Ok(Some((at, row))) => match self.check(at, &row) {
                    Ok(()) => return Ok(Some((at, row))),
                    Err(problem) => return Err(self.damaged(problem)),
                },
                Ok(None) => {}
                Err(problem) => return Err(self.damaged(problem)),
            }
        }
    }
}

impl<R: BufRead> Iterator for SeriesReader<R> {
    type Item = Result<(Nanos, Row), SeriesError>;

    /// The next line's time and content; after an error, nothing.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let row = self.next_row();
        self.done = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}
