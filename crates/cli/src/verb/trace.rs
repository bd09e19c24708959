//! `cosched trace`: a run as a trace for the Perfetto viewer.

use crate::exit::usage;
use crate::input::told;
use crate::kept::{open_file, record_beside, series_of};
use crate::output::{Made, check_output};
use crate::stderr::say;
use crate::whole_file::stream_whole;
use anyhow::Context as _;
use clap::Args;
use cosched_report::{
    BackendKind, Record, SeriesError, SeriesReader, TraceDone, TraceError, count, is_of_run,
    seconds, write_trace,
};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a run as a trace for the Perfetto viewer
///
/// The trace shows who had which CPU when, what each job did and why it waited, and counters over time. It can be made
/// while the run still goes on, and of a run that was killed. Open it at ui.perfetto.dev; it stays in your browser.
#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// Log folder, run record or series of the run, or the process or identity of a run that goes on; without it the newest
    /// run in cosched-logs, and where there is none, the only one that goes on
    run: Option<PathBuf>,

    /// Write the trace to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    perfetto: PathBuf,
}

pub(crate) fn run(args: TraceArgs) -> anyhow::Result<ExitCode> {
    let path = series_of(args.run.as_deref())?;
    let file = told(&path);
    let mut input = open_file(&path)?;
    let to_stdout = args.perfetto.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(usage(
            "a trace is no text for a terminal; write it to a file, as in `--perfetto run.pftrace`",
        ));
    }
    if !to_stdout {
        check_output("--perfetto", &args.perfetto, Made::Trace)?;
    }
    // What a run that goes on writes from now on is for another trace.
    let length = input
        .metadata()
        .map_err(|error| usage(format!("{file}: {error}")))?;
    let length = if length.is_file() {
        length.len()
    } else {
        u64::MAX
    };
    let mut reader = reader_of(&input, length, &path)?;
    let record = record_of(&path, &reader);
    if to_stdout {
        // What is wrong with the series must be known before anything is written.
        write_trace(&mut reader, record.as_ref(), io::sink()).map_err(refused)?;
        let again = input.rewind();
        again.map_err(|error| {
            usage(format!(
                "{file}: it must be a file that can be read twice: {error}"
            ))
        })?;
        reader = reader_of(&input, length, &path)?;
        let out = BufWriter::new(io::stdout().lock());
        let done = write_trace(&mut reader, record.as_ref(), out).map_err(refused)?;
        warn(&done, &file);
    } else {
        let (done, bytes) = stream_whole(&args.perfetto, |out| {
            let done = write_trace(&mut reader, record.as_ref(), BufWriter::new(out));
            let done = done.map_err(refused)?;
            Ok((done, out.metadata()?.len()))
        })?;
        warn(&done, &file);
        tell(&args.perfetto, &reader, &done, bytes)?;
    }
    Ok(ExitCode::SUCCESS)
}

type Reader<'a> = SeriesReader<BufReader<io::Take<&'a File>>>;

fn reader_of<'a>(input: &'a File, length: u64, path: &Path) -> anyhow::Result<Reader<'a>> {
    let opened = SeriesReader::new(BufReader::new(input.take(length)), &told(path));
    opened.map_err(|error| refused(error.into()))
}

/// The record beside the series, if there is one of the same run. It only adds to the trace, so nothing that is wrong with
/// it is an error.
fn record_of<R: io::BufRead>(series: &Path, reader: &SeriesReader<R>) -> Option<Record> {
    let path = record_beside(series).filter(|path| path.is_file())?;
    let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let record = read.and_then(|text| Record::from_json(&text).map_err(|error| error.to_string()));
    let problem = match record {
        Ok(record) if is_of_run(&record, reader.header()) => return Some(record),
        Ok(_) => "it is the record of another run".to_owned(),
        Err(problem) => problem,
    };
    say(format_args!(
        "cosched: the trace goes without {}: {problem}",
        told(&path)
    ));
    None
}

/// What is wrong, and what to do about it.
fn refused(error: TraceError) -> anyhow::Error {
    let advice = match &error {
        TraceError::Write(_) => return error.into(),
        TraceError::Series(SeriesError::Io { .. }) => String::new(),
        TraceError::Series(SeriesError::Header { .. }) => {
            "; give the log folder of a run, or its series; one of another version needs that version of cosched"
                .to_owned()
        }
        TraceError::Header { .. } => "; the file is damaged".to_owned(),
        TraceError::Series(SeriesError::Line { line, .. }) | TraceError::Row { line, .. } => {
            format!("; the file is damaged. `head -n {}` of it gives what comes before, to trace that", line - 1)
        }
    };
    usage(format!("{error}{advice}"))
}

fn warn(done: &TraceDone, file: &str) {
    if done.cut_off {
        say(format_args!(
            "cosched: {file}: its last line is incomplete and left out: the run goes on, or was killed"
        ));
    }
}

/// Tells what was written.
fn tell<R: io::BufRead>(
    out: &Path,
    reader: &SeriesReader<R>,
    done: &TraceDone,
    bytes: u64,
) -> anyhow::Result<()> {
    let header = reader.header();
    let simulated = if header.backend == BackendKind::Sim {
        " simulated"
    } else {
        ""
    };
    let jobs = count(header.tasks.len() as u64, "job");
    writeln!(
        io::stdout(),
        "{}: {jobs}, {}{simulated}, {} KB; open it at https://ui.perfetto.dev",
        told(out),
        seconds(done.until.as_s()),
        bytes.div_ceil(1_000)
    )
    .context("telling what was written")
}
