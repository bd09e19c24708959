//! The files that a run writes. They are opened before anything is started; the record is written whole at the end.

use super::args::RunArgs;
use super::folder::{Folder, OWN, Readers};
use super::killed::still_used;
use super::named::{AllNamed, Named, Waiting};
use super::resume::Seen;
use super::runs::{self, Journal};
use crate::exit::usage;
use crate::input::{told, value_files};
use crate::whole_file::{stream_whole, write_whole};
use anyhow::Context as _;
use cosched_report::{JOBLOG_HEADER, JobLogWriter, Record, RunWarning, append_joblog};
use std::fs::{File, Metadata};
use std::io::{Error, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The files that are written while a run goes on.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) series: Option<File>,
    pub(crate) events: Option<File>,
    pub(crate) joblog: Option<JobLogWriter<File>>,
    pub(crate) journal: Journal,
    /// The job log, unless it is a pipe, a device or a descriptor.
    pub(crate) watched: Option<Watched>,
    pub(crate) record: Option<RecordFile>,
}

impl Files {
    /// Claims the log folder for what jobs write there, by these names, and opens the files that are asked for. The folder is
    /// the run's own until it is dropped. What jobs read is asked for only where something else is written. With `--resume`,
    /// `seen` is what was looked at.
    pub(crate) fn open(
        args: &RunArgs,
        logs: &Path,
        writes: Vec<String>,
        reads: impl FnOnce() -> Vec<PathBuf>,
        seen: &Seen,
    ) -> anyhow::Result<(Folder, Files)> {
        let names: Vec<String> = OWN
            .iter()
            .map(|name| (*name).to_owned())
            .chain(writes)
            .collect();
        let named = AllNamed::check(args)?;
        named.check_logs(logs, &names)?;
        named.check_inputs(|| reads().into_iter().chain(inputs(args)))?;
        // What is made here goes again if a signal comes.
        let waiting = Waiting::new(args.output.quiet).context("taking signals")?;
        let readers = if args.output.no_logs {
            Readers::Owner
        } else {
            Readers::Everybody
        };
        let folder = Folder::claim(logs, &names, readers)?;
        let opened = Files::open_in(args, named, (logs, seen), &folder, &waiting);
        match opened.and_then(|files| waiting.look().map(|()| files)) {
            Ok(files) => Ok((folder, files)),
            Err(error) => {
                folder.abandon(&["series.jsonl"]);
                waiting.unmake();
                Err(error)
            }
        }
    }

    fn open_in(
        args: &RunArgs,
        named: AllNamed,
        (logs, seen): (&Path, &Seen),
        folder: &Folder,
        waiting: &Waiting,
    ) -> anyhow::Result<Files> {
        let AllNamed {
            record,
            events,
            joblog,
        } = named;
        let record = record
            .map(|named| RecordFile::open(named, waiting))
            .transpose()?;
        let events = events
            .map(|named| named.open(false, waiting).map(|file| (named, file)))
            .transpose()?;
        if let Some((named, file)) = &events {
            named.claim(file, waiting)?;
        }
        let series = (!args.output.no_series)
            .then(|| folder.create("series.jsonl"))
            .transpose();
        let series = series
            .map_err(|error| usage(format!("--logs series.jsonl: {error}; nothing was started")))?;
        let empty_events = || {
            events
                .map(|(named, file)| named.empty(&file).map(|()| file))
                .transpose()
        };
        // The job log comes last: without --resume its old content is lost, so everything else must be writable first. And
        // only the run that has the job log may empty anything: another one may write there.
        let (events, joblog, journal, watched) = match joblog {
            None => (empty_events()?, None, Journal::default(), None),
            Some(named) => {
                let path = &named.path;
                let fail = |error: Error| named.fail(&error);
                let file = named.open(true, waiting)?;
                named.claim(&file, waiting)?;
                // What was looked at to resume can have changed until this run had the job log.
                let why = match args.resume {
                    true if Seen::now(path) == *seen => None,
                    true => Some("another run has written to it just now; nothing is known of that; try again".into()),
                    false => still_used(path),
                };
                if let Some(why) = why {
                    return Err(fail(Error::other(why)));
                }
                let mut journal = Journal::default();
                if !args.is_simulated() {
                    if let Some(runs) = runs::beside(path).filter(|runs| !runs.exists()) {
                        waiting.made(&runs);
                    }
                    // Before the old content goes: whoever resumes must find this run.
                    runs::enter(path, logs, !args.resume).map_err(fail)?;
                    journal = Journal::open(path).map_err(fail)?;
                }
                let events = empty_events()?;
                if !args.resume {
                    named.empty(&file)?;
                }
                if named.is_special() {
                    (events, Some(JobLogWriter::new(file, true)), journal, None)
                } else {
                    let open = file.try_clone().map_err(fail)?;
                    let joblog = append_joblog(file).map_err(fail)?;
                    (
                        events,
                        Some(joblog),
                        journal,
                        Some(Watched::new(&named, open).map_err(fail)?),
                    )
                }
            }
        };
        Ok(Files {
            series,
            events,
            joblog,
            journal,
            watched,
            record,
        })
    }
}

/// The files that say what is to be run, and how.
fn inputs(args: &RunArgs) -> impl Iterator<Item = PathBuf> {
    let given = args
        .mix
        .iter()
        .chain(&args.list)
        .chain(&args.values.arg_file)
        .map(PathBuf::as_path);
    let known = args
        .solo
        .as_deref()
        .map(Path::new)
        .into_iter()
        .chain(args.policy.profile.as_deref());
    given
        .chain(value_files(&args.command))
        .chain(known)
        .map(Path::to_owned)
}

/// A job log that is open, and where it is to be at the end.
pub(crate) struct Watched {
    /// As the user named it.
    name: String,
    place: PathBuf,
    file: File,
    /// How it begins.
    first: Vec<u8>,
}

impl Watched {
    fn new(named: &Named, file: File) -> std::io::Result<Watched> {
        let length = file.metadata()?.len().min(JOBLOG_HEADER.len() as u64);
        let mut first = vec![0; length as usize];
        file.read_exact_at(&mut first, 0)?;
        Ok(Watched {
            name: told(&named.path),
            place: named.place.clone(),
            file,
            first,
        })
    }

    /// The warning that somebody has moved or removed it.
    pub(crate) fn moved(&self) -> Option<RunWarning> {
        let open = self.file.metadata().ok()?;
        let is_there = |now: &Metadata| (now.dev(), now.ino()) == (open.dev(), open.ino());
        let stays = std::fs::metadata(&self.place).is_ok_and(|now| is_there(&now));
        // What copies a file away and empties it, as `logrotate` may do, takes its first line.
        let mut first = vec![0; self.first.len()];
        let is_cut = self.file.read_exact_at(&mut first, 0).is_err() || first != self.first;
        let file = self.name.clone();
        (!stays || is_cut).then(|| RunWarning::JobLogMoved {
            file,
            removed: is_cut || open.nlink() == 0,
        })
    }
}

/// Where `--record` goes.
pub(crate) struct RecordFile {
    named: Named,
    /// A pipe or a device, which is open from the start: its reader waits for the record.
    open: Option<File>,
}

impl RecordFile {
    /// Opens it. An earlier record stays until there is a new one.
    fn open(named: Named, waiting: &Waiting) -> anyhow::Result<RecordFile> {
        let is_new = named.place.symlink_metadata().is_err();
        let file = named.open(false, waiting)?;
        // An empty file is no record.
        if is_new {
            let _ = std::fs::remove_file(&named.place);
        }
        let open = named.is_special().then_some(file);
        Ok(RecordFile { named, open })
    }

    /// Writes the record, and the series beside it, which is in the log folder.
    fn write(self, logs: &Path, text: &str) -> anyhow::Result<()> {
        let RecordFile { named, open } = self;
        if let Some(mut file) = open {
            return file
                .write_all(text.as_bytes())
                .with_context(|| format!("can't write {}", told(&named.path)));
        }
        write_whole(&named.place, text.as_bytes())?;
        let mut series = File::open(logs.join("series.jsonl"))?;
        stream_whole(&named.series(), |mut file| {
            Ok(std::io::copy(&mut series, &mut file)?)
        })?;
        Ok(())
    }
}

/// Writes the record into the log folder and, if asked for, to `--record`.
///
/// # Errors
/// One of them can't be written; the other is tried all the same.
pub(crate) fn keep(to: Option<RecordFile>, logs: &Path, record: &Record) -> anyhow::Result<()> {
    let text = record.to_json();
    let in_logs = write_whole(&logs.join("run.json"), text.as_bytes());
    if let Some(to) = to {
        to.write(logs, &text)?;
    }
    in_logs
}
