//! What can be wrong with a machine, program or latency file.

/// What is wrong with a file, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, a key that the format does not have, or a value of another kind.
    #[error("{file}:{line}: {message}; the keys are in {page}")]
    Form {
        /// The file.
        file: Box<str>,
        /// The line, from 1.
        line: usize,
        /// What the reader of TOML says.
        message: Box<str>,
        /// The page that documents the format.
        page: &'static str,
    },
    /// A value that is missing, or that can't be.
    #[error("{file}:{line}: {key} is {found}; expected {expected}, as in {example}")]
    Value {
        /// The file.
        file: Box<str>,
        /// The line of the value, or of the table that lacks it, from 1.
        line: usize,
        /// The key, after its table.
        key: Box<str>,
        /// The value, or `missing`.
        found: Box<str>,
        /// What may be there: a range, or in words.
        expected: Box<str>,
        /// A line that would be right.
        example: Box<str>,
    },
}
