//! Files that the user names beside the log folder (`--record`, `--events`, `--joblog`, `--metrics`, `--progress-to`). Each may be a pipe, a
//! device or a descriptor. Files that lie beside them are regular files. The job log in the log folder is opened in the same way.

use super::folder::JOBLOG;
use super::options::RunOptions;
use super::progress_to::ProgressTarget;
use super::runs;
use super::signals::Signals;
use crate::exit::usage;
use crate::input::told;
use crate::stderr;
use crate::whole_file::{PRIVATE, USUAL, is_descriptor, resolve_links};
use anyhow::Result;
use cosched_linux::same_open_file;
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fmt::Display;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two tries to open or lock a file.
const RETRY: Duration = Duration::from_millis(20);
/// Tries after which the user is told that a pipe has no reader: a second.
const TRIES_BEFORE_MESSAGE: usize = 50;
/// Tries to lock a file. A process of an ended run may still hold the lock for a moment.
const TRIES_TO_LOCK: usize = 10;

/// What stands for an option in messages about the job log in a log folder.
const OWN_JOBLOG: &str = "the job log";

/// A file that the user named, or the job log.
pub(crate) struct NamedFile {
    option: &'static str,
    /// Access to it if this run makes it.
    mode: u32,
    /// As the user wrote it.
    pub(crate) path: PathBuf,
    /// Where its links lead.
    pub(crate) place: PathBuf,
}

/// The files that this run will write where the user says.
pub(crate) struct NamedFiles {
    pub(crate) record: Option<NamedFile>,
    pub(crate) events: Option<NamedFile>,
    pub(crate) joblog: Option<NamedFile>,
    pub(crate) metrics: Option<NamedFile>,
    pub(crate) progress_to: Option<NamedFile>,
}

impl NamedFiles {
    /// Checks that the files differ, and that files beside them are regular files.
    ///
    /// # Errors
    /// They can't be used as they are. Nothing has been made.
    pub(crate) fn check(options: &RunOptions) -> Result<NamedFiles> {
        let output = &options.output;
        let all = NamedFiles {
            record: NamedFile::resolve_given("--record", output.record.as_deref())?,
            events: NamedFile::resolve_given("--events", output.events.as_deref())?,
            joblog: NamedFile::resolve_given("--joblog", output.joblog.as_deref())?,
            metrics: NamedFile::resolve_given("--metrics", output.metrics.as_deref())?,
            progress_to: NamedFile::resolve_given(
                "--progress-to",
                output.progress_to.as_ref().and_then(ProgressTarget::file),
            )?,
        };
        all.check_apart()?;
        for named in all.iter() {
            named.check_beside()?;
        }
        Ok(all)
    }

    fn iter(&self) -> impl Iterator<Item = &NamedFile> {
        let all = [
            &self.record,
            &self.events,
            &self.joblog,
            &self.metrics,
            &self.progress_to,
        ];
        all.into_iter().flatten()
    }

    /// Refuses files that the run reads: they would be overwritten.
    ///
    /// # Errors
    /// One of them is such a file, by whichever name.
    pub(crate) fn check_inputs(&self, inputs: impl FnOnce() -> Vec<PathBuf>) -> Result<()> {
        let mut written = Vec::new();
        for named in self.iter() {
            let mut ids = vec![id_of_file(&named.path)];
            if let Some((_, path)) = named.beside() {
                ids.push(id_of_file(&path));
            }
            written.extend(ids.into_iter().flatten().map(|id| (named, id)));
        }
        if written.is_empty() {
            return Ok(());
        }
        for input in inputs().iter().filter_map(|input| id_of_file(input)) {
            if let Some((named, _)) = written.iter().find(|(_, id)| *id == input) {
                return Err(named.fail("this run reads this file, which would be overwritten"));
            }
        }
        Ok(())
    }

    fn check_apart(&self) -> Result<()> {
        let mut seen: Vec<Written> = Vec::new();
        for one in self.written() {
            if let Some(other) = seen.iter().find(|other| other.place == one.place) {
                let why = format!("{} is the same file; choose another", other.option);
                return Err(fail(one.option, &one.place, why));
            }
            seen.push(one);
        }
        Ok(())
    }

    /// Refuses files of these names in the log folder: the run writes them itself.
    ///
    /// # Errors
    /// One of them is such a file.
    pub(crate) fn check_logs(&self, logs: &Path, names: &[String]) -> Result<()> {
        let logs = resolve_links(logs).unwrap_or_else(|_| logs.to_owned());
        for Written { option, place } in self.written() {
            let Ok(name) = place.strip_prefix(&logs) else {
                continue;
            };
            if names.iter().any(|one| Path::new(one) == name) {
                let name = told(name);
                let why = format!("the run writes {name} in its log folder, too; choose another");
                return Err(fail(option, &place, why));
            }
        }
        Ok(())
    }

    /// What is written.
    fn written(&self) -> Vec<Written> {
        let mut all = Vec::new();
        for named in self.iter().filter(|named| !named.is_special()) {
            all.push(Written {
                option: named.option,
                place: named.place.clone(),
            });
            if let Some((option, path)) = named.beside() {
                let place = resolve_links(&path).unwrap_or(path);
                all.push(Written { option, place });
            }
        }
        all
    }
}

/// A file that the run writes.
struct Written {
    option: &'static str,
    /// Where its links lead.
    place: PathBuf,
}

/// The device and inode of a regular file.
fn id_of_file(path: &Path) -> Option<(u64, u64)> {
    let meta = path.metadata().ok()?;
    meta.is_file().then(|| id_of(&meta))
}

fn id_of(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl NamedFile {
    fn resolve_given(option: &'static str, path: Option<&Path>) -> Result<Option<NamedFile>> {
        path.map(|path| NamedFile::resolve(option, path))
            .transpose()
    }

    fn resolve(option: &'static str, path: &Path) -> Result<NamedFile> {
        let place = resolve_links(path).map_err(|error| fail(option, path, error))?;
        Ok(NamedFile {
            option,
            mode: USUAL,
            path: path.to_owned(),
            place,
        })
    }

    /// The job log in a log folder.
    pub(crate) fn joblog_in(logs: &Path) -> NamedFile {
        let path = logs.join(JOBLOG);
        NamedFile {
            option: OWN_JOBLOG,
            mode: PRIVATE,
            place: path.clone(),
            path,
        }
    }

    /// Whether it is the job log in the log folder.
    pub(crate) fn is_own(&self) -> bool {
        self.option == OWN_JOBLOG
    }

    /// Whether it is a pipe, a device or a descriptor: nothing can lie beside it or replace it.
    pub(crate) fn is_special(&self) -> bool {
        is_descriptor(&self.place) || self.place.metadata().is_ok_and(|meta| !meta.is_file())
    }

    /// The file that is written beside it, and what that is.
    fn beside(&self) -> Option<(&'static str, PathBuf)> {
        match self.option {
            "--record" if self.is_special() => None,
            "--record" => Some(("the series beside --record", self.series())),
            "--joblog" => {
                let runs = runs::beside(&self.path)?;
                Some(("the list of runs beside --joblog", runs))
            }
            _ => None,
        }
    }

    fn check_beside(&self) -> Result<()> {
        if let Some((_, path)) = self.beside()
            && path.symlink_metadata().is_ok_and(|meta| !meta.is_file())
        {
            let why = "it lies beside the file, and is not a regular file; remove it first";
            return Err(fail(self.option, &path, why));
        }
        Ok(())
    }

    /// The series beside a record.
    pub(crate) fn series(&self) -> PathBuf {
        self.path.with_extension("series.jsonl")
    }

    pub(crate) fn fail(&self, why: impl Display) -> anyhow::Error {
        fail(self.option, &self.path, why)
    }

    /// Adds the option and the file's name to an error.
    pub(crate) fn with_name<T, E: Display>(&self, done: Result<T, E>) -> Result<T> {
        done.map_err(|error| self.fail(error))
    }

    /// Opens the file for writing at its end, and makes it if it is not there. With `reads`, a regular file can be read, too.
    ///
    /// # Errors
    /// The file can't be opened, or a signal comes while a pipe has no reader.
    pub(crate) fn open(&self, reads: bool, waiting: &Waiting<'_>) -> Result<File> {
        if let Some(number) = self.descriptor()
            && self.place.is_file()
        {
            return self.with_name(same_descriptor(number));
        }
        let is_descriptor = is_descriptor(&self.place);
        let mut how = OpenOptions::new();
        let metadata = self.place.metadata();
        let is_pipe = metadata.is_ok_and(|meta| meta.file_type().is_fifo());
        // A pipe that is open for reading as well has a reader always.
        how.write(true).read(reads && !is_pipe).mode(self.mode);
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, !is_descriptor);
        how.custom_flags(flags.bits() as i32);
        let file = match how.clone().create_new(true).open(&self.place) {
            Ok(file) => {
                waiting.made(&self.place);
                file
            }
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(self.fail(error)),
            Err(_) if is_pipe => self.await_reader(&how, waiting)?,
            Err(_) => self.with_name(how.open(&self.place))?,
        };
        // From now on it blocks. A second run may write to it, too.
        self.with_name(fcntl_setfl(&file, OFlags::APPEND))?;
        Ok(file)
    }

    /// Opens a pipe as soon as it has a reader.
    fn await_reader(&self, how: &OpenOptions, waiting: &Waiting<'_>) -> Result<File> {
        let no_reader = Some(Errno::NXIO.raw_os_error());
        let mut tries = 0;
        loop {
            match how.open(&self.place) {
                Err(error) if error.raw_os_error() == no_reader => {}
                opened => return self.with_name(opened),
            }
            tries += 1;
            if tries == TRIES_BEFORE_MESSAGE {
                let NamedFile { option, path, .. } = self;
                let path = told(path);
                waiting.say(&format!("waiting until somebody reads {option} {path}"));
            }
            waiting.sleep()?;
        }
    }

    /// The number of this process's own descriptor that it is, if it is one.
    fn descriptor(&self) -> Option<i32> {
        let folder = format!("/proc/{}/fd", std::process::id());
        let number = self.place.strip_prefix(folder).ok()?;
        number.to_str()?.parse().ok()
    }

    /// Locks the file as long as it stays open, against runs that begin at the same moment or know it by another name.
    ///
    /// # Errors
    /// Another run has it, or has removed it.
    pub(crate) fn claim(&self, file: &File, waiting: &Waiting<'_>) -> Result<()> {
        if self.is_special() {
            return Ok(());
        }
        let mut tries = 0;
        // A file system without locks gives another error.
        while let Err(Errno::WOULDBLOCK) = flock(file, FlockOperation::NonBlockingLockExclusive) {
            // Whoever made it, it is that run's by now.
            waiting.not_made(&self.place);
            tries += 1;
            if tries > TRIES_TO_LOCK {
                return Err(self.fail("another run still goes on and writes to it"));
            }
            waiting.sleep()?;
        }
        let opened = id_of(&self.with_name(file.metadata())?);
        if id_of_file(&self.place) == Some(opened) {
            return Ok(());
        }
        Err(self.fail("it was removed or replaced just now; try again"))
    }

    /// Empties the file, unless it is a pipe, a device or a descriptor.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn empty(&self, file: &File) -> Result<()> {
        if self.is_special() {
            return Ok(());
        }
        self.with_name(file.set_len(0))
    }
}

/// Duplicates a descriptor of this process, which shares its position in the file.
fn same_descriptor(number: i32) -> io::Result<File> {
    let file = File::from(same_open_file(number)?);
    if fcntl_getfl(&file)? & OFlags::RWMODE == OFlags::RDONLY {
        return Err(io::Error::other("it is not open for writing"));
    }
    Ok(file)
}

fn fail(option: &str, path: &Path, why: impl Display) -> anyhow::Error {
    let path = told(path);
    usage(format!("{option} {path}: {why}; nothing was started"))
}

/// Waits while files are opened, and removes new files if a signal ends the run meanwhile.
pub(crate) struct Waiting<'a> {
    signals: &'a Signals,
    quiet: bool,
    made: RefCell<Vec<PathBuf>>,
}

impl Waiting<'_> {
    pub(crate) fn new(quiet: bool, signals: &Signals) -> Waiting<'_> {
        Waiting {
            signals,
            quiet,
            made: RefCell::default(),
        }
    }

    /// Notes a file that this run has made.
    pub(crate) fn made(&self, path: &Path) {
        self.made.borrow_mut().push(path.to_owned());
    }

    /// Notes that a file is not to be removed.
    fn not_made(&self, path: &Path) {
        self.made.borrow_mut().retain(|made| made != path);
    }

    /// Removes the files that were made.
    pub(crate) fn unmake(&self) {
        for path in self.made.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn sleep(&self) -> Result<()> {
        self.signals.look()?;
        std::thread::sleep(RETRY);
        Ok(())
    }

    fn say(&self, what: &str) {
        if !self.quiet {
            stderr::say(format_args!("cosched: {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_that_appears_after_the_check_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (out, precious) = (dir.path().join("out"), dir.path().join("precious"));
        std::fs::write(&precious, "kept").unwrap();
        let signals = Signals::hold(&RunOptions::default()).unwrap();
        let waiting = Waiting::new(true, &signals);
        let named = NamedFile::resolve("--joblog", &out).unwrap();
        symlink(&precious, &out).unwrap();
        assert!(named.open(false, &waiting).is_err() && named.open(true, &waiting).is_err());
        std::fs::remove_file(&out).unwrap();
        named.open(false, &waiting).unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    }
}
