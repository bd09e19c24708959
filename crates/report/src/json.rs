//! JSON errors with their place: the line, and the key with its whole path.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// What is wrong with a JSON text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The line, from 1; 0 if it is not known.
    pub line: usize,
    /// The key at fault, as in `snapshot.tasks[2].cpus`; empty for the whole text.
    pub key: String,
    /// What is wrong, and what was expected.
    pub problem: String,
}

impl JsonError {
    /// An error at a key of a text that begins in line `line`.
    pub(crate) fn at(line: usize, key: &str, problem: String) -> JsonError {
        JsonError {
            line,
            key: key.to_owned(),
            problem,
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if !self.key.is_empty() {
            write!(f, ", key `{}`", self.key)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for JsonError {}

/// Reads a text that begins in line `first_line` of its file.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, first_line: usize) -> Result<T, JsonError> {
    serde_json::from_str(text).map_err(|error| locate(text, first_line, &error))
}

/// The schema that a text names whose first value is a JSON object, also if more follows; `None` if it names none.
///
/// # Errors
/// The text does not begin with a JSON object.
pub fn schema_of(text: &str) -> Result<Option<String>, JsonError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        schema: serde_json::Value,
    }
    let first = serde_json::Deserializer::from_str(text)
        .into_iter::<Head>()
        .next();
    match first {
        Some(Ok(head)) => Ok(head.schema.as_str().map(str::to_owned)),
        Some(Err(error)) => Err(locate(text, 1, &error)),
        None => Err(JsonError::at(1, "", "found nothing".to_owned())),
    }
}

/// Where in the text an error lies.
pub(crate) fn locate(text: &str, first_line: usize, error: &serde_json::Error) -> JsonError {
    let full = error.to_string();
    // Our message begins with the place, as line and key.
    let problem = match full.rfind(" at line ") {
        Some(end) => full[..end].to_owned(),
        None => full,
    };
    let end = offset(text, error.line(), error.column());
    // A syntax error points at the first byte that does not fit, any other error after the value at fault.
    let end = if error.is_syntax() {
        end.saturating_sub(1)
    } else {
        end
    };
    let key = path_at(text, end);
    JsonError {
        line: first_line + error.line().saturating_sub(1),
        key,
        problem,
    }
}

/// The byte at which a line's column lies; both count from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    (start + column).min(text.len())
}

enum Level {
    Object(Option<String>),
    Array(usize),
}

/// The path of the value that the first `end` bytes of a JSON text lead to.
fn path_at(text: &str, end: usize) -> String {
    let bytes = text.as_bytes();
    let mut levels = Vec::new();
    let mut at = 0;
    let mut key_follows = false;
    while at < end {
        match bytes[at] {
            b'{' => {
                levels.push(Level::Object(None));
                key_follows = true;
            }
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => {
                levels.pop();
                key_follows = false;
            }
            b',' => match levels.last_mut() {
                Some(Level::Array(index)) => *index += 1,
                Some(Level::Object(_)) => key_follows = true,
                None => {}
            },
            b'"' => {
                let start = at + 1;
                at = string_end(bytes, start);
                if key_follows && let Some(Level::Object(key)) = levels.last_mut() {
                    *key = text.get(start..at).map(str::to_owned);
                    key_follows = false;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let mut path = String::new();
    for level in &levels {
        match level {
            Level::Object(Some(key)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Level::Object(None) => {}
            Level::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// The end of the string that starts at `at`: its closing quote, or the end of the text.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// Follows how deep a JSON text is nested, line by line, to tell where one document ends and the next begins.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    open: usize,
    in_string: bool,
    escaped: bool,
}

impl Depth {
    /// Takes more text; returns whether every bracket and string is closed.
    pub(crate) fn feed(&mut self, text: &str) -> bool {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.open += 1,
                    b'}' | b']' => self.open = self.open.saturating_sub(1),
                    _ => {}
                }
            }
        }
        self.open == 0 && !self.in_string
    }
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
            let error = parse::<Outer>(text, 10).unwrap_err();
            assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
            assert!(error.problem.contains(problem), "{error}");
        };
        check(
            r#"{"a":[{"c":1,"d":"x"},{"c":-3,"d":"y"}],"b":1}"#,
            10,
            "a[1].c",
            "expected u32",
        );
        check(
            "{\"a\":[\n{\"c\":1,\n\"d\":\"x\"},\n{\"c\":2,\"d\":[]}],\"b\":1}",
            13,
            "a[1].d",
            "expected a string",
        );
        check(
            r#"{"a":[{"c":1,"d":"} , \" ["},{"c":2}],"b":1}"#,
            10,
            "a[1]",
            "missing field `d`",
        );
        check(r#"{"a":[],"b":300}"#, 10, "b", "expected u8");
        check(r#"{"a":[]}"#, 10, "", "missing field `b`");
        check(r#"{"a":[{"c":1,"#, 10, "a[0].c", "EOF");
        check("", 10, "", "EOF");
        check("nonsense", 10, "", "expected");
        check(r#"{"é":{"\"":[1,2],"b":}"#, 10, "é.b", "expected value");
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
            for end in 0..=text.len() {
                path_at(text, end);
            }
            assert!(parse::<Snapshot>(text, 1).is_err());
        }
    }

    #[test]
    fn documents_end_where_their_brackets_do() {
        let mut depth = Depth::default();
        assert!(!depth.feed("{\"a\": \"}]\\\"\",\n"));
        assert!(!depth.feed(" \"b\": [1\n"));
        assert!(depth.feed("]}\n"));
        assert!(depth.feed("{\"a\":[{}]}\n"));
    }
}
