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
mod tests {
    use super::*;
    use cosched_core::Snapshot;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Outer {
        a: Vec<Inner>,
        b: u8,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        c: u32,
        d: String,
    }

    #[test]
    fn errors_name_line_and_key() {
        let check = |text: &str, line: usize, key: &str, problem: &str| {
            let error = parse::<Outer>(text).unwrap_err();
            assert_eq!(
                (error.line.unwrap(), error.key.as_str()),
                (line, key),
                "{error}"
            );
            assert!(error.problem.contains(problem), "{error}");
        };
        check(
            r#"{"a":[{"c":1,"d":"x"},{"c":-3,"d":"y"}],"b":1}"#,
            1,
            "a[1].c",
            "expected u32",
        );
        check(
            "{\"a\":[\n{\"c\":1,\n\"d\":\"x\"},\n{\"c\":2,\"d\":[]}],\"b\":1}",
            4,
            "a[1].d",
            "expected a string",
        );
        check(
            r#"{"a":[{"c":1,"d":"} , \" ["},{"c":2}],"b":1}"#,
            1,
            "a[1]",
            "missing field `d`",
        );
        check(r#"{"a":[],"b":300}"#, 1, "b", "expected u8");
        check(r#"{"a":[]}"#, 1, "", "missing field `b`");
        check(r#"{"a":[{"c":1,"#, 1, "a[0]", "EOF");
        check("", 1, "", "EOF");
        check("nonsense", 1, "", "expected");
    }

    #[test]
    fn a_schema_is_found_whatever_follows() {
        let found = |text: &str| schema_of(text).unwrap();
        assert_eq!(
            found("{\"a\": 1, \"schema\": \"x/1\"}\n[\"b\", 0]\n").as_deref(),
            Some("x/1")
        );
        assert_eq!(
            (found("{\"a\": 1}"), found("{\"schema\": 3}")),
            (None, None)
        );
        assert!(
            schema_of("nonsense").is_err()
                && schema_of(" \n").is_err()
                && schema_of("{\"schema\":").is_err()
        );
    }

    #[test]
    fn any_text_is_survived() {
        for text in [
            "{\"a\\",
            "\"\\",
            "]]}}",
            "{\"ä",
            "[[[[,,,",
            "{,\"\":\"",
            "\u{7f}\0",
        ] {
            assert!(parse::<Snapshot>(text).is_err());
        }
    }
}
