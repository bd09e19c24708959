//! Why the service can't go on.

use cosched_linux::unix_time;
use std::io;
use std::path::{Path, PathBuf};

/// Why the service can't go on, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// An error of the system with a file.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The folder of the queue can't be used.
    #[error("{}: {why}; set XDG_STATE_HOME to a folder of your own", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another service has the queue.
    #[error("{0} serves the queue already; `cosched status` shows its jobs")]
    Served(String),
    /// The database can't be used.
    #[error("{}: {why}", path.display())]
    Database {
        /// Its file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The worker refused its options, or this machine.
    #[error("the worker ended with exit code {0} before it took a job; its message is above")]
    Worker(u8),
}

impl QueueError {
    /// An error of the system with a file.
    pub(crate) fn at(path: &Path, source: impl Into<io::Error>) -> QueueError {
        QueueError::System {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// What is wrong with the database at this path, and what to do.
pub(crate) fn database_text(path: &Path, error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full; make room".to_owned(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            unusable(path, &format!("it is damaged ({error})"))
        }
        _ => error.to_string(),
    }
}

/// Why a database can't be used, and how to begin anew. SQLite keeps a part of it in a second file.
pub(crate) fn unusable(path: &Path, why: &str) -> String {
    let folder = path.parent().unwrap_or(path).display().to_string();
    let folder = format!("'{}'", folder.replace('\'', "'\\''"));
    let away = format!("{folder}/away-{}", unix_time().as_secs());
    format!(
        "{why}; for a new queue stop the service and type `mkdir {away} && mv {folder}/queue.db* {away}`: the jobs are forgotten, those that run go on"
    )
}
