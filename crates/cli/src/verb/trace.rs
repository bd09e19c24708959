//! `cosched trace`: a run as a trace for the Perfetto viewer.

use crate::exit::usage;
use crate::input::told;
use crate::live::series_of;
use crate::offer;
use crate::output::{Made, check_output};
use crate::print::print;
use crate::run_files::open_file;
use crate::stderr::say;
use crate::whole_file::stream_whole;
use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cosched_report::{
    BackendKind, SeriesError, SeriesFile, SeriesHeader, TraceDone, TraceError, count, seconds,
    write_trace,
};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a run as a trace for the Perfetto viewer
///
/// The trace shows the CPUs, the jobs with their reasons to wait, and counters over time. It also works for live and killed
/// runs. Open the trace at ui.perfetto.dev; it stays in your browser.
#[derive(Args)]
pub struct TraceArgs {
    /// Log folder, run record or series of a run, or process or identity of a live run [default: the newest run in
    /// cosched-logs, else the only live run]
    #[arg(add = ArgValueCompleter::new(offer::run_or_file))]
    run: Option<PathBuf>,

    /// Write the trace to this file
    #[arg(long, value_name = "FILE")]
    perfetto: PathBuf,
}

pub fn run(args: TraceArgs) -> Result<ExitCode> {
    let path = series_of(args.run.as_deref())?;
    check_output("--perfetto", &args.perfetto, Made::Trace)?;
    let mut reader = open(&path)?;
    let (done, bytes) = stream_whole(&args.perfetto, |out| {
        let done = write_trace(&mut reader, BufWriter::new(out)).map_err(refused)?;
        Ok((done, out.metadata()?.len()))
    })?;
    if done.cut_off {
        let file = told(&path);
        say(format_args!(
            "cosched: {file}: its last line is incomplete and left out: the run goes on, or was killed"
        ));
    }
    report(&args.perfetto, reader.header(), &done, bytes)
}

fn open(path: &Path) -> Result<SeriesFile> {
    let opened = SeriesFile::open(open_file(path)?, &told(path));
    opened.map_err(|error| refused(error.into()))
}

/// Add advice to an error.
fn refused(error: TraceError) -> anyhow::Error {
    let advice = match &error {
        TraceError::Write(_) => return error.into(),
        TraceError::Series(SeriesError::Io { .. } | SeriesError::Empty { .. }) => String::new(),
        TraceError::Series(SeriesError::Header { .. }) => {
            "; give a log folder or a series; one of another version needs that version of cosched"
                .to_owned()
        }
        TraceError::Series(SeriesError::Line { line: 1, .. }) => "; the file is damaged".to_owned(),
        TraceError::Series(SeriesError::Line { line, .. }) => {
            format!(
                "; the file is damaged; to trace the part before, use `head -n {}`",
                line - 1
            )
        }
    };
    usage(format!("{error}{advice}"))
}

/// Print a line about the trace that was written.
fn report(out: &Path, header: &SeriesHeader, done: &TraceDone, bytes: u64) -> Result<ExitCode> {
    let out = told(out);
    let jobs = count(header.tasks.len() as u64, "job");
    let time = seconds(done.until.as_s());
    let simulated = match header.backend {
        BackendKind::Sim => " simulated",
        BackendKind::Host | BackendKind::Nodes => "",
    };
    let kb = bytes.div_ceil(1_000);
    print(format!(
        "{out}: {jobs}, {time}{simulated}, {kb} KB; open it at https://ui.perfetto.dev\n"
    ))
}
