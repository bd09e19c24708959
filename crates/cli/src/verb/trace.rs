//! `cosched trace`: a run as a trace for the Perfetto viewer.

use crate::exit::usage;
use crate::input::told;
use crate::live::series_of;
use crate::output::{Made, check_output};
use crate::run_files::open_file;
use crate::stderr::say;
use crate::whole_file::stream_whole;
use anyhow::Context as _;
use clap::Args;
use cosched_report::{
    BackendKind, SeriesError, SeriesHeader, SeriesReader, TraceDone, TraceError, count, seconds,
    write_trace,
};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a run as a trace for the Perfetto viewer
///
/// The trace shows the CPUs, the jobs with their reasons to wait, and counters over time. It also works for live and killed
/// runs. Open the trace at ui.perfetto.dev; it stays in your browser.
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
    let to_stdout = args.perfetto.as_os_str() == "-";
    if to_stdout && io::stdout().is_terminal() {
        return Err(usage(
            "a trace is not for a terminal; write it to a file, as in `--perfetto run.trace.json`",
        ));
    }
    if !to_stdout {
        check_output("--perfetto", &args.perfetto, Made::Trace)?;
    }
    let mut reader = open_now(&path)?;
    if to_stdout {
        // A damaged series leaves nothing on standard output.
        let mut trace = Vec::new();
        let done = write_trace(&mut reader, &mut trace).map_err(refused)?;
        let mut out = io::stdout().lock();
        out.write_all(&trace)
            .and_then(|()| out.flush())
            .context("cannot write the trace")?;
        warn(&done, &told(&path));
    } else {
        let (done, bytes) = stream_whole(&args.perfetto, |out| {
            let done = write_trace(&mut reader, BufWriter::new(out));
            let done = done.map_err(refused)?;
            Ok((done, out.metadata()?.len()))
        })?;
        warn(&done, &told(&path));
        report(&args.perfetto, reader.header(), &done, bytes)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Open a series as it is now: a trace ends before what the run writes later.
fn open_now(path: &Path) -> anyhow::Result<SeriesReader<BufReader<io::Take<File>>>> {
    let file = told(path);
    let input = open_file(path)?;
    let metadata = input
        .metadata()
        .map_err(|error| usage(format!("{file}: {error}")))?;
    let length = if metadata.is_file() {
        metadata.len()
    } else {
        u64::MAX
    };
    let opened = SeriesReader::new(BufReader::new(input.take(length)), &file);
    opened.map_err(|error| refused(error.into()))
}

/// Add advice to an error.
fn refused(error: TraceError) -> anyhow::Error {
    let advice = match &error {
        TraceError::Write(_) => return error.into(),
        TraceError::Series(SeriesError::Io { .. }) => String::new(),
        TraceError::Series(SeriesError::Header { .. }) => {
            "; give the log folder of a run, or its series; a series of another version needs that version of cosched"
                .to_owned()
        }
        TraceError::Series(SeriesError::Line { line: 1, .. }) => "; the file is damaged".to_owned(),
        TraceError::Series(SeriesError::Line { line, .. }) => {
            format!("; the file is damaged; to trace the part before, use `head -n {}`", line - 1)
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

/// Print a line about the trace that was written.
fn report(out: &Path, header: &SeriesHeader, done: &TraceDone, bytes: u64) -> anyhow::Result<()> {
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
    .context("cannot write to standard output")
}
