//! What can be wrong with a store, and what to do.

use std::path::{Path, PathBuf};

/// Why a store can't be used. It names the file, and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; {}", path.display(), self.remedy())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the file of a store.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It, or its folder, could not be opened, made or removed.
    #[error("{0}")]
    System(std::io::Error),
    /// It belongs to another user, or others may write to it.
    #[error("{0}")]
    Unsafe(String),
    /// It is something else.
    #[error("it holds something else than what cosched keeps of commands")]
    Foreign,
    /// A later version of cosched wrote it.
    #[error("a later version of cosched wrote it (format {0}; this one reads {1})")]
    Newer(i64, i64),
    /// It is damaged.
    #[error("it is damaged ({0})")]
    Damaged(String),
    /// Others use it, and did not let go of it in time.
    #[error("other runs use it")]
    Busy,
    /// There is no room for it.
    #[error("there is no room for it ({0})")]
    Full(String),
    /// It, or its folder, may not be written to.
    #[error("it can't be written to ({0})")]
    ReadOnly(String),
    /// Another error of the database.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// What to do.
    fn remedy(&self) -> String {
        const ANOTHER: &str =
            "name another file with --history FILE, or keep nothing with --history off";
        // It names the file: without a name the command is about the user's own history, which may be sound.
        let name = self.path.to_string_lossy().replace('\'', "'\\''");
        let new = format!("`cosched history forget --all --history '{name}'` begins a new one");
        match self.problem {
            Problem::Damaged(_) => new,
            Problem::Newer(..) => format!("use that version, {ANOTHER}"),
            Problem::Busy => "nothing is wrong if this is rare".to_owned(),
            Problem::Full(_) => {
                "make room, or name a file elsewhere with --history FILE".to_owned()
            }
            Problem::Other(_) => format!("{ANOTHER}; if the file is damaged, {new}"),
            _ => ANOTHER.to_owned(),
        }
    }
}

impl Problem {
    /// Whether it is a matter of permissions.
    pub fn is_permission(&self) -> bool {
        match self {
            Problem::System(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
            Problem::ReadOnly(_) | Problem::Unsafe(_) => true,
            _ => false,
        }
    }

    pub(crate) fn at(self, path: &Path) -> Error {
        Error {
            path: path.to_owned(),
            problem: self,
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        Problem::System(error)
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        use rusqlite::ErrorCode;
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Problem::Foreign,
            Some(ErrorCode::DatabaseCorrupt) => Problem::Damaged(text),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Busy,
            Some(ErrorCode::DiskFull) => Problem::Full(text),
            Some(ErrorCode::ReadOnly) => Problem::ReadOnly(text),
            // Journals are made beside the file.
            Some(ErrorCode::CannotOpen) => Problem::ReadOnly(text),
            _ => Problem::Other(text),
        }
    }
}
