//! The reader of a series, line by line.

use super::{SERIES_SCHEMA, SeriesHeader, SeriesRow, SeriesTask};
use crate::json::{self, JsonError};
use cosched_core::{CpuSet, Nanos, Switched};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Take};

/// A series that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The file is empty.
    #[error("{file}: its run ended before a job of it began, so there is nothing to show")]
    Empty {
        /// The file, as the caller named it.
        file: String,
    },
    /// The first line is no header.
    #[error(
        "{file}: expected a series, whose first line says `\"schema\":\"{SERIES_SCHEMA}\"`: {problem}"
    )]
    Header {
        /// The file, as the caller named it.
        file: String,
        /// The problem.
        problem: JsonError,
    },
    /// A line cannot be read.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// Longest line in bytes; a file with a longer one is no series.
const MAX_LINE: u64 = 1 << 28;
/// Longest time of a row, 146 years: sums of such times do not overflow.
const MAX_TIME: Nanos = Nanos(u64::MAX / 4);

/// A reader of a series, with one line in memory at a time.
///
/// The last line may be cut off, because the disk was full or the run goes on. Reading then ends before it, and
/// [`SeriesReader::cut_off`] says so.
#[derive(Debug)]
pub struct SeriesReader<R> {
    file: String,
    input: R,
    header: SeriesHeader,
    /// In bytes, with its end.
    header_length: u64,
    /// The CPUs of the header's machine.
    cpus: CpuSet,
    line: usize,
    buffer: Vec<u8>,
    cut_off: bool,
    done: bool,
}

/// Check that rows can refer to this header.
fn check_header(header: &SeriesHeader) -> Result<(), String> {
    header
        .machine
        .validate()
        .map_err(|error| format!("key `machine`: {error}"))?;
    for (number, task) in header.tasks.iter().enumerate() {
        if task.task as usize != number {
            return Err(format!(
                "key `tasks`: found task {} in place of {number}",
                task.task
            ));
        }
    }
    Ok(())
}

/// A series in a file, as it is when it is opened: lines that its run writes later are not read.
pub type SeriesFile = SeriesReader<BufReader<Take<File>>>;

impl SeriesFile {
    /// Read the header, and tasks in lines of their own; `name` names the file in errors.
    ///
    /// # Errors
    /// As [`SeriesReader::new`]; or a line of a task cannot be read.
    pub fn open(file: File, name: &str) -> Result<SeriesFile, SeriesError> {
        let refused = |error| SeriesError::Io {
            file: name.to_owned(),
            error,
        };
        let length = file.metadata().map_err(refused)?.len();
        let mut reader = SeriesReader::new(BufReader::new(file.take(length)), name)?;
        if reader.header.open {
            let tasks = reader.tasks()?;
            reader.header.tasks.extend(tasks);
            reader = reader.again(length).map_err(refused)?;
        }
        Ok(reader)
    }

    /// Goes back to the line after the header, in a file that was so long when it was opened.
    fn again(self, length: u64) -> io::Result<SeriesFile> {
        let mut file = self.input.into_inner().into_inner();
        file.seek(SeekFrom::Start(self.header_length))?;
        Ok(SeriesReader {
            input: BufReader::new(file.take(length - self.header_length)),
            line: 1,
            cut_off: false,
            ..self
        })
    }
}

impl<R: BufRead> SeriesReader<R> {
    /// Read the tasks in lines of their own.
    fn tasks(&mut self) -> Result<Vec<SeriesTask>, SeriesError> {
        let mut tasks = Vec::new();
        let first = self.header.tasks.len();
        while self.read_line()? {
            if !self.buffer.starts_with(b"[\"t\"") {
                continue;
            }
            let text = String::from_utf8_lossy(&self.buffer);
            let row = SeriesRow::read(text.trim()).map_err(|problem| self.damaged(problem))?;
            let Some((_, SeriesRow::Came(task))) = row else {
                continue;
            };
            let should = first + tasks.len();
            if task.task as usize != should {
                let problem = format!("found task {} in place of {should}", task.task);
                return Err(self.damaged(problem));
            }
            tasks.push(*task);
        }
        Ok(tasks)
    }

    /// Read the header; `file` names the file in errors.
    ///
    /// # Errors
    /// The file cannot be read, or does not begin with a header.
    pub fn new(mut input: R, file: &str) -> Result<SeriesReader<R>, SeriesError> {
        let file = file.to_owned();
        let mut first = Vec::new();
        if let Err(error) = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut first) {
            return Err(SeriesError::Io { file, error });
        }
        if first.is_empty() {
            return Err(SeriesError::Empty { file });
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
        if let Err(problem) = check_header(&header) {
            return Err(SeriesError::Line {
                file,
                line: 1,
                problem,
            });
        }
        Ok(SeriesReader {
            file,
            input,
            cpus: header.machine.all_cpus(),
            header,
            header_length: first.len() as u64,
            line: 1,
            buffer: Vec::new(),
            cut_off: false,
            done: false,
        })
    }

    /// Return the header.
    pub fn header(&self) -> &SeriesHeader {
        &self.header
    }

    /// Whether the last line was cut off and left out; valid once reading has ended.
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

    /// Check that a row can belong to a run with this header.
    fn check(&self, at: Nanos, row: &SeriesRow) -> Result<(), String> {
        if at > MAX_TIME {
            return Err(format!(
                "column `t_ns`: {} ns are longer than any run",
                at.0
            ));
        }
        match row {
            SeriesRow::Placed { cpus, .. } => self.check_cpus("cpus", cpus)?,
            SeriesRow::Switched(Switched::To { cpu, .. }) => {
                self.check_cpus("cpu", &CpuSet::from_iter([*cpu]))?;
            }
            _ => {}
        }
        let count = self.header.tasks.len();
        match row.task() {
            Some(task) if task.0 as usize >= count => Err(format!(
                "column `task`: {}, but the header has {count}",
                task.0
            )),
            _ => Ok(()),
        }
    }

    fn check_cpus(&self, column: &str, cpus: &CpuSet) -> Result<(), String> {
        if !cpus.is_empty() && cpus.is_subset(&self.cpus) {
            return Ok(());
        }
        Err(format!(
            "column `{column}`: `{cpus}`, but the header's machine has {}",
            self.cpus
        ))
    }

    fn next_row(&mut self) -> Result<Option<(Nanos, SeriesRow)>, SeriesError> {
        while self.read_line()? {
            let text = String::from_utf8_lossy(&self.buffer);
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let row = SeriesRow::read(text).map_err(|problem| self.damaged(problem))?;
            if let Some((at, row)) = row {
                self.check(at, &row)
                    .map_err(|problem| self.damaged(problem))?;
                return Ok(Some((at, row)));
            }
        }
        Ok(None)
    }

    /// Read a whole line into the buffer; `false` at the end.
    fn read_line(&mut self) -> Result<bool, SeriesError> {
        self.buffer.clear();
        let mut line = self.input.by_ref().take(MAX_LINE);
        let length = line
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| SeriesError::Io {
                file: self.file.clone(),
                error,
            })?;
        self.line += usize::from(length > 0);
        // A number that was cut off still parses, so only whole lines count.
        let is_whole = self.buffer.last() == Some(&b'\n');
        self.cut_off = length > 0 && !is_whole;
        Ok(is_whole)
    }
}

impl<R: BufRead> Iterator for SeriesReader<R> {
    type Item = Result<(Nanos, SeriesRow), SeriesError>;

    /// Return the next row and its time; nothing after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let row = self.next_row();
        self.done = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}
