//! What a job is given beside its command.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a job was given beside its command, with absolute paths. Jobs with one command that differ in it are different
/// jobs. What the user did not give is left out of the JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Given {
    /// Its working folder; without it, that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables that were added to its environment, each with a digest of its value, which may be a secret: the first 16
    /// hexadecimal digits of its SHA-256.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The file that it read as standard input; without it, `/dev/null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

impl Given {
    /// Whether the job was given a command and nothing else.
    pub fn is_empty(&self) -> bool {
        *self == Given::default()
    }
}
