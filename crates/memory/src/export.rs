//! The content of a store as JSON.

use crate::remembered::{Run, expected};
use cosched_core::{Earlier, ExpectedFrom};
use serde::{Deserialize, Serialize};

/// The format's name and version.
pub const EXPORT_SCHEMA: &str = "cosched.history/1";

/// What is kept, or a part of it; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// [`EXPORT_SCHEMA`].
    pub schema: String,
    /// The version of cosched that wrote it.
    pub cosched_version: String,
    /// The commands, the last seen first.
    pub commands: Vec<Exported>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// The command as one line; `null` for all commands with the program that were too short to be kept one by one.
    pub command: Option<String>,
    /// What it runs, without its arguments.
    pub program: String,
    /// The folder in which it ran; `null` where `command` is.
    pub folder: Option<String>,
    /// The kind of machine.
    pub machine: String,
    /// Tells the program's files from those of another version; `null` where `command` is.
    pub identity: Option<String>,
    /// The time that is expected of it, in seconds; `null` if it never ended well.
    pub time_s: Option<f64>,
    /// How often it ended; `null` if the file holds no such number.
    pub ends: Option<u64>,
    /// How often it ended otherwise than well; `null` if the file holds no such number.
    pub failures: Option<u64>,
    /// How it ended the last time, in words.
    pub last_exit: String,
    /// When it ended the last time, in milliseconds since 1970; `null` if the file holds no such number.
    pub seen: Option<u64>,
    /// Its last runs that ended well, the last first.
    pub runs: Vec<Run>,
    /// What was learnt of what it asks of caches and memory, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt: Option<Earlier>,
}

impl Export {
    /// The export of these commands.
    pub fn of(commands: Vec<Exported>) -> Export {
        let cosched_version = env!("CARGO_PKG_VERSION").to_owned();
        Export {
            schema: EXPORT_SCHEMA.to_owned(),
            cosched_version,
            commands,
        }
    }
}

impl Exported {
    /// The greatest resident memory of any of the runs, in bytes.
    pub fn max_rss(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.max_rss).max()
    }

    pub(crate) fn time_of(runs: &[Run]) -> Option<f64> {
        expected(runs, ExpectedFrom::Same).map(|expected| expected.time.as_s())
    }
}
