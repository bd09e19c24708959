//! The content of a store as JSON.

use crate::remembered::RememberedCommand;
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
    pub commands: Vec<RememberedCommand>,
}

impl Export {
    /// The export of these commands.
    pub fn of(commands: Vec<RememberedCommand>) -> Export {
        Export {
            schema: EXPORT_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            commands,
        }
    }
}
