//! What a reaper notes of its job, for those who follow the job without being its parent. Each job has a key, which is a
//! path: `KEY.start` says who reaps the job, and `KEY.end` how it ended.
//!
//! The files are for when a process is killed. Whoever follows a job keeps its start and its end against a failure of the
//! machine. Only if the run is dead, and perhaps nobody follows the job, the disk has its end before the reaper ends: to wait
//! for the disk takes longer than a short job.

use crate::identity;
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::{ChildStatus, ProcessUsage, RawPid, unix_time};
use cosched_core::{Exit, JobEnd, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The reaper of a job: the file `KEY.start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaper {
    /// Its process.
    pub pid: i32,
    /// When that started, in clock ticks since the boot, as `/proc` says.
    pub start_time: u64,
    /// The boot of the machine in which it runs.
    pub boot: String,
    /// When it started the job, in seconds since 1970.
    pub at: f64,
}

/// The end of a job: the file `KEY.end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReapedEnd {
    /// How its first process ended, and what all its processes used. Memory is not told if it is within the reaper's own.
    #[serde(flatten)]
    pub end: JobEnd,
    /// When it started, in seconds since 1970.
    pub started_at: f64,
    /// When its last process ended.
    pub ended_at: f64,
}

impl Reaper {
    /// This process as a reaper, from now.
    pub(crate) fn own(root: &Root) -> Option<Reaper> {
        let own = Process::read(root, std::process::id() as RawPid)?;
        Some(Reaper {
            pid: own.pid,
            start_time: own.start,
            boot: identity::boot(root)?,
            at: unix_time().as_secs_f64(),
        })
    }

    /// The reaper of the job with this key; `None` if the job was not started, or in the moment of its start.
    pub fn of(key: &Path) -> Option<Reaper> {
        read(&beside(key, "start"))
    }

    /// Whether it still runs.
    pub fn lives(&self, root: &Root) -> bool {
        identity::boot(root).as_ref() == Some(&self.boot)
            && process::lives(root, self.pid, self.start_time)
    }

    /// Makes this the only reaper of a job.
    ///
    /// # Errors
    /// Of kind `AlreadyExists` if the job has one. Or the file can't be written.
    pub(crate) fn claim(&self, key: &Path) -> io::Result<()> {
        let mut new = OpenOptions::new();
        write(new.create_new(true), &beside(key, "start"), self).map(drop)
    }
}

impl ReapedEnd {
    /// How the job with this key ended; `None` if it has not, or if its reaper was killed.
    pub fn of(key: &Path) -> Option<ReapedEnd> {
        read(&beside(key, "end"))
    }

    pub(crate) fn new(exit: &Exit, used: ProcessUsage, started_at: f64) -> ReapedEnd {
        let end = JobEnd {
            cpu_s: Some(used.cpu_time().as_s()),
            user_s: Some(used.user.as_s()),
            system_s: Some(used.system.as_s()),
            max_rss_bytes: (used.max_rss > 0).then_some(used.max_rss),
            read_bytes: Some(used.read_bytes),
            written_bytes: Some(used.written_bytes),
            ..JobEnd::of_exit(exit)
        };
        ReapedEnd {
            end,
            started_at,
            ended_at: unix_time().as_secs_f64(),
        }
    }

    /// Writes it, whole or not at all. With `syncs` the disk has it then.
    ///
    /// # Errors
    /// The disk is full, for example.
    pub(crate) fn write(&self, key: &Path, syncs: bool) -> io::Result<()> {
        let unfinished = beside(key, "new");
        let mut over = OpenOptions::new();
        let file = write(over.create(true).truncate(true), &unfinished, self)?;
        if syncs {
            file.sync_data()?;
        }
        std::fs::rename(unfinished, beside(key, "end"))
    }

    /// How its reaper ended: as its first process.
    pub(crate) fn status(&self) -> Option<ChildStatus> {
        match (self.end.signal, self.end.exit) {
            (Some(signal), _) => Some(ChildStatus::Signaled(signal)),
            (None, Some(code)) => Some(ChildStatus::Exited(code)),
            (None, None) => None,
        }
    }

    pub(crate) fn used(&self) -> ProcessUsage {
        ProcessUsage {
            user: Nanos::from_s(self.end.user_s.unwrap_or_default()),
            system: Nanos::from_s(self.end.system_s.unwrap_or_default()),
            // Less than can be told from any program's own.
            max_rss: self.end.max_rss_bytes.unwrap_or(1),
            read_bytes: self.end.read_bytes.unwrap_or_default(),
            written_bytes: self.end.written_bytes.unwrap_or_default(),
        }
    }
}

fn beside(key: &Path, ending: &str) -> PathBuf {
    let mut path = key.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(options: &mut OpenOptions, path: &Path, what: &impl Serialize) -> io::Result<File> {
    let mut file = options.write(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(what)?)?;
    Ok(file)
}
