//! What a reaper notes of its job, for those who follow the job without being its parent. Each job has a key, which is a
//! path: `KEY.start` says who reaps the job, and `KEY.end` how it ended.
//!
//! The files are for when a process is killed. Whoever follows a job keeps its start and its end against a failure of the
//! machine. Only if the run is dead, and perhaps nobody follows the job, the disk has its end before the reaper ends: to wait
//! for the disk takes longer than a short job.

use crate::identity;
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::{RawPid, Status, Used, unix_time};
use cosched_core::Nanos;
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

/// The end of a job: the file `KEY.end`. There is an exit code or a signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The exit code of its first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended that process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// CPU time of all its processes in user mode, in seconds.
    pub user_s: f64,
    /// The same in the kernel.
    pub system_s: f64,
    /// Peak resident memory of the largest process; `None` if that is within the reaper's own.
    pub max_rss_bytes: Option<u64>,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
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

impl Ending {
    /// How the job with this key ended; `None` if it has not, or if its reaper was killed.
    pub fn of(key: &Path) -> Option<Ending> {
        read(&beside(key, "end"))
    }

    pub(crate) fn new(status: Status, used: Used, started_at: f64) -> Ending {
        let (exit, signal) = match status {
            Status::Exited(code) => (Some(code), None),
            Status::Signaled(signal) => (None, Some(signal)),
            Status::Stopped | Status::Continued => (None, None),
        };
        Ending {
            exit,
            signal,
            user_s: used.user.as_s(),
            system_s: used.system.as_s(),
            max_rss_bytes: (used.max_rss > 0).then_some(used.max_rss),
            read_bytes: used.read_bytes,
            written_bytes: used.written_bytes,
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

    /// How its first process ended.
    pub(crate) fn status(&self) -> Option<Status> {
        let exited = self.exit.map(Status::Exited);
        exited.or(self.signal.map(Status::Signaled))
    }

    pub(crate) fn used(&self) -> Used {
        Used {
            user: Nanos::from_s(self.user_s),
            system: Nanos::from_s(self.system_s),
            // Less than can be told from any program's own.
            max_rss: self.max_rss_bytes.unwrap_or(1),
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
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
