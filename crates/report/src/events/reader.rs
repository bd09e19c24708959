//! Reading events back, one by one.

use super::event::{EVENT_SCHEMA, EventRecord};
use crate::json::{self, JsonError};
use serde_json::Deserializer;
use serde_json::de::IoRead;
use std::io::{self, BufRead};

/// An event that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The file can't be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, as the caller named it.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The text is no event, or it contradicts itself.
    #[error("{file}, {problem}")]
    Json {
        /// The file, as the caller named it.
        file: String,
        /// The place, what is wrong, and what was expected.
        problem: JsonError,
    },
    /// There is no event in the file.
    #[error(
        "{file}: found nothing; expected an event, an object with `\"schema\": \"{EVENT_SCHEMA}\"`"
    )]
    Empty {
        /// The file, as the caller named it.
        file: String,
    },
    /// The file has no event with this number.
    #[error("{file}: there is no decision with number {seq}; the last one has {last}")]
    NoSuch {
        /// The file, as the caller named it.
        file: String,
        /// The number that was asked for.
        seq: u64,
        /// The number of the last event.
        last: u64,
    },
}

/// Reads events one by one, in constant memory; each may be on one line or on several.
///
/// A last event that is cut off ends the reading, and [`EventReader::cut_off`] says so.
pub struct EventReader<R: BufRead> {
    file: String,
    json: Deserializer<IoRead<R>>,
    is_first: bool,
    cut_off: bool,
    done: bool,
}

impl<R: BufRead> EventReader<R> {
    /// Reads from `input`; `file` names it in errors.
    pub fn new(input: R, file: &str) -> EventReader<R> {
        EventReader {
            file: file.to_owned(),
            json: Deserializer::from_reader(input),
            is_first: true,
            cut_off: false,
            done: false,
        }
    }

    /// Whether the last event was cut off and left out; known once the reading has ended.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    fn next_event(&mut self) -> Result<Option<EventRecord>, EventError> {
        if self.json.end().is_ok() {
            return Ok(None);
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        match json::next::<EventRecord>(&mut self.json) {
            Ok(event) => event.check().map(Some).map_err(|error| self.wrong(error)),
            Err(error) if error.inner().is_io() => Err(EventError::Io {
                file: self.file.clone(),
                error: error.into_inner().into(),
            }),
            // A file whose only event is cut off is an error.
            Err(error) if error.inner().is_eof() && !is_first => {
                self.cut_off = true;
                Ok(None)
            }
            Err(error) => Err(self.wrong(error.into())),
        }
    }

    fn wrong(&self, problem: JsonError) -> EventError {
        EventError::Json {
            file: self.file.clone(),
            problem,
        }
    }
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<EventRecord, EventError>;

    /// The next event; after an error, nothing.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let event = self.next_event();
        self.done = !matches!(event, Ok(Some(_)));
        event.transpose()
    }
}

/// Which event of a file is meant.
#[derive(Clone, Copy, Debug)]
pub enum EventPick {
    /// The first.
    First,
    /// The one with this number.
    Seq(u64),
}

/// Reads one event of a file; `file` names it in errors.
///
/// # Errors
/// The file can't be read, or has no such event. The error names file, line, key and what was expected, or which events
/// there are.
pub fn read_event(
    input: impl BufRead,
    file: &str,
    pick: EventPick,
) -> Result<EventRecord, EventError> {
    let mut last = None;
    for event in EventReader::new(input, file) {
        let event = event?;
        match pick {
            EventPick::First => return Ok(event),
            EventPick::Seq(seq) if event.seq == seq => return Ok(event),
            EventPick::Seq(_) => {}
        }
        last = Some(event.seq);
    }
    let file = file.to_owned();
    match (pick, last) {
        (EventPick::Seq(seq), Some(last)) => Err(EventError::NoSuch { file, seq, last }),
        _ => Err(EventError::Empty { file }),
    }
}
