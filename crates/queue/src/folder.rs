//! The folder of the queue.

use crate::error::QueueError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of the queue. Only its user can access it.
#[derive(Clone, Debug)]
pub struct QueueFolder {
    path: PathBuf,
}

/// The folder of one database, which has its name: numbers of jobs mean nothing in another one.
#[derive(Clone, Debug)]
pub(crate) struct JobsFolder {
    path: PathBuf,
}

impl QueueFolder {
    /// The folder at this path, which is made if it is missing.
    ///
    /// # Errors
    /// It can't be made, or other users could change it.
    pub fn open(path: PathBuf) -> Result<QueueFolder, QueueError> {
        if path.to_str().is_none() {
            let why = "its name is no UTF-8".to_owned();
            return Err(QueueError::Unsafe { path, why });
        }
        make(&path)?;
        Ok(QueueFolder { path })
    }

    /// The folder of the database with this name, which is made if it is missing.
    ///
    /// # Errors
    /// It can't be made, or other users could change it.
    pub(crate) fn of_database(&self, name: &str) -> Result<JobsFolder, QueueError> {
        let folder = JobsFolder {
            path: self.path.join(name),
        };
        for path in [&folder.path, &folder.claims(), &folder.logs()] {
            make(path)?;
        }
        Ok(folder)
    }

    /// The folders of other databases, which were moved away.
    pub(crate) fn of_other_databases(&self, own: &JobsFolder) -> Vec<JobsFolder> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten();
        let folders = entries.filter_map(|entry| {
            Some(JobsFolder {
                path: entry.ok()?.path(),
            })
        });
        let others = folders.filter(|folder| folder.path != own.path && folder.claims().is_dir());
        let mut others: Vec<JobsFolder> = others.collect();
        others.sort_by(|a, b| a.path.cmp(&b.path));
        others
    }

    /// The log folder of the worker, which is a run.
    pub(crate) fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("queue.db")
    }

    /// Locks the queue for this process, until the file is closed.
    ///
    /// # Errors
    /// Another service has it.
    pub(crate) fn lock(&self) -> Result<File, QueueError> {
        let path = self.path.join("lock");
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        let opened = how.mode(0o600).open(&path);
        let mut file = opened.map_err(|error| QueueError::at(&path, error))?;
        let mut text = String::new();
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let _ = file.read_to_string(&mut text);
            return Err(QueueError::Served(format!("process {}", text.trim())));
        }
        // The number is for messages only: a full disk does not matter.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = writeln!(file, "{}", std::process::id());
        Ok(file)
    }
}

impl JobsFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for the files of reapers.
    pub(crate) fn claims(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// The folder for the output of jobs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }
}

/// Makes a private folder if it is missing.
fn make(path: &Path) -> Result<(), QueueError> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|error| QueueError::at(path, error))?;
    check(path)
}

fn check(path: &Path) -> Result<(), QueueError> {
    let found = path.symlink_metadata();
    let found = found.map_err(|error| QueueError::at(path, error))?;
    let own = rustix::process::geteuid().as_raw();
    let why = if !found.is_dir() {
        "it is no folder".to_owned()
    } else if found.uid() != own {
        format!("it belongs to user {}", found.uid())
    } else if found.mode() & 0o022 != 0 {
        format!("others may write to it (mode {:o})", found.mode() & 0o7777)
    } else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(QueueError::Unsafe { path, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_one_service_has_a_folder_and_nobody_else_may_write_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = QueueFolder::open(dir.path().join("a/queue")).unwrap();
        let lock = folder.lock().unwrap();
        let why = folder.lock().unwrap_err().to_string();
        assert!(
            why.starts_with(&format!("process {} serves", std::process::id())),
            "{why}"
        );
        drop(lock);
        folder.lock().unwrap();
        let open = std::fs::Permissions::from_mode(0o770);
        let jobs = folder.of_database("x").unwrap();
        std::fs::set_permissions(jobs.claims(), open).unwrap();
        let why = folder.of_database("x").unwrap_err();
        assert!(why.to_string().contains("mode 770"), "{why}");
    }
}
