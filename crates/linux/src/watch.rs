//! The files of a live run for observers, in the user's runtime folder, and the search for live runs.
//!
//! `status-RUN` is the state of the run. `requests-RUN` is a pipe for [requests](RunRequest) to the run. RUN is the
//! identity of the run. `jobserver-RUN.JOB` is the pipe of a job's tokens. Only the owner of the folder and root can access
//! them. The next start, `cosched thaw` and each
//! search for live runs remove the files of killed runs.

use crate::hold::ledger;
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use crate::runtime::{NoFolder, PrivateFolder};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// State of a run.
const STATUS: &str = "status-";
/// Latest interval of a process that attached to programs.
pub(crate) const ATTACHED: &str = "attached-";
/// Before the name of a state: the next one, while it is being written.
const NEXT: &str = "next-";
const REQUESTS: &str = "requests-";
/// Tokens of a job; the name ends with its number.
pub(crate) const JOBSERVER: &str = "jobserver-";
/// Prefixes of all files that are removed when their process is dead.
const ALL: [&str; 6] = [
    STATUS,
    "next-status-",
    REQUESTS,
    JOBSERVER,
    ATTACHED,
    "next-attached-",
];
/// Maximum length of a request. The kernel never splits a write of this length to a pipe.
const MAX_REQUEST: usize = rustix::pipe::PIPE_BUF;
/// Maximum number of bytes of requests read at once.
const MAX_READ: usize = 64 << 10;

/// A request to a run: a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunRequest {
    /// To end a job.
    End {
        /// The number of the job.
        end: u32,
        /// Its name. If the name differs, the job is not ended: the user saw another batch.
        name: String,
    },
    /// To change settings of the run.
    Set(LiveSettings),
}

/// Settings of a live run. Those that are absent stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSettings {
    /// Maximum number of live jobs; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Whether all jobs are frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<bool>,
}

/// The state of this process for observers, in a file. It is removed when this is dropped.
#[derive(Debug)]
pub struct PublishedState {
    folder: PrivateFolder,
    prefix: &'static str,
    run: String,
}

impl PublishedState {
    /// Prepares the file, with a name after this prefix.
    ///
    /// # Errors
    /// There is no folder for it.
    pub(crate) fn make(root: &Root, prefix: &'static str) -> Result<PublishedState, NoFolder> {
        let folder = PrivateFolder::own(root)?;
        let run = RunId::own(root).ok_or(NoFolder::Missing)?.to_string();
        Ok(PublishedState {
            folder,
            prefix,
            run,
        })
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// An error of the system. The last state stays.
    pub fn write(&self, state: &[u8]) -> Result<(), NoFolder> {
        self.folder.replace(&self.next(), &self.name(), state)
    }

    fn name(&self) -> String {
        format!("{}{}", self.prefix, self.run)
    }

    fn next(&self) -> String {
        format!("{NEXT}{}", self.name())
    }
}

impl Drop for PublishedState {
    fn drop(&mut self) {
        self.folder.remove(self.name());
        self.folder.remove(self.next());
    }
}

/// The files of a run for observers. They are removed when this is dropped.
#[derive(Debug)]
pub struct WatchFiles {
    status: PublishedState,
    pipe: File,
}

impl WatchFiles {
    /// Creates the files of the run led by this process.
    ///
    /// # Errors
    /// There is no folder for them, or they cannot be created in it.
    pub fn make(root: &Root) -> Result<WatchFiles, NoFolder> {
        let status = PublishedState::make(root, STATUS)?;
        let name = format!("{REQUESTS}{}", status.run);
        let pipe = status.folder.create_pipe(&name)?;
        Ok(WatchFiles { status, pipe })
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// An error of the system. The last state stays.
    pub fn write_status(&self, status: &[u8]) -> Result<(), NoFolder> {
        self.status.write(status)
    }

    /// The requests to the run.
    ///
    /// # Errors
    /// An error of the system.
    pub fn requests(&self) -> io::Result<RunRequests> {
        Ok(RunRequests {
            pipe: self.pipe.try_clone()?,
            unread: Vec::new(),
        })
    }
}

impl Drop for WatchFiles {
    fn drop(&mut self) {
        let name = format!("{REQUESTS}{}", self.status.run);
        self.status.folder.remove(name);
    }
}

/// Requests to a run. Reading them never blocks.
#[derive(Debug)]
pub struct RunRequests {
    pipe: File,
    unread: Vec<u8>,
}

impl AsFd for RunRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl RunRequests {
    /// Reads the pending requests. Skips invalid lines.
    pub fn take(&mut self) -> Vec<RunRequest> {
        let mut bytes = vec![0; MAX_READ];
        let read = self.pipe.read(&mut bytes).unwrap_or(0);
        self.unread.extend_from_slice(&bytes[..read]);
        let whole = self.unread.iter().rposition(|&byte| byte == b'\n');
        let lines: Vec<u8> = self
            .unread
            .drain(..whole.map_or(0, |end| end + 1))
            .collect();
        if self.unread.len() > MAX_REQUEST {
            self.unread.clear();
        }
        let requests = lines
            .split(|&byte| byte == b'\n')
            .map(serde_json::from_slice);
        requests.flatten().collect()
    }
}

/// A run that is alive, or may be.
#[derive(Debug)]
pub struct LiveRun {
    /// Its identity, as in `COSCHED_RUN` of its jobs.
    pub run: String,
    /// Its process number in its own PID namespace.
    pub pid: i32,
    /// The user of the run.
    pub owner: u32,
    /// Whether it is certainly alive; if not, it is invisible from here.
    pub is_seen: bool,
    /// Its folder, if that contains its state.
    folder: Option<PrivateFolder>,
    /// Prefix of its state.
    prefix: &'static str,
}

impl LiveRun {
    /// Whether the caller can read its state.
    pub fn has_status(&self) -> bool {
        self.folder.is_some()
    }

    /// Reads its state, and the age of the state in seconds.
    ///
    /// # Errors
    /// An error of the system; `NotFound` if the run has no state.
    pub fn status(&self) -> io::Result<(Vec<u8>, f64)> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        folder.read(&format!("{}{}", self.prefix, self.run))
    }

    /// Sends a request to the run.
    ///
    /// # Errors
    /// An error of the system: the run is ending, or accepts no requests now.
    pub fn ask(&self, request: &RunRequest) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{REQUESTS}{}", self.run);
        let pipe = openat(folder, name, flags, Mode::empty())?;
        let stat = fstat(&pipe)?;
        let is_pipe = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        if !is_pipe || stat.st_uid != self.owner || line.len() > MAX_REQUEST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        File::from(pipe).write_all(&line)
    }
}

/// The live runs that the caller can find: its own, and for root all users'. Removes the files of dead runs.
pub fn live_runs(root: &Root) -> Vec<LiveRun> {
    live(root, STATUS, &[STATUS, ledger::RUNS])
}

/// The live processes with files of these prefixes, where the state has the prefix `state`.
pub(crate) fn live(root: &Root, state: &'static str, prefixes: &[&str]) -> Vec<LiveRun> {
    forget_dead(root);
    let mut runs: BTreeMap<String, LiveRun> = BTreeMap::new();
    for folder in PrivateFolder::all(root) {
        let owner = folder.owner;
        for &prefix in prefixes {
            for name in folder.names(prefix) {
                let Some(run) = RunId::in_name(&name, prefix) else {
                    continue;
                };
                let fate = run.fate(root);
                if fate == RunFate::Dead || run.is_forged(root, owner) {
                    continue;
                }
                let entry = runs.entry(run.to_string()).or_insert_with(|| LiveRun {
                    run: run.to_string(),
                    pid: run.pid,
                    owner,
                    is_seen: fate == RunFate::Alive,
                    folder: None,
                    prefix: state,
                });
                if prefix == state && entry.folder.is_none() {
                    entry.folder = folder.again();
                    entry.owner = owner;
                }
            }
        }
    }
    runs.into_values().collect()
}

/// Removes the files of dead runs, as far as permitted.
pub(crate) fn forget_dead(root: &Root) {
    for folder in PrivateFolder::all(root) {
        for prefix in ALL {
            for name in folder.names(prefix) {
                let without_job = Path::new(&name).file_stem();
                let run = without_job.and_then(|name| RunId::in_name(name, prefix));
                if run.is_some_and(|run| run.fate(root) == RunFate::Dead) {
                    folder.remove(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};
    use rustix::process::geteuid;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::PathBuf;

    fn tree() -> (tempfile::TempDir, Root, PathBuf) {
        let (dir, root, own) = crate::runtime::tests::tree();
        link_namespace(dir.path(), 5);
        write_stat(dir.path(), 1, 'S', 0);
        drop(PrivateFolder::own(&root).unwrap());
        (dir, root, own)
    }

    fn files_of(root: &Root, run: &str) -> WatchFiles {
        let folder = PrivateFolder::own(root).unwrap();
        let pipe = folder.create_pipe(&format!("{REQUESTS}{run}")).unwrap();
        let status = PublishedState {
            folder,
            prefix: STATUS,
            run: run.to_owned(),
        };
        let files = WatchFiles { status, pipe };
        files.write_status(b"state").unwrap();
        files
    }

    fn names(own: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(own).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_run_with_a_state_is_found_and_takes_requests() {
        let (dir, root, own) = tree();
        write_stat(dir.path(), 10, 'S', 1);
        write_stat(dir.path(), 11, 'S', 1);
        let files = files_of(&root, "10-1-5");
        std::fs::write(own.join("run-11-1-5"), "").unwrap();
        let runs = live_runs(&root);
        let told: Vec<(&str, bool)> = runs
            .iter()
            .map(|run| (run.run.as_str(), run.has_status()))
            .collect();
        assert_eq!(told, [("10-1-5", true), ("11-1-5", false)]);
        let (status, age_s) = runs[0].status().unwrap();
        assert_eq!((&status[..], age_s < 60.0), (&b"state"[..], true));
        files.write_status(b"next").unwrap();
        assert_eq!(runs[0].status().unwrap().0, b"next");
        let mut requests = files.requests().unwrap();
        assert!(requests.take().is_empty(), "nothing has come");
        let request = RunRequest::End {
            end: 3,
            name: "mcf-2".to_owned(),
        };
        runs[0].ask(&request).unwrap();
        (&files.pipe)
            .write_all(b"{\"end\": 3}\n\0\xff\n{\"pause\": true}\n{\"end\": 3, \"na")
            .unwrap();
        let pause = RunRequest::Set(LiveSettings {
            pause: Some(true),
            jobs: None,
        });
        assert_eq!(requests.take(), [request.clone(), pause]);
        (&files.pipe).write_all(b"me\": \"mcf-2\"}\n").unwrap();
        assert_eq!(requests.take(), std::slice::from_ref(&request));
        let none = runs[1].ask(&request).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        assert!(runs[1].status().is_err());
        let name = "x".repeat(MAX_REQUEST);
        assert!(runs[0].ask(&RunRequest::End { end: 1, name }).is_err());
    }

    #[test]
    fn files_of_dead_runs_are_removed() {
        let (dir, root, own) = tree();
        write_stat(dir.path(), 10, 'S', 1);
        for run in ["9-1-5", "10-1-5", "8-1-5", "7-1-6"] {
            std::mem::forget(files_of(&root, run));
        }
        std::fs::write(own.join("next-status-9-1-5"), "half").unwrap();
        for name in ["jobserver-9-1-5.3", "jobserver-10-1-5.0"] {
            std::fs::write(own.join(name), "").unwrap();
        }
        let runs: Vec<(String, bool)> = live_runs(&root)
            .into_iter()
            .map(|run| (run.run, run.is_seen))
            .collect();
        assert_eq!(
            runs,
            [("10-1-5".to_owned(), true), ("7-1-6".to_owned(), false)]
        );
        let kept = [
            "jobserver-10-1-5.0",
            "requests-10-1-5",
            "requests-7-1-6",
            "status-10-1-5",
            "status-7-1-6",
        ];
        assert_eq!(names(&own), kept, "what can't be seen stays");
    }

    #[test]
    fn the_files_are_the_owners_alone_and_go_with_the_run() {
        let (_dir, root, own) = tree();
        let files = files_of(&root, "10-1-5");
        for name in ["status-10-1-5", "requests-10-1-5"] {
            let meta = std::fs::symlink_metadata(own.join(name)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
            assert_eq!(meta.uid(), geteuid().as_raw());
        }
        drop(files);
        assert!(names(&own).is_empty());
    }

    #[test]
    fn without_a_folder_there_is_an_error() {
        let (_dir, root, own) = tree();
        std::fs::remove_dir(&own).unwrap();
        std::fs::write(&own, "").unwrap();
        assert!(matches!(
            WatchFiles::make(&root),
            Err(NoFolder::Taken { .. })
        ));
    }
}
