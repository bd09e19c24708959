//! Programs that run already: which of them are observed, and what they do. Only [`Attached`] changes processes.
//!
//! A [`Selection`] names processes as the user does. A `Finder` turns it into [`Subject`]s, again and again, because
//! processes come and go. Each subject is a row of the table. A [`Sampler`] observes what they do between two looks.
//!
//! A run counts its own jobs otherwise: whole, from their first instruction on, by counters and a group that all their
//! processes inherit. Here the processes ran before, and come and go within a subject. So each look adds what each process
//! did since the look before.
//!
//! What [`Attached`] changes is entered and undone in `hold`.

mod backend;
mod census;
mod counted;
mod error;
mod finder;
mod groups;
mod jobs;
mod notes;
mod pattern;
mod process_file;
mod published;
mod sampler;
mod selection;
#[cfg(test)]
mod tests;
mod trees;
mod usage;
mod watched;

pub use crate::hold::session::Restored;
pub use crate::process::ProcessKey;
pub use backend::{Attached, ManageConfig, ManageError, Newcomers, ScanObserver};
pub use error::SelectError;
pub use published::{publish, sessions};
pub use sampler::{Sampled, Sampler};
pub use selection::{Selection, Subject, SubjectKey};
