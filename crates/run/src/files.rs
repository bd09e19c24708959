//! The files that a run writes. They are opened before any job starts; the record is written at the end.

use super::folder::{JOBLOG_FILES, LogFolder, LogNames, OWN};
use super::killed::still_used;
use super::named_files::{NamedFile, NamedFiles, Waiting};
use super::options::{JobSource, RunOptions, SoloTimes};
use super::progress_to::{ProgressTarget, ProgressTo, connect};
use super::resume::JobLogState;
use super::runs::{self, Journal};
use super::signals::Signals;
use crate::exit::usage;
use crate::input::{told, value_files};
use crate::whole_file::{stream_whole, write_private, write_whole};
use anyhow::{Context as _, Result};
use cosched_report::{JOBLOG_HEADER, JobLogWriter, RunRecord, RunWarning, append_joblog};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The open files of a run.
#[derive(Default)]
pub(crate) struct RunFiles {
    pub(crate) series: Option<File>,
    pub(crate) events: Option<File>,
    pub(crate) joblog: Option<JobLogWriter<Box<dyn Write>>>,
    pub(crate) journal: Journal,
    /// The file of `--joblog`, unless it is a pipe, a device or a descriptor.
    pub(crate) watched: Option<Watched>,
    pub(crate) record: Option<RecordFile>,
    /// Where `--metrics` is written.
    pub(crate) metrics: Option<PathBuf>,
    pub(crate) progress_to: Option<ProgressTo>,
}

impl RunFiles {
    /// Claims the log folder for files with these names and the run's own, and opens the files of the run.
    ///
    /// `reads` lists the files that jobs read; it is called only if the user names files to write. `seen` is the state
    /// of the job log when `--resume` read it.
    ///
    /// # Errors
    /// A file can't be opened, another run uses it, or a signal comes while it has to be waited for. What was made is
    /// removed.
    pub(crate) fn open(
        options: &RunOptions,
        logs: &Path,
        mut names: LogNames,
        reads: impl FnOnce() -> Vec<PathBuf>,
        seen: &JobLogState,
        signals: &Signals,
    ) -> Result<(LogFolder, RunFiles)> {
        names.written.extend(OWN.map(str::to_owned));
        if options.has_own_joblog() {
            names.written.extend(JOBLOG_FILES.map(str::to_owned));
        }
        let mut named = NamedFiles::check(options)?;
        named.check_logs(logs, &names.written)?;
        named.check_inputs(|| [reads(), inputs(options)].concat())?;
        if options.has_own_joblog() {
            named.joblog = Some(NamedFile::joblog_in(logs));
        }
        let waiting = Waiting::new(options.output.quiet, signals);
        let folder = LogFolder::claim(logs, &names, options.output.keeps_logs())?;
        let opened = RunFiles::open_in(options, named, (logs, seen), &folder, &waiting);
        match opened {
            Ok(files) => Ok((folder, files)),
            Err(error) => {
                waiting.unmake();
                folder.abandon(&["series.jsonl"]);
                Err(error)
            }
        }
    }

    fn open_in(
        options: &RunOptions,
        named: NamedFiles,
        (logs, seen): (&Path, &JobLogState),
        folder: &LogFolder,
        waiting: &Waiting<'_>,
    ) -> Result<RunFiles> {
        let mut files = RunFiles::default();
        if let Some(named) = named.record {
            files.record = Some(RecordFile::open(named, waiting)?);
        }
        if let Some(named) = named.metrics {
            files.metrics = Some(begin_metrics(named)?);
        }
        if let Some(named) = &named.events {
            let file = named.open(false, waiting)?;
            named.claim(&file, waiting)?;
            files.events = Some(file);
        }
        files.series = Some(create_series(folder)?);
        // Without --resume the job log's old content is lost, so all else must be writable before.
        let joblog = match &named.joblog {
            Some(named) => {
                let file = claim_joblog(options, named, seen, waiting)?;
                files.journal = open_journal(options, named, logs, waiting)?;
                Some((named, file))
            }
            None => None,
        };
        // Only the run that has the job log may empty files: another one may write to them.
        if let (Some(named), Some(file)) = (&named.events, &files.events) {
            named.empty(file)?;
        }
        files.progress_to = open_progress(options, named.progress_to.as_ref(), waiting)?;
        if let Some((named, file)) = joblog {
            if options.resume.is_none() {
                named.empty(&file)?;
            }
            files.begin_joblog(named, file)?;
        }
        Ok(files)
    }

    fn begin_joblog(&mut self, named: &NamedFile, file: File) -> Result<()> {
        if named.is_special() {
            self.joblog = Some(JobLogWriter::new(Box::new(file), true));
            return Ok(());
        }
        let open = named.with_name(file.try_clone())?;
        self.joblog = Some(named.with_name(append_joblog(file))?);
        if !named.is_own() {
            self.watched = Some(named.with_name(Watched::new(named, open))?);
        }
        Ok(())
    }
}

/// Opens the target of `--progress-to`.
fn open_progress(
    options: &RunOptions,
    named: Option<&NamedFile>,
    waiting: &Waiting<'_>,
) -> Result<Option<ProgressTo>> {
    let (out, what) = match (&options.output.progress_to, named) {
        (Some(ProgressTarget::Socket(path)), _) => (connect(path)?, "the socket"),
        (_, Some(named)) => {
            let file = named.open(false, waiting)?;
            named.empty(&file)?;
            (file, "the file")
        }
        _ => return Ok(None),
    };
    let to = ProgressTo::new(out).with_context(|| format!("--progress-to: {what}"))?;
    Ok(Some(to))
}

fn create_series(folder: &LogFolder) -> Result<File> {
    let made = folder.create("series.jsonl");
    made.map_err(|error| usage(format!("--logs series.jsonl: {error}; nothing was started")))
}

/// Makes an empty file of metrics.
fn begin_metrics(named: NamedFile) -> Result<PathBuf> {
    if named.is_special() {
        return Err(named.fail("it is replaced once a second, so it must be a regular file"));
    }
    match write_whole(&named.place, b"") {
        Ok(()) => Ok(named.place),
        Err(error) => Err(named.fail(format_args!("{error:#}"))),
    }
}

/// Opens and locks the job log.
fn claim_joblog(
    options: &RunOptions,
    named: &NamedFile,
    seen: &JobLogState,
    waiting: &Waiting<'_>,
) -> Result<File> {
    let file = named.open(true, waiting)?;
    named.claim(&file, waiting)?;
    // It can have changed until this run had the lock.
    let problem = if options.resume.is_none() {
        still_used(&named.path)
    } else if JobLogState::now(&named.path) != *seen {
        Some("another run has just written to it; try again".to_owned())
    } else {
        None
    };
    match problem {
        Some(why) => Err(named.fail(why)),
        None => Ok(file),
    }
}

/// Enters this run beside the job log, for later runs that resume.
fn open_journal(
    options: &RunOptions,
    named: &NamedFile,
    logs: &Path,
    waiting: &Waiting<'_>,
) -> Result<Journal> {
    if options.is_simulated() {
        return Ok(Journal::default());
    }
    let joblog = &named.path;
    if let Some(runs) = runs::beside(joblog)
        && !runs.exists()
    {
        waiting.made(&runs);
    }
    let is_fresh = options.resume.is_none();
    named.with_name(Journal::begin(joblog, logs, is_fresh))
}

/// The files that describe the run.
fn inputs(options: &RunOptions) -> Vec<PathBuf> {
    let mut files = match &options.jobs {
        JobSource::Mix(file) | JobSource::List(file) => vec![file.clone()],
        JobSource::Command(words, reading) => {
            let mut files = value_files(words);
            files.extend(reading.files.iter().cloned());
            files
        }
    };
    if let SoloTimes::File(file) = &options.solo {
        files.push(file.clone());
    }
    files.extend(options.policy.profile.clone());
    files
}

/// An open job log, and its expected place.
pub(crate) struct Watched {
    /// As the user named it.
    name: String,
    place: PathBuf,
    file: File,
    /// Its first bytes.
    first: Vec<u8>,
}

impl Watched {
    fn new(named: &NamedFile, file: File) -> std::io::Result<Watched> {
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

    /// The warning that the file was moved, removed or emptied.
    pub(crate) fn moved(&self) -> Option<RunWarning> {
        let open = self.file.metadata().ok()?;
        let id = (open.dev(), open.ino());
        let now = std::fs::metadata(&self.place).ok();
        let stays = now.is_some_and(|now| (now.dev(), now.ino()) == id);
        // `logrotate` may copy a file and empty it, so its first line is gone.
        let mut first = vec![0; self.first.len()];
        let read = self.file.read_exact_at(&mut first, 0);
        let is_cut = read.is_err() || first != self.first;
        if stays && !is_cut {
            return None;
        }
        Some(RunWarning::JobLogMoved {
            file: self.name.clone(),
            removed: is_cut || open.nlink() == 0,
        })
    }
}

/// Where `--record` goes.
pub(crate) struct RecordFile {
    named: NamedFile,
    /// A pipe or a device: it is open from the start, because its reader waits.
    open: Option<File>,
}

impl RecordFile {
    /// Opens the file. An earlier record stays until the new one replaces it.
    fn open(named: NamedFile, waiting: &Waiting<'_>) -> Result<RecordFile> {
        let is_new = named.place.symlink_metadata().is_err();
        let file = named.open(false, waiting)?;
        // An empty file is no record.
        if is_new {
            let _ = std::fs::remove_file(&named.place);
        }
        let open = named.is_special().then_some(file);
        Ok(RecordFile { named, open })
    }

    /// Writes the record, and copies the series from the log folder beside it.
    fn write(self, logs: &Path, text: &str) -> Result<()> {
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

/// Writes the record into the log folder and to the file of `--record`, if there is one.
///
/// # Errors
/// One of them can't be written. The other is written all the same.
pub(crate) fn keep(to: Option<RecordFile>, logs: &Path, record: &RunRecord) -> Result<()> {
    let text = record.to_json();
    let in_logs = write_private(&logs.join("run.json"), text.as_bytes());
    if let Some(to) = to {
        to.write(logs, &text)?;
    }
    in_logs
}
