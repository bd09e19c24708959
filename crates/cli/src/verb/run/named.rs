//! Files that the user names beside the log folder (`--record`, `--events`, `--joblog`), and files that lie beside those.
//! They can be in a folder of somebody else, who could put links or pipes in their place.

use super::args::RunArgs;
use super::runs;
use crate::danger::{Place, danger_of_file, trusts};
use crate::exit::{Exit, Failure, usage};
use crate::input::told;
use crate::stderr;
use crate::whole_file::write_regular;
use cosched_linux::{Interrupt, Interrupts, same_open_file};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, fcntl_getfl, fcntl_setfl, flock, openat};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it is looked whether a pipe has a reader by now.
const LOOK: Duration = Duration::from_millis(20);
/// A reader that comes within this time is not worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an ended run had open is open for no longer than this.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// A file that the user named.
pub(crate) struct Named {
    pub(crate) option: &'static str,
    /// As the user wrote it.
    pub(crate) path: PathBuf,
    place: Place,
    /// Nobody else can redirect what is written to it.
    is_safe: bool,
}

/// The files that this run will write where the user says.
pub(crate) struct AllNamed {
    pub(crate) record: Option<Named>,
    pub(crate) events: Option<Named>,
    pub(crate) joblog: Option<Named>,
}

impl AllNamed {
    /// Checks that nobody else could redirect what is written to them, and to the files beside them. Nothing is made.
    ///
    /// # Errors
    /// Somebody else could, and `--shared-logs` does not allow it; or two files are one.
    pub(crate) fn check(args: &RunArgs) -> anyhow::Result<AllNamed> {
        let output = &args.output;
        let check = |option: &'static str, path: &Option<PathBuf>| {
            path.as_deref()
                .map(|path| Named::check(option, path, output.shared_logs))
                .transpose()
        };
        let all = AllNamed {
            record: check("--record", &output.record)?,
            events: check("--events", &output.events)?,
            joblog: check("--joblog", &output.joblog)?,
        };
        let series = all
            .record
            .as_ref()
            .filter(|record| !record.is_special())
            .map(Named::series);
        // A simulation enters itself nowhere.
        let runs = output
            .joblog
            .as_deref()
            .filter(|_| !args.is_simulated())
            .and_then(runs::beside);
        all.check_apart()?;
        for (option, path) in [("--record", series), ("--joblog", runs)] {
            let Some(path) = path else { continue };
            Named::check(option, &path, output.shared_logs)?;
            if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
                let why = io::Error::other(
                    "it lies beside the file, and is not a regular file; remove it first",
                );
                return Err(fail(option, &path, &why));
            }
        }
        Ok(all)
    }

    /// Refuses files that the run reads: they would be overwritten.
    ///
    /// # Errors
    /// One of them is such a file, by whichever name.
    pub(crate) fn check_inputs<I: Iterator<Item = PathBuf>>(
        &self,
        inputs: impl FnOnce() -> I,
    ) -> anyhow::Result<()> {
        let id = |path: &Path| {
            path.metadata()
                .ok()
                .filter(Metadata::is_file)
                .map(|meta| (meta.dev(), meta.ino()))
        };
        let mut written: Vec<(&Named, (u64, u64))> = Vec::new();
        for named in [&self.record, &self.events, &self.joblog]
            .into_iter()
            .flatten()
        {
            let paths = named
                .beside()
                .map(|(_, path)| path)
                .into_iter()
                .chain([named.path.clone()]);
            written.extend(paths.filter_map(|path| Some((named, id(&path)?))));
        }
        if written.is_empty() {
            return Ok(());
        }
        for input in inputs() {
            let Some(input) = id(&input) else { continue };
            if let Some((named, _)) = written.iter().find(|(_, id)| *id == input) {
                let why = "this run reads this file, which would be overwritten; choose another";
                return Err(named.fail(&io::Error::other(why)));
            }
        }
        Ok(())
    }

    /// Refuses files of which one would be written over another.
    fn check_apart(&self) -> anyhow::Result<()> {
        let all = self.written();
        for (ix, (option, path)) in all.iter().enumerate() {
            if let Some((other, _)) = all[..ix].iter().find(|(_, earlier)| earlier == path) {
                let why = io::Error::other(format!("{other} is the same file; choose another"));
                return Err(fail(option, path, &why));
            }
        }
        Ok(())
    }

    /// Refuses files of these names in the log folder: the run writes them itself.
    ///
    /// # Errors
    /// One of them is such a file.
    pub(crate) fn check_logs(&self, logs: &Path, names: &[String]) -> anyhow::Result<()> {
        let logs = logs
            .canonicalize()
            .or_else(|_| std::path::absolute(logs))
            .unwrap_or_else(|_| logs.to_owned());
        for (option, path) in &self.written() {
            let name = path.strip_prefix(&logs).ok().and_then(Path::to_str);
            if let Some(name) = name.filter(|name| names.iter().any(|one| one == name)) {
                let why = io::Error::other(format!(
                    "the run writes {name} in its log folder, too; choose another"
                ));
                return Err(fail(option, path, &why));
            }
        }
        Ok(())
    }

    /// Where they and the files beside them are written, by what they are.
    fn written(&self) -> Vec<(&'static str, PathBuf)> {
        let place = |path: &Path| {
            danger_of_file(path)
                .ok()
                .and_then(Result::ok)
                .map_or_else(|| path.to_owned(), |place| place.path)
        };
        let mut all = Vec::new();
        for named in [&self.record, &self.events, &self.joblog]
            .into_iter()
            .flatten()
            .filter(|named| !named.is_special())
        {
            all.push((named.option, named.place().to_owned()));
            all.extend(named.beside().map(|(what, path)| (what, place(&path))));
        }
        all
    }
}

impl Named {
    fn check(option: &'static str, path: &Path, shared: bool) -> anyhow::Result<Named> {
        let (place, is_safe) = match danger_of_file(path)
            .map_err(|error| fail(option, path, &error))?
        {
            Ok(place) => (place, true),
            Err(_) if shared => {
                let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                (
                    Place {
                        path,
                        follows: false,
                    },
                    false,
                )
            }
            Err(why) => {
                let why = format!(
                    "{why}, so that somebody else could change what is written; choose a file in a folder of your own, as \
                     in {option} ~/out, or allow it with --shared-logs"
                );
                return Err(fail(option, path, &io::Error::other(why)));
            }
        };
        Ok(Named {
            option,
            path: path.to_owned(),
            place,
            is_safe,
        })
    }

    /// Where its links lead.
    pub(crate) fn place(&self) -> &Path {
        &self.place.path
    }

    /// Whether it is a pipe, a device or a descriptor: nothing can lie beside it or replace it.
    pub(crate) fn is_special(&self) -> bool {
        self.place.follows || self.place.path.metadata().is_ok_and(|meta| !meta.is_file())
    }

    /// The file that is written beside it, and what that is.
    fn beside(&self) -> Option<(&'static str, PathBuf)> {
        match self.option {
            "--record" => Some(("the series beside --record", self.series())),
            "--joblog" => {
                runs::beside(&self.path).map(|path| ("the list of runs beside --joblog", path))
            }
            _ => None,
        }
    }

    /// The series beside a record.
    pub(crate) fn series(&self) -> PathBuf {
        self.path.with_extension("series.jsonl")
    }

    /// Opens the series beside a record, and empties it.
    ///
    /// # Errors
    /// An error of the system; it is not a regular file; or somebody else has made it since it was looked at.
    pub(crate) fn open_series(&self) -> io::Result<File> {
        let file = write_regular(&self.series(), OFlags::empty())?;
        if self.is_safe && !trusts(file.metadata()?.uid()) {
            return Err(io::Error::other("belongs to another user"));
        }
        file.set_len(0)?;
        Ok(file)
    }

    pub(crate) fn fail(&self, error: &io::Error) -> anyhow::Error {
        fail(self.option, &self.path, error)
    }

    /// Opens it for writing, and makes it if it is not there. It keeps what is in it. What is written to a descriptor comes
    /// where the descriptor stands. A pipe is waited for until it has a reader, or a signal ends the run.
    ///
    /// # Errors
    /// An error of the system; or somebody else has made it since it was looked at.
    pub(crate) fn open(&self, reads: bool, waiting: &Waiting) -> anyhow::Result<File> {
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let is_checked = self.is_safe && !self.place.follows;
        if is_checked {
            flags |= OFlags::NOFOLLOW;
        }
        // A pipe that is open for reading as well has a reader always.
        let is_pipe = || {
            self.place
                .path
                .metadata()
                .is_ok_and(|meta| meta.file_type().is_fifo())
        };
        let how = if reads && !is_pipe() {
            OFlags::RDWR
        } else {
            OFlags::WRONLY
        };
        let try_open = |more| {
            openat(
                CWD,
                &self.place.path,
                flags | how | more,
                Mode::from_raw_mode(0o666),
            )
        };
        let since = Instant::now();
        let mut said = false;
        let file = loop {
            if let Ok(fd) = try_open(OFlags::CREATE | OFlags::EXCL) {
                waiting.made(&self.place.path);
                break File::from(fd);
            }
            match try_open(OFlags::CREATE) {
                Ok(fd) => break File::from(fd),
                Err(Errno::NXIO) if is_pipe() => waiting.look()?,
                Err(error) => return Err(self.fail(&error.into())),
            }
            if !said && since.elapsed() > PATIENCE {
                said = true;
                waiting.say(&format!(
                    "waiting until somebody reads {} {}",
                    self.option,
                    told(&self.path)
                ));
            }
            std::thread::sleep(LOOK);
        };
        let kind = file.metadata().map_err(|error| self.fail(&error))?;
        let is_device = kind.file_type().is_char_device() || kind.file_type().is_block_device();
        // Only root makes devices, and a descriptor is the caller's own.
        if is_checked && !is_device && !trusts(kind.uid()) {
            return Err(self.fail(&io::Error::other("another user made it just now")));
        }
        if kind.is_file()
            && let Some(number) = self.descriptor()
        {
            // The caller's file goes on where the caller is in it, and what the caller writes next comes after it.
            let file = same_open_file(number)
                .map(File::from)
                .map_err(|error| self.fail(&error))?;
            let flags = fcntl_getfl(&file).map_err(|error| self.fail(&error.into()))?;
            let reads_only = (flags & OFlags::RWMODE) == OFlags::RDONLY;
            return if reads_only {
                Err(self.fail(&io::Error::other("it is not open for writing")))
            } else {
                Ok(file)
            };
        }
        // Others may write to it, too, as a second run may.
        fcntl_setfl(&file, OFlags::APPEND).map_err(|error| self.fail(&error.into()))?;
        Ok(file)
    }

    /// The number of this process's own descriptor that it is, if it is one.
    fn descriptor(&self) -> Option<i32> {
        let path = self
            .place
            .path
            .strip_prefix(format!("/proc/{}", std::process::id()))
            .ok()?;
        self.place
            .follows
            .then(|| path.strip_prefix("fd").ok()?.to_str()?.parse().ok())?
    }

    /// Claims the file for this run as long as it stays open. Two runs that are started together, or that know the file by
    /// two names, must not both take it for theirs.
    ///
    /// # Errors
    /// Another run has it, or has removed it.
    pub(crate) fn claim(&self, file: &File, waiting: &Waiting) -> anyhow::Result<()> {
        if self.is_special() {
            return Ok(());
        }
        let since = Instant::now();
        // Where the file system knows no locks, the runs know each other by what lies beside the file.
        while let Err(Errno::WOULDBLOCK) = flock(file, FlockOperation::NonBlockingLockExclusive) {
            // Whoever made it, it is that run's by now.
            waiting.not_made(self.place());
            if since.elapsed() > LAST_MOMENT {
                let why = "another run still goes on and writes to it; wait for its end, or choose another file";
                return Err(self.fail(&io::Error::other(why)));
            }
            waiting.look()?;
            std::thread::sleep(LOOK);
        }
        // The run that had it may have removed it again.
        let which = |meta: &Metadata| (meta.dev(), meta.ino());
        let there = if self.is_safe {
            self.place().symlink_metadata()
        } else {
            self.place().metadata()
        };
        match there.and_then(|now| Ok(which(&now) == which(&file.metadata()?))) {
            Ok(true) => Ok(()),
            _ => Err(self.fail(&io::Error::other(
                "it was removed or replaced just now; try again",
            ))),
        }
    }

    /// Empties the file, unless it is a pipe, a device or a descriptor.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn empty(&self, file: &File) -> anyhow::Result<()> {
        if self.is_special() {
            Ok(())
        } else {
            file.set_len(0).map_err(|error| self.fail(&error))
        }
    }
}

fn fail(option: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    usage(format!(
        "{option} {}: {error}; nothing was started",
        told(path)
    ))
}

/// Signals that end the run, held back while files are opened: what was made must go, whatever comes.
pub(crate) struct Waiting {
    interrupts: Interrupts,
    quiet: bool,
    made: RefCell<Vec<PathBuf>>,
}

impl Waiting {
    /// From now on signals are asked for.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn new(quiet: bool) -> io::Result<Waiting> {
        Ok(Waiting {
            interrupts: Interrupts::hold()?,
            quiet,
            made: RefCell::default(),
        })
    }

    /// Notes a file that this run has made. One that was there before is not its own to remove.
    pub(crate) fn made(&self, path: &Path) {
        self.made.borrow_mut().push(path.to_owned());
    }

    /// Notes that a file is not to be removed, whoever made it.
    fn not_made(&self, path: &Path) {
        self.made.borrow_mut().retain(|made| made != path);
    }

    /// Removes the files that were made.
    pub(crate) fn unmake(&self) {
        self.made
            .take()
            .iter()
            .for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// Looks whether a signal has come.
    ///
    /// # Errors
    /// One has come that ends the run.
    pub(crate) fn look(&self) -> anyhow::Result<()> {
        while let Some(interrupt) = self.interrupts.next_signal() {
            if let Interrupt::End(signal) = interrupt {
                let message = format!("signal {signal} came before anything was started");
                return Err(Failure {
                    exit: Exit::Signal(signal),
                    message,
                }
                .into());
            }
        }
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
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    #[test]
    fn what_appears_after_the_look_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (out, precious) = (dir.path().join("out"), dir.path().join("precious"));
        std::fs::write(&precious, "kept").unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let waiting = Waiting::new(true).unwrap();
        let named = Named::check("--joblog", &out, false).unwrap();
        symlink(&precious, &out).unwrap();
        assert!(named.open(false, &waiting).is_err() && named.open(true, &waiting).is_err());
        std::fs::remove_file(&out).unwrap();
        let record = Named::check("--record", &out, false).unwrap();
        symlink(&precious, record.series()).unwrap();
        assert!(record.open_series().is_err());
        std::fs::remove_file(record.series()).unwrap();
        named.open(false, &waiting).unwrap();
        record.open_series().unwrap();
        if chown(&out, Some(2_000_001), None).is_err() {
            return eprintln!("skipped in part, because only root may give files away");
        }
        let told = named.open(false, &waiting).unwrap_err().to_string();
        assert!(told.contains("another user made it just now"), "{told}");
        chown(record.series(), Some(2_000_001), None).unwrap();
        assert!(record.open_series().is_err());
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    }
}
