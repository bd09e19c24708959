//! Why the service can't go on.

use std::io;
use std::path::{Path, PathBuf};

/// Why the service can't go on, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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

impl Error {
    /// An error of the system with a file.
    pub(crate) fn at(path: &Path, source: impl Into<io::Error>) -> Error {
        Error::System {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// What is wrong with a database, and what to do.
pub(crate) fn database_text(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full; make room".to_owned(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            format!("it is damaged ({error}); move it away, and its jobs are forgotten")
        }
        _ => error.to_string(),
    }
}
