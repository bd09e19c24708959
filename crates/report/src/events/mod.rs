//! Events: one line per decision with everything that it was based on, so that it can be replayed and explained.
//!
//! An event is also the input of `cosched decide`. People and other programs may write events, on one line or indented.
//! Numbers are printed in full, so they read back to the same bits.

mod event;
mod reader;
mod writer;

pub use event::{EVENT_SCHEMA, EventRecord};
pub use reader::{EventError, EventPick, EventReader, read_event};
pub use writer::{EventContext, EventWriter};

#[cfg(test)]
mod tests;
