//! The files that a run writes. They are opened before anything is started; the record is written whole at the end.

use super::args::RunArgs;
use super::folder::Folder;
use super::killed::live_writer;
use super::runs;
use crate::exit::usage;
use crate::input::value_files;
use crate::whole_file::write_whole;
use anyhow::Context as _;
use cosched_report::{JobLogWriter, Record, append_joblog};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The files that are written while a run goes on.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) series: Option<File>,
    pub(crate) events: Option<File>,
    pub(crate) joblog: Option<JobLogWriter<File>>,
}

/// What a run writes into its log folder beside the jobs' output.
const OWN: [&str; 7] =
    ["series.jsonl", "run.json", "run.json.new", "solo", "solo.json", "solo.series.jsonl", "solo-profiles.json"];

impl Files {
    /// Claims the log folder for these files of jobs, and opens the files that are asked for. The folder is the run's own
    /// until it is dropped.
    pub(crate) fn open(args: &RunArgs, logs: &Path, jobs: Vec<String>) -> anyhow::Result<(Folder, Files)> {
        let names: Vec<String> = OWN.iter().map(|name| (*name).to_owned()).chain(jobs).collect();
        let folder = Folder::claim(logs, &names, args.output.shared_logs)?;
        let named = [&args.output.record, &args.output.events, &args.output.joblog].into_iter().flatten().cloned();
        let mut new: Vec<PathBuf> = named.chain(args.output.joblog.as_deref().and_then(runs::beside)).collect();
        new.retain(|path| path.symlink_metadata().is_err());
        match Files::open_in(args, logs, &folder) {
            Ok(files) => Ok((folder, files)),
            Err(error) => {
                folder.abandon(&["series.jsonl"]);
                new.iter().for_each(|path| drop(std::fs::remove_file(path)));
                Err(error)
            }
        }
    }

    fn open_in(args: &RunArgs, logs: &Path, folder: &Folder) -> anyhow::Result<Files> {
        let fail = |option: &str, path: &Path, why: &dyn std::fmt::Display| {
            usage(format!("{option} {}: {why}; nothing was started", path.display()))
        };
        let create = |option: &str, path: &Path| File::create(path).map_err(|error| fail(option, path, &error));
        let given = args
            .mix
            .iter()
            .chain(&args.list)
            .map(PathBuf::as_path)
            .chain(args.values.arg_file.iter().map(PathBuf::as_path))
            .chain(value_files(&args.command));
        let known = args.solo.as_deref().map(Path::new).into_iter().chain(args.policy.profile.as_deref());
        let inputs: Vec<PathBuf> = given.chain(known).filter_map(|path| path.canonicalize().ok()).collect();
        let written =
            [("--record", &args.output.record), ("--events", &args.output.events), ("--joblog", &args.output.joblog)];
        for (option, path) in written {
            if let Some(path) = path
                && path.canonicalize().is_ok_and(|path| inputs.contains(&path))
            {
                return Err(fail(option, path, &"this run reads this file, which would be overwritten"));
            }
        }
        if let Some(path) = &args.output.record {
            // Not truncated: an earlier record stays until there is a new one. An empty file is none.
            let is_new = !path.exists();
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|error| fail("--record", path, &error))?;
            if is_new {
                let _ = std::fs::remove_file(path);
            }
        }
        let events = args.output.events.as_ref().map(|path| create("--events", path)).transpose()?;
        let series =
            folder.create("series.jsonl").map_err(|error| fail("--logs", Path::new("series.jsonl"), &error))?;
        // The job log comes last: without --resume its old content is lost, so everything else must be writable first.
        let joblog = match &args.output.joblog {
            None => None,
            Some(path) => {
                let fail = |error| usage(format!("--joblog {}: {error}; nothing was started", path.display()));
                // With --resume that has been looked at before.
                if let Some(run) = live_writer(path).filter(|_| !args.resume && !args.is_simulated()) {
                    return Err(fail(std::io::Error::other(format!(
                        "run {run} still goes on and writes to it; wait for its end, or choose another file"
                    ))));
                }
                let log = append_joblog(path).map_err(fail)?;
                // Before the old content goes: whoever resumes must find this run.
                if !args.is_simulated() {
                    runs::enter(path, logs, !args.resume).map_err(fail)?;
                }
                if args.resume {
                    Some(log)
                } else {
                    drop(log);
                    create("--joblog", path)?;
                    Some(append_joblog(path).map_err(fail)?)
                }
            }
        };
        Ok(Files { series: Some(series), events, joblog })
    }
}

/// Writes the record into the log folder and, if asked for, to `--record`.
///
/// # Errors
/// One of them can't be written; the other is tried all the same.
pub(crate) fn keep(args: &RunArgs, logs: &Path, record: &Record) -> anyhow::Result<()> {
    let text = record.to_json();
    let in_logs = write_whole(&logs.join("run.json"), text.as_bytes());
    if let Some(path) = &args.output.record {
        // A new file can't replace a pipe or a device that the user names.
        if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            std::fs::write(path, &text).with_context(|| format!("can't write {}", path.display()))?;
        } else {
            write_whole(path, text.as_bytes())?;
        }
        // Nothing can lie beside a pipe or a device.
        if path.is_file() {
            let beside = path.with_extension("series.jsonl");
            let from = logs.join("series.jsonl");
            std::fs::copy(&from, &beside).with_context(|| format!("{}", beside.display()))?;
        }
    }
    in_logs
}
