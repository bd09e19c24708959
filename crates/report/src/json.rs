//! JSON errors with their place: the line, and the key with its whole path.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Deserializer;
use serde_json::de::Read;
use std::fmt;

/// An error in a JSON text, and its place.
#[derive(Debug)]
pub struct JsonError {
    /// The line, from 1; `None` if it is not known.
    pub line: Option<usize>,
    /// The key, as in `snapshot.tasks[2].cpus`; empty for the whole text.
    pub key: String,
    /// The problem, and what was expected.
    pub problem: String,
}

impl JsonError {
    /// An error at a key of a text that was read to its end.
    pub(crate) fn at(key: &str, problem: String) -> JsonError {
        JsonError {
            line: None,
            key: key.to_owned(),
            problem,
        }
    }

    fn new(error: &serde_json::Error, key: String) -> JsonError {
        let text = error.to_string();
        let problem = text.split(" at line ").next().unwrap_or_default();
        JsonError {
            line: Some(error.line()),
            key,
            problem: problem.to_owned(),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
        }
        if !self.key.is_empty() {
            let comma = if self.line.is_some() { ", " } else { "" };
            write!(f, "{comma}key `{}`", self.key)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for JsonError {}

/// An error with the path of its key.
pub(crate) type PathError = serde_path_to_error::Error<serde_json::Error>;

impl From<PathError> for JsonError {
    fn from(error: PathError) -> JsonError {
        let path = error.path().to_string();
        // The path ends with `?` where the text ends before its key, and is `.` for the whole text.
        let key = path.trim_end_matches(['.', '?']).to_owned();
        JsonError::new(error.inner(), key)
    }
}

/// Reads the next value of a text.
pub(crate) fn next<'de, T: Deserialize<'de>>(
    json: &mut Deserializer<impl Read<'de>>,
) -> Result<T, PathError> {
    serde_path_to_error::deserialize(json)
}

/// Reads a text that is one value.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let mut json = Deserializer::from_str(text);
    let value = next(&mut json)?;
    json.end()
        .map_err(|error| JsonError::new(&error, String::new()))?;
    Ok(value)
}

/// The schema of a text whose first value is a JSON object, also if more follows; `None` if it names none.
///
/// # Errors
/// The text does not begin with a JSON object.
pub fn schema_of(text: &str) -> Result<Option<String>, JsonError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<serde_json::Value>,
    }
    let head: Head = next(&mut Deserializer::from_str(text))?;
    Ok(head
        .schema
        .and_then(|schema| schema.as_str().map(str::to_owned)))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
