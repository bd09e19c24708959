//! What can be wrong with a machine, program or latency file.

/// A problem in a file: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The text is not TOML, or it has an unknown key or a value of the wrong type.
    #[error("{file}:{line}: {message}; the keys are in {page}")]
    Form {
        /// The file's name or path.
        file: Box<str>,
        /// The line, counted from 1.
        line: usize,
        /// What the TOML parser says.
        message: Box<str>,
        /// The page that documents the format.
        page: &'static str,
    },
    /// A value is missing or not allowed.
    #[error("{file}:{line}: {key} is {found}; expected {expected}, as in {example}")]
    Value {
        /// The file's name or path.
        file: Box<str>,
        /// The line of the value, or of the table that lacks it, counted from 1.
        line: usize,
        /// The key, with its table before it.
        key: Box<str>,
        /// The value that was found, or `missing`.
        found: Box<str>,
        /// What is allowed: a range, or a description.
        expected: Box<str>,
        /// A line that would be right.
        example: Box<str>,
    },
}
