//! The job log in the format of GNU parallel's `--joblog`.
//!
//! One line per ended job, its nine columns separated by tabs: sequence number, host, start in seconds since the epoch,
//! run time in seconds, bytes sent, bytes received, exit value, signal, command (GNU parallel's manual, `--joblog`). As
//! there, times have three decimals, the run time is padded to ten characters, the host of a local job is `:`, a job
//! that a signal ended has exit value 0 and the signal's number, one that ran out of time has exit value -1, and a line
//! break in a command is a zero byte (seen with version 20221122).

use crate::sink::LineSink;
use crate::warning::{RunFile, RunWarning};
use cosched_core::{Exit, TaskResult};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::str::FromStr;
use std::time::Duration;

/// The first line, without its end.
pub const HEADER: &str =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";

/// The host of simulated jobs, which never count as done.
pub const SIMULATED_HOST: &str = "simulated";

/// How many columns a line has.
const COLUMNS: usize = 9;

/// No time in a job log is later, in seconds since 1970: year 10000, beyond which dates have no standard form.
const LATEST_S: f64 = 253_402_300_800.0;

/// One line of a job log.
#[derive(Debug, PartialEq)]
pub struct JobLogEntry {
    /// The job's number, from 1.
    pub seq: u64,
    /// Where it ran: `:` is this machine, [`SIMULATED_HOST`] a simulation.
    pub host: String,
    /// When it was started, in seconds since the epoch.
    pub start_s: f64,
    /// From its start to its end in seconds.
    pub runtime_s: f64,
    /// Its exit code; 0 if a signal ended it, -1 if it ran out of time or its status is not known.
    pub exit: i32,
    /// The signal that ended it; 0 for none.
    pub signal: i32,
    /// Its command.
    pub command: String,
}

impl JobLogEntry {
    /// The line of a job that ended. `run_start` is the start of the run since the epoch; it is `None` in a simulation,
    /// whose times count from 0 and whose host is [`SIMULATED_HOST`].
    pub fn of(
        result: &TaskResult,
        seq: u64,
        command: &str,
        run_start: Option<Duration>,
    ) -> JobLogEntry {
        let started = result.started.unwrap_or_default();
        let (exit, signal) = match result.exit.as_ref() {
            Some(Exit::Signal { signal, .. }) if result.timed_out => (-1, *signal),
            Some(_) if result.timed_out => (-1, 0),
            Some(Exit::Code(code)) => (*code, 0),
            Some(Exit::Signal { signal, .. }) => (0, *signal),
            // As if the signal had ended it: it must run again.
            Some(Exit::ToldToEnd) => (0, 15),
            Some(Exit::NotStarted(_)) => (127, 0),
            Some(Exit::Unknown) | None => (-1, 0),
        };
        JobLogEntry {
            seq,
            host: if run_start.is_some() {
                ":"
            } else {
                SIMULATED_HOST
            }
            .to_owned(),
            start_s: run_start.unwrap_or_default().as_secs_f64() + started.as_s(),
            runtime_s: result
                .finished
                .map_or(0.0, |finished| (finished - started).as_s()),
            exit,
            signal,
            command: command.to_owned(),
        }
    }

    /// Whether the job ended with code 0.
    pub fn ok(&self) -> bool {
        self.exit == 0 && self.signal == 0
    }

    /// The entry as a line, with its line end.
    pub fn to_line(&self) -> String {
        let JobLogEntry {
            seq,
            host,
            start_s,
            runtime_s,
            exit,
            signal,
            command,
        } = self;
        let command = command.replace('\n', "\0");
        format!(
            "{seq}\t{host}\t{start_s:.3}\t{runtime_s:10.3}\t0\t0\t{exit}\t{signal}\t{command}\n"
        )
    }

    /// Reads a line, given without its line end.
    fn parse(line: &str) -> Result<JobLogEntry, String> {
        // Only the command may contain tabs.
        let columns: Vec<&str> = line.splitn(COLUMNS, '\t').collect();
        if columns.len() < COLUMNS {
            return Err(format!(
                "expected {COLUMNS} columns divided by tabs; found {}",
                columns.len()
            ));
        }
        Ok(JobLogEntry {
            seq: number(&columns, 0)?,
            host: columns[1].to_owned(),
            start_s: seconds(&columns, 2)?,
            runtime_s: seconds(&columns, 3)?,
            exit: number(&columns, 6)?,
            signal: number(&columns, 7)?,
            command: columns[8].replace('\0', "\n"),
        })
    }
}

/// Read a number from a column.
fn number<T: FromStr>(columns: &[&str], ix: usize) -> Result<T, String> {
    let text = columns[ix].trim();
    let number = text.parse();
    number.map_err(|_| in_column(ix, "a number", text))
}

fn seconds(columns: &[&str], ix: usize) -> Result<f64, String> {
    let seconds: f64 = number(columns, ix)?;
    if (0.0..LATEST_S).contains(&seconds) {
        Ok(seconds)
    } else {
        let expected = "seconds, below the year 10000";
        Err(in_column(ix, expected, columns[ix].trim()))
    }
}

fn in_column(ix: usize, expected: &str, found: &str) -> String {
    let name = HEADER.split('\t').nth(ix).unwrap_or_default();
    format!("column `{name}`: expected {expected}; found `{found}`")
}

/// Writes a job log, one line as soon as a job has ended.
///
/// Lines that cannot be written, because the disk is full for a while, are kept and retried: `--resume` needs them.
#[derive(Debug)]
pub struct JobLogWriter<W> {
    sink: LineSink<W>,
}

impl<W: Write> JobLogWriter<W> {
    /// Begins a job log with its header, or continues one that has a header.
    pub fn new(out: W, with_header: bool) -> JobLogWriter<W> {
        let mut sink = LineSink::lasting(out, RunFile::JobLog);
        if with_header {
            sink.write(format!("{HEADER}\n").as_bytes());
        }
        JobLogWriter { sink }
    }

    /// Tries a last time to write lines that wait.
    pub fn finish(&mut self) {
        self.sink.finish();
    }

    /// Writes a job's line.
    pub fn ended(&mut self, entry: &JobLogEntry) {
        self.sink.write(entry.to_line().as_bytes());
    }

    /// The warning that lines wait, or that the job log is written no further; each is returned once.
    pub fn take_warning(&mut self) -> Option<RunWarning> {
        self.sink.take_warning()
    }

    /// Returns the writer.
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.sink.into_inner()
    }
}

/// A job log that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum JobLogError {
    /// The file can't be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// A line can't be read.
    #[error("{file}:{line}: {problem}; expected a job log of cosched or GNU parallel")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// The content of a job log.
#[derive(Debug, Default)]
pub struct JobLog {
    /// Its lines in their order.
    pub entries: Vec<JobLogEntry>,
    /// Its last line had no line end and was left out, because its command may be incomplete.
    pub cut_off: bool,
}

/// Reads a job log; an empty file is a log without jobs. `file` names the log in errors.
///
/// # Errors
/// The file can't be read, or a line is no line of a job log; a cut-off last line is no error.
pub fn read_joblog(mut input: impl BufRead, file: &str) -> Result<JobLog, JobLogError> {
    let mut log = JobLog::default();
    let mut line = 0;
    loop {
        let mut bytes = Vec::new();
        match input.read_until(b'\n', &mut bytes) {
            Ok(0) => return Ok(log),
            Ok(_) => line += 1,
            Err(error) => {
                return Err(JobLogError::Io {
                    file: file.to_owned(),
                    error,
                });
            }
        }
        if bytes.pop() != Some(b'\n') {
            log.cut_off = true;
            return Ok(log);
        }
        let text = String::from_utf8_lossy(&bytes);
        // Concatenated logs have a header in the middle.
        if text == HEADER {
            continue;
        }
        match JobLogEntry::parse(&text) {
            Ok(entry) => log.entries.push(entry),
            Err(problem) => {
                return Err(JobLogError::Line {
                    file: file.to_owned(),
                    line,
                    problem,
                });
            }
        }
    }
}

impl JobLog {
    /// The jobs that succeeded, in their order. Simulated jobs don't count.
    pub fn successes(&self) -> impl Iterator<Item = &JobLogEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.ok() && entry.host != SIMULATED_HOST)
    }
}

/// Continues a job log, which is open for reading and writing; a pipe need not be open for reading.
///
/// A cut-off last line is removed first; otherwise the next line would be appended to it.
///
/// # Errors
/// The file can't be read or shortened.
pub fn append_joblog(mut file: File) -> io::Result<JobLogWriter<Box<dyn Write>>> {
    if !file.metadata()?.is_file() {
        // A device or a pipe holds no earlier log, and reading it may never end.
        return Ok(JobLogWriter::new(Box::new(file), true));
    }
    let whole = whole_lines(&mut BufReader::new(&file))?;
    if whole < file.metadata()?.len() {
        file.set_len(whole)?;
    }
    file.seek(SeekFrom::Start(whole))?;
    Ok(JobLogWriter::new(Box::new(file), whole == 0))
}

/// The number of bytes up to the last line end.
fn whole_lines(input: &mut impl Read) -> io::Result<u64> {
    let (mut at, mut whole, mut chunk) = (0u64, 0, [0; 8192]);
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(whole),
            Ok(n) => {
                if let Some(ix) = chunk[..n].iter().rposition(|&byte| byte == b'\n') {
                    whole = at + ix as u64 + 1;
                }
                at += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "joblog_tests.rs"]
mod tests;
