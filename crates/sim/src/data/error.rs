//! Errors in a machine, program or latency file.

/// An error in a file.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {message}; see `{page}`")]
pub struct SpecError {
    /// The file's name or path.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The error, and the allowed values.
    pub message: String,
    /// The command that shows the documentation of the format.
    pub page: &'static str,
}
