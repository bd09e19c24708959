//! Where a figure comes from.

use std::fmt;

/// The source of a group of figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A publication, or a measurement.
    Cited(String),
    /// Not measured: we chose it, for this reason.
    Assumed(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Cited(text) => f.write_str(text),
            Source::Assumed(text) => write!(f, "assumed: {text}"),
        }
    }
}
