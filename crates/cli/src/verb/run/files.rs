//! The files that a run writes. They are opened before anything is started; the record is written whole at the end.

use super::args::RunArgs;
use crate::exit::usage;
use anyhow::Context as _;
use cosched_report::{JobLogWriter, Record, append_joblog};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files that are written while a run goes on.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) series: Option<File>,
    pub(crate) events: Option<File>,
    pub(crate) joblog: Option<JobLogWriter<File>>,
}

impl Files {
    /// Makes the log folder and opens the files that are asked for.
    pub(crate) fn open(args: &RunArgs, logs: &Path) -> anyhow::Result<Files> {
        let made = make_logs(logs)?;
        Files::open_in_logs(args, logs).inspect_err(|_| {
            // Nothing was started, so the folders that were made are removed again if they are empty.
            if !made.is_empty() {
                let _ = std::fs::remove_file(logs.join("series.jsonl"));
            }
            for folder in &made {
                let _ = std::fs::remove_dir(folder);
            }
        })
    }

    fn open_in_logs(args: &RunArgs, logs: &Path) -> anyhow::Result<Files> {
        let create = |option: &str, path: &Path| {
            File::create(path)
                .map_err(|error| usage(format!("{option} {}: {error}; nothing was started", path.display())))
        };
        if let Some(path) = &args.output.record {
            // Not truncated: an earlier record stays until there is a new one.
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|error| usage(format!("--record {}: {error}; nothing was started", path.display())))?;
        }
        let events = args.output.events.as_ref().map(|path| create("--events", path)).transpose()?;
        let series = Some(create("--logs", &logs.join("series.jsonl"))?);
        // The job log comes last: without --resume its old content is lost, so everything else must be writable first.
        let joblog = match &args.output.joblog {
            None => None,
            Some(path) => {
                let fail = |error| usage(format!("--joblog {}: {error}; nothing was started", path.display()));
                let log = append_joblog(path).map_err(fail)?;
                if args.resume {
                    Some(log)
                } else {
                    drop(log);
                    create("--joblog", path)?;
                    Some(append_joblog(path).map_err(fail)?)
                }
            }
        };
        Ok(Files { series, events, joblog })
    }
}

/// Makes the log folder and checks that it can be written. Returns the folders that were made, the deepest first.
fn make_logs(logs: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let made: Vec<PathBuf> = logs.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    let fail = |error: std::io::Error| {
        usage(format!(
            "--logs: can't write to the log folder {}: {error}; nothing was started; choose another, as in --logs /tmp/run1",
            logs.display()
        ))
    };
    std::fs::create_dir_all(logs).map_err(fail)?;
    let probe = logs.join(".cosched-probe");
    let mut file = std::fs::File::create(&probe).map_err(fail)?;
    let written = file.write_all(b"probe").and_then(|()| file.sync_all());
    let _ = std::fs::remove_file(&probe);
    written.map_err(fail)?;
    Ok(made)
}

/// Writes the record into the log folder and, if asked for, to `--record`.
pub(crate) fn keep(args: &RunArgs, logs: &Path, record: &Record) -> anyhow::Result<()> {
    let text = record.to_json();
    let in_logs = write_whole(&logs.join("run.json"), &text);
    if let Some(path) = &args.output.record {
        write_whole(path, &text)?;
        let beside = path.with_extension("series.jsonl");
        let from = logs.join("series.jsonl");
        std::fs::copy(&from, &beside).with_context(|| format!("{}", beside.display()))?;
    }
    // A full log folder does not change how the jobs ended: the user is told, and the answer is still printed.
    if let Err(error) = in_logs {
        eprintln!("cosched: {error:#}");
    }
    Ok(())
}

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("can't write {}", path.display());
    // A new file can't replace a pipe or a device.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, text).with_context(context);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new).with_context(context)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.with_context(context)
}
