//! Programs that run already: which of them are observed, and what they do. Nothing here changes a process.
//!
//! A [`Selection`] names processes as the user does. A [`Finder`] turns it into [`Subject`]s, again and again, because
//! processes come and go. Each subject is a row of the table.

mod census;
mod error;
mod finder;
mod groups;
mod jobs;
mod pattern;
mod selection;
mod trees;

pub use error::SelectError;
pub use finder::{Finder, Found};
pub use selection::{Member, Selection, Subject, SubjectKey};
