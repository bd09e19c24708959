//! The log folder of a run. One run at a time uses it. Files of an earlier run are moved aside, and the user's files are
//! never touched.

use crate::exit::usage;
use crate::input::told;
use crate::whole_file::{PRIVATE, create_private, create_private_folder, create_private_folders};
use anyhow::Context as _;
use cosched_linux::Allocation;
use cosched_linux::identity::host_name;
use cosched_linux::root::Root;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::collections::HashSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Lists the run's files and folders, a line each. A run locks it until it ends.
pub(super) const MANIFEST: &str = ".cosched-run";

/// Prefix of folders for files of earlier runs; a number follows.
pub(super) const EARLIER: &str = "earlier-";

/// The job log of a run, unless the user names another.
pub(super) const JOBLOG: &str = "joblog";

/// The job log, and the list of runs beside it.
pub(super) const JOBLOG_FILES: [&str; 2] = [JOBLOG, "joblog.runs"];

/// What a run writes into its log folder beside the jobs' output and its job log.
pub(super) const OWN: [&str; 7] = [
    "series.jsonl",
    "run.json",
    "run.json.new",
    "solo",
    "solo.json",
    "solo.series.jsonl",
    "solo-profiles.json",
];

/// The files of a job's output and error output.
pub(crate) fn output_files(folder: &Path, job: &str) -> [PathBuf; 2] {
    ["out", "err"].map(|end| folder.join(format!("{job}.{end}")))
}

/// The same of a job with a reaper, whose key is in the folder of the reapers.
pub(crate) fn reaped_files(key: &Path) -> [PathBuf; 2] {
    let logs = key.parent().unwrap_or(key).with_file_name("logs");
    output_files(
        &logs,
        &key.file_name().unwrap_or_default().to_string_lossy(),
    )
}

/// Names of files in a log folder.
#[derive(Default)]
pub(crate) struct LogNames {
    /// What the run will write.
    pub(crate) written: Vec<String>,
    /// What stays of the batch that it resumes.
    pub(crate) stays: HashSet<String>,
}

/// The locked log folder of a run. Only its owner may read what is new in it. The lock ends when it is dropped; a temporary
/// folder is removed then.
pub(crate) struct LogFolder {
    path: PathBuf,
    /// Whether it stays when it is dropped.
    keeps: bool,
    /// Folders that were made for it, the deepest first.
    made: Vec<PathBuf>,
    /// The folder for files of an earlier run, if there were any.
    pub(crate) aside: Option<PathBuf>,
    manifest: File,
}

impl LogFolder {
    /// Makes and locks the folder for a run that will write files into it. With `keeps` it may be there, and stays.
    ///
    /// # Errors
    /// The folder can't be written, another run uses it, or a file of the user has one of the names. Nothing is changed
    /// then.
    pub(crate) fn claim(path: &Path, names: &LogNames, keeps: bool) -> anyhow::Result<LogFolder> {
        let mut made: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
        made.retain(|folder| !folder.exists());
        match make(path, keeps).and_then(|()| take_over(path, names)) {
            Ok((aside, manifest)) => Ok(LogFolder {
                path: path.to_owned(),
                keeps,
                made,
                aside,
                manifest,
            }),
            Err(error) => {
                remove_made(&made);
                let path = told(path);
                Err(usage(format!(
                    "--logs {path}: {error}; choose another, as in --logs /tmp/run1; nothing was started"
                )))
            }
        }
    }

    /// Makes a new file in the folder.
    ///
    /// # Errors
    /// The file exists, or can't be made.
    pub(crate) fn create(&self, name: &str) -> Result<File> {
        create_private(&self.path.join(name))
    }

    /// Lists the files of a job that has come while the run goes on.
    ///
    /// # Errors
    /// A file of the user has one of the names, or the list can't be written.
    pub(crate) fn add(&mut self, job: &str) -> anyhow::Result<()> {
        let files = output_files(&self.path, job);
        if let Some(taken) = files.iter().find(|file| is_there(file)) {
            let taken = told(taken);
            return Err(usage(format!(
                "{taken} is there already, which no run of cosched made; choose another folder, as in --logs /tmp/run1"
            )));
        }
        let lines = ["out", "err"].map(|end| format!("{job}.{end}\n"));
        let written = self.manifest.write_all(lines.concat().as_bytes());
        written.with_context(|| format!("--logs {}", told(&self.path)))
    }

    /// Keeps a temporary folder: it holds output that is nowhere else. Without the list of files no later run takes it for one
    /// that a killed run has left.
    pub(crate) fn keep(&mut self) {
        if !self.keeps {
            let _ = std::fs::remove_file(self.path.join(MANIFEST));
        }
        self.keeps = true;
    }

    /// Gives the folder back before anything was started, and removes what was made.
    pub(crate) fn abandon(self, names: &[&str]) {
        for name in names {
            let _ = std::fs::remove_file(self.path.join(name));
        }
        remove_made(&self.made);
    }
}

impl Drop for LogFolder {
    fn drop(&mut self) {
        if !self.keeps {
            remove_folder(&self.path);
        }
    }
}

/// Removes a temporary folder. Its list of files goes last: if the caller is killed meanwhile, a later run knows by it that the
/// folder can go.
pub(crate) fn remove_folder(path: &Path) {
    remove_all_but_list(path);
    let _ = std::fs::remove_dir_all(path);
}

fn remove_all_but_list(path: &Path) {
    for entry in path.read_dir().into_iter().flatten().flatten() {
        if entry.file_name() == MANIFEST {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if is_folder {
            std::fs::remove_dir_all(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        };
    }
}

fn make(path: &Path, may_exist: bool) -> Result<()> {
    if let Some(parent) = path.parent() {
        create_private_folders(parent)?;
    }
    match create_private_folder(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && may_exist => Ok(()),
        made => made,
    }
}

/// Locks a folder, puts aside what an earlier run left in it, and lists what will be there.
fn take_over(path: &Path, names: &LogNames) -> Result<(Option<PathBuf>, File)> {
    let mut manifest = open_manifest(path, OpenOptions::new().write(true).create(true))?;
    if flock(&manifest, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Error::other("another run is using it"));
    }
    let mut old = read_names(&mut manifest)?;
    let LogNames { written, stays } = names;
    let mut taken: Vec<&str> = written.iter().map(String::as_str).collect();
    taken.retain(|&name| !old.contains(name) && is_there(&path.join(name)));
    taken.truncate(3);
    if !taken.is_empty() {
        let taken = taken.join(", ");
        return Err(Error::other(format!(
            "there is {taken} already, which no run of cosched made"
        )));
    }
    old.retain(|name| !stays.contains(name));
    let aside = put_aside(path, &old)?;
    let mut list = String::new();
    for name in written.iter().chain(stays) {
        list.push_str(name);
        list.push('\n');
    }
    manifest.set_len(0)?;
    manifest.rewind()?;
    manifest.write_all(list.as_bytes())?;
    Ok((aside, manifest))
}

/// Moves what an earlier run left into a new folder, and returns that.
fn put_aside(path: &Path, names: &HashSet<String>) -> Result<Option<PathBuf>> {
    if !names.iter().any(|name| is_there(&path.join(name))) {
        return Ok(None);
    }
    let aside = make_aside(path)?;
    for name in names {
        let moved = std::fs::rename(path.join(name), aside.join(name));
        if let Err(error) = moved
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(Some(aside))
}

fn make_aside(path: &Path) -> Result<PathBuf> {
    let mut number = 1;
    loop {
        let aside = path.join(format!("{EARLIER}{number}"));
        match create_private_folder(&aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| aside),
        }
    }
}

/// Locks a log folder of the caller, as long as the file stays open.
///
/// # Errors
/// A run uses it (`WouldBlock`), or it is no log folder of the caller.
pub(crate) fn lock(path: &Path) -> Result<File> {
    if !is_own(&path.metadata()?) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let manifest = open_manifest(path, &mut OpenOptions::new())?;
    flock(&manifest, FlockOperation::NonBlockingLockExclusive)?;
    Ok(manifest)
}

/// Whether a folder belongs to the caller.
fn is_own(folder: &Metadata) -> bool {
    folder.is_dir() && folder.uid() == rustix::process::geteuid().as_raw()
}

fn open_manifest(path: &Path, how: &mut OpenOptions) -> Result<File> {
    // A pipe would have to be waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let manifest = how
        .read(true)
        .mode(PRIVATE)
        .custom_flags(flags)
        .open(path.join(MANIFEST))?;
    if manifest.metadata()?.is_file() {
        Ok(manifest)
    } else {
        Err(Error::other(format!(
            "{MANIFEST} in it is not a regular file"
        )))
    }
}

/// Reads the names in a manifest, without those that lead out of the folder.
fn read_names(manifest: &mut File) -> Result<HashSet<String>> {
    let mut text = String::new();
    manifest.read_to_string(&mut text)?;
    let mut names: HashSet<String> = text.lines().map(str::to_owned).collect();
    names.retain(|name| !name.contains('/') && !["", ".", ".."].contains(&&**name));
    Ok(names)
}

/// Removes folders that were made and not used, the deepest first.
fn remove_made(made: &[PathBuf]) {
    if let Some(deepest) = made.first() {
        let _ = std::fs::remove_file(deepest.join(MANIFEST));
    }
    for folder in made {
        let _ = std::fs::remove_dir(folder);
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A name for a new folder that no other process uses: the time (UTC) and the number of the process. Processes of other
/// hosts and namespaces may have the same number, so the host's name is in it where they may share the folder.
pub fn stamp() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let digits = now.to_string().replace(['-', ':', 'Z'], "");
    let time = digits.replace('T', "-");
    let process = std::process::id();
    let shares = process == 1 || Allocation::here().is_some();
    match host_name(&Root::default()).filter(|_| shares) {
        Some(host) => format!("{time}-{}-{process}", plain(&host)),
        None => format!("{time}-{process}"),
    }
}

/// A name without characters that mean something in a path or to a terminal.
pub(crate) fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    name.replace(|c| !is_plain(c), "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode};
    use std::os::unix::fs::symlink;

    fn names(written: &[&str]) -> LogNames {
        LogNames {
            written: written.iter().map(|name| (*name).to_owned()).collect(),
            ..LogNames::default()
        }
    }

    fn why(path: &Path, wanted: &[&str]) -> String {
        LogFolder::claim(path, &names(wanted), true)
            .err()
            .unwrap()
            .to_string()
    }

    #[test]
    fn what_an_earlier_run_left_is_put_aside_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        for round in 1..=3 {
            let folder = LogFolder::claim(&logs, &names(&["x.out", "solo"]), true).unwrap();
            folder
                .create("x.out")
                .unwrap()
                .write_all(round.to_string().as_bytes())
                .unwrap();
            std::fs::create_dir(logs.join("solo")).unwrap();
            assert!(folder.create("x.out").is_err(), "it is there");
            std::fs::write(logs.join("mine"), "mine").unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap();
        assert_eq!(
            [
                read("earlier-1/x.out"),
                read("earlier-2/x.out"),
                read("x.out")
            ],
            ["1", "2", "3"]
        );
        assert!(logs.join("earlier-2/solo").is_dir());
        assert_eq!(read("mine"), "mine");
    }

    #[test]
    fn files_of_others_and_runs_that_go_on_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.out"), "theirs").unwrap();
        let told = why(dir.path(), &["x.out", "y.out"]);
        assert!(
            told.contains("there is x.out already") && told.contains("nothing was started"),
            "{told}"
        );
        symlink("/nowhere", dir.path().join("y.out")).unwrap();
        assert!(
            why(dir.path(), &["y.out"]).contains("there is y.out already"),
            "also a link that leads nowhere"
        );
        let folder = LogFolder::claim(dir.path(), &names(&["z.out"]), true).unwrap();
        assert!(why(dir.path(), &["w.out"]).contains("another run is using it"));
        drop(folder);
        assert!(LogFolder::claim(dir.path(), &names(&["w.out"]), true).is_ok());
    }

    #[test]
    fn a_pipe_in_place_of_the_list_of_files_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(
            CWD,
            dir.path().join(MANIFEST),
            FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        assert!(lock(dir.path()).is_err());
        let told = why(dir.path(), &["x.out"]);
        assert!(
            told.contains(".cosched-run in it is not a regular file"),
            "{told}"
        );
    }

    #[test]
    fn a_list_that_leads_elsewhere_moves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        std::fs::write(dir.path().join("precious"), "kept").unwrap();
        std::fs::write(logs.join(MANIFEST), "../precious\n..\n\n").unwrap();
        LogFolder::claim(&logs, &names(&["x.out"]), true).unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("precious")).unwrap(),
            "kept"
        );
    }

    #[test]
    fn a_claim_that_fails_leaves_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("a/b");
        LogFolder::claim(&logs, &names(&["x.out"]), true)
            .unwrap()
            .abandon(&["x.out"]);
        assert!(!dir.path().join("a").exists());
    }

    #[test]
    fn a_temporary_folder_is_removed_unless_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, other) = (dir.path().join("logs"), dir.path().join("other"));
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("x.out"), "kept").unwrap();
        for keeps in [false, true] {
            let mut folder = LogFolder::claim(&logs, &names(&["x.out"]), false).unwrap();
            std::fs::create_dir(logs.join("solo")).unwrap();
            symlink(&other, logs.join("solo/link")).unwrap();
            if keeps {
                folder.keep();
            }
            drop(folder);
            assert_eq!(
                (logs.exists(), is_there(&logs.join(MANIFEST))),
                (keeps, false)
            );
            assert!(other.join("x.out").exists(), "no link is followed");
        }
    }

    #[test]
    fn the_list_of_files_is_removed_last() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        let folder = LogFolder::claim(&logs, &names(&["x.out"]), false).unwrap();
        folder.create("x.out").unwrap();
        std::fs::create_dir(logs.join("solo")).unwrap();
        remove_all_but_list(&logs);
        let left = logs.read_dir().unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(left, [MANIFEST]);
        drop(folder);
        assert!(!logs.exists());
    }

    #[test]
    fn a_link_in_place_of_the_list_of_files_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, other) = (dir.path().join("logs"), dir.path().join("x.out"));
        std::fs::create_dir(&logs).unwrap();
        std::fs::write(&other, "kept").unwrap();
        symlink(&other, logs.join(MANIFEST)).unwrap();
        assert!(LogFolder::claim(&logs, &names(&["x.out"]), true).is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    }

    #[test]
    fn a_temporary_folder_is_always_new() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LogFolder::claim(dir.path(), &names(&["x.out"]), false).is_err());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
