//! What can be wrong with a store, and what to do.

use std::path::{Path, PathBuf};

/// Why a store can't be used, with the file and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; {}", path.display(), self.remedy())]
pub struct HistoryError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: HistoryProblem,
}

/// What is wrong with the file of a store.
#[derive(Debug, thiserror::Error)]
pub enum HistoryProblem {
    /// It, or its folder, could not be opened or made.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// It belongs to another user, or others may write to it.
    #[error("{0}")]
    Unsafe(String),
    /// It is something else.
    #[error("it is not a history of cosched")]
    Foreign,
    /// Another version of cosched wrote it.
    #[error("another version of cosched wrote it (format {0}; this one reads {1})")]
    Format(i64, i64),
    /// It is damaged.
    #[error("it is damaged ({0})")]
    Damaged(String),
    /// Other runs used it for too long.
    #[error("other runs use it")]
    Busy,
    /// The disk is full.
    #[error("the disk is full ({0})")]
    Full(String),
    /// It, or its folder, is read-only.
    #[error("it can't be written to ({0})")]
    ReadOnly(String),
    /// Another error of the database.
    #[error("{0}")]
    Other(String),
}

impl HistoryError {
    /// What to do.
    fn remedy(&self) -> &'static str {
        match self.problem {
            HistoryProblem::Damaged(_) | HistoryProblem::Format(..) => {
                "delete it, or name another file with --history FILE"
            }
            HistoryProblem::Busy => "nothing is wrong if this is rare",
            HistoryProblem::Full(_) => "make room, or name a file elsewhere with --history FILE",
            _ => "name another file with --history FILE, or keep nothing with --history off",
        }
    }
}

impl HistoryProblem {
    /// Whether it is a matter of permissions.
    pub fn is_permission(&self) -> bool {
        match self {
            HistoryProblem::System(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
            HistoryProblem::ReadOnly(_) | HistoryProblem::Unsafe(_) => true,
            _ => false,
        }
    }

    pub(crate) fn at(self, path: &Path) -> HistoryError {
        HistoryError {
            path: path.to_owned(),
            problem: self,
        }
    }
}

impl From<rusqlite::Error> for HistoryProblem {
    fn from(error: rusqlite::Error) -> HistoryProblem {
        use rusqlite::ErrorCode;
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => HistoryProblem::Foreign,
            Some(ErrorCode::DatabaseCorrupt) => HistoryProblem::Damaged(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryProblem::Busy,
            Some(ErrorCode::DiskFull) => HistoryProblem::Full(text),
            Some(ErrorCode::ReadOnly) => HistoryProblem::ReadOnly(text),
            // Journals are made beside the file.
            Some(ErrorCode::CannotOpen) => HistoryProblem::ReadOnly(text),
            _ => HistoryProblem::Other(text),
        }
    }
}
