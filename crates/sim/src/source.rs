//! Where a figure comes from.

use std::fmt;

/// Where a group of figures comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A publication, or a measurement.
    Cited(String),
    /// Nobody measured it: we chose it, for this reason.
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
