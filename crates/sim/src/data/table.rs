//! Reads the tables of a file key by key. An error names the file, the line, the key and the allowed values.

use super::error::SpecError;
use cosched_core::spelling::did_you_mean;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's text.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub text: &'a str,
    /// The file's name in messages.
    pub file: &'a str,
    /// The command that shows the documentation of its format.
    pub page: &'static str,
}

impl<'a> Text<'a> {
    /// Parses the text as TOML.
    pub(super) fn parse(self) -> Result<Spanned<DeTable<'a>>, SpecError> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().trim();
            self.error(at, message.replace('\n', "; "))
        })
    }

    /// The top table of the parsed file.
    pub(super) fn top(
        self,
        parsed: &'a Spanned<DeTable<'a>>,
        keys: &[&str],
    ) -> Result<FileTable<'a>, SpecError> {
        let top = FileTable {
            text: self,
            path: String::new(),
            at: 0,
            values: parsed.get_ref(),
        };
        top.with_keys(keys)
    }

    fn error(self, at: usize, message: String) -> SpecError {
        let before = &self.text[..at.min(self.text.len())];
        SpecError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            message,
            page: self.page,
        }
    }

    /// A value as the file writes it, or its first line.
    fn written(self, value: &Spanned<DeValue>) -> &'a str {
        let text = self.text.get(value.span()).unwrap_or_default();
        text.lines().next().unwrap_or_default()
    }
}

/// A table of a file.
pub(super) struct FileTable<'a> {
    text: Text<'a>,
    /// Its name with those of the tables around it; empty for the top of the file.
    path: String,
    at: usize,
    values: &'a DeTable<'a>,
}

impl<'a> FileTable<'a> {
    /// An error at a key's value, or at the table if it lacks the key.
    pub(super) fn error(&self, key: &str, expected: impl Display) -> SpecError {
        match self.values.get(key) {
            None => self.error_at(self.at, key, format_args!("missing; expected {expected}")),
            Some(value) => self.error_of(key, value, expected),
        }
    }

    fn error_of(&self, key: &str, value: &Spanned<DeValue>, expected: impl Display) -> SpecError {
        let found = self.text.written(value);
        let message = format!("{found}; expected {expected}");
        self.error_at(value.span().start, key, message)
    }

    /// An error about a key.
    fn error_at(&self, at: usize, key: &str, message: impl Display) -> SpecError {
        let message = match self.path.as_str() {
            "" => format!("{key} is {message}"),
            path => format!("[{path}] {key} is {message}"),
        };
        self.text.error(at, message)
    }

    /// The table itself, if it has no other keys than these.
    fn with_keys(self, keys: &[&str]) -> Result<FileTable<'a>, SpecError> {
        for key in self.values.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let name = format!("the key `{}`", key.get_ref());
                let hint = did_you_mean(key.get_ref(), keys);
                let keys = keys.join("`, `");
                let known = format!("unknown{hint}; expected one of `{keys}`");
                return Err(self.error_at(key.span().start, &name, known));
            }
        }
        Ok(self)
    }

    /// The table itself, if it names the source of its figures.
    pub(super) fn with_source(self) -> Result<FileTable<'a>, SpecError> {
        let key = if self.has("assumed") {
            "assumed"
        } else {
            "source"
        };
        if self.has("source") == self.has("assumed") {
            let expected = "exactly one of `source` and `assumed`";
            return Err(self.error(key, expected));
        }
        self.words(key)?;
        Ok(self)
    }

    /// A table of figures with these keys, and a source.
    pub(super) fn figures(&self, key: &str, keys: &[&str]) -> Result<FileTable<'a>, SpecError> {
        let figures = self.optional_figures(key, keys)?;
        figures.ok_or_else(|| self.error(key, "a table"))
    }

    /// As [`FileTable::figures`], if present.
    pub(super) fn optional_figures(
        &self,
        key: &str,
        keys: &[&str],
    ) -> Result<Option<FileTable<'a>>, SpecError> {
        let Some(value) = self.values.get(key) else {
            return Ok(None);
        };
        self.inner(key, value)?.with_figures(keys).map(Some)
    }

    /// The table itself, if it has a source and no other keys than these.
    pub(super) fn with_figures(self, keys: &[&str]) -> Result<FileTable<'a>, SpecError> {
        let keys = [keys, &["source", "assumed"]].concat();
        self.with_keys(&keys)?.with_source()
    }

    /// A table with any keys, if present.
    pub(super) fn optional_table(&self, key: &str) -> Result<Option<FileTable<'a>>, SpecError> {
        let value = self.values.get(key);
        value.map(|value| self.inner(key, value)).transpose()
    }

    /// A list of tables with these keys, at least one.
    pub(super) fn tables(&self, key: &str, keys: &[&str]) -> Result<Vec<FileTable<'a>>, SpecError> {
        let mut tables = Vec::new();
        for value in self.list(key) {
            tables.push(self.inner(key, value)?.with_keys(keys)?);
        }
        if tables.is_empty() {
            return Err(self.error(key, "a list of tables, at least one"));
        }
        Ok(tables)
    }

    /// The values of a list; none if it is missing or no list.
    fn list(&self, key: &str) -> &'a [Spanned<DeValue<'a>>] {
        let list = self.values.get(key);
        let values = list.and_then(|list| list.get_ref().as_array());
        values.map_or(&[], |values| values)
    }

    fn inner(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<FileTable<'a>, SpecError> {
        let Some(values) = value.get_ref().as_table() else {
            return Err(self.error_of(key, value, "a table"));
        };
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        Ok(FileTable {
            text: self.text,
            path,
            at: value.span().start,
            values,
        })
    }

    /// An error at a key's value, with a message of its own.
    pub(super) fn refuse(&self, key: &str, message: impl Display) -> SpecError {
        let value = self.values.get(key);
        let at = value.map_or(self.at, |value| value.span().start);
        self.text.error(at, message.to_string())
    }

    /// Each key and its value, without quotation marks.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let FileTable { text, values, .. } = *self;
        values.iter().map(move |(key, value)| {
            let word = value.get_ref().as_str();
            let word = word.unwrap_or_else(|| text.written(value));
            (key.get_ref().as_ref(), word)
        })
    }

    /// Whether the value of a key is a list.
    pub(super) fn has_list(&self, key: &str) -> bool {
        let value = self.values.get(key).map(Spanned::get_ref);
        matches!(value, Some(DeValue::Array(_)))
    }

    /// Whether the table has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Checks the version of the format.
    pub(super) fn schema(&self, ours: &str) -> Result<(), SpecError> {
        match self.text_of("schema") {
            Some(found) if found == ours => Ok(()),
            _ => Err(self.error("schema", format_args!("\"{ours}\""))),
        }
    }

    /// A name of letters, digits and a few signs, as in mix files.
    pub(super) fn name(&self) -> Result<String, SpecError> {
        let name = self.text_of("name").unwrap_or_default();
        let has_length = (1..=100).contains(&name.len());
        if has_length && name.chars().all(is_name_char) {
            return Ok(name.to_owned());
        }
        let expected = "letters, digits, `.`, `_`, `+` and `-`, at most 100";
        Err(self.error("name", expected))
    }

    /// A line of text.
    pub(super) fn words(&self, key: &str) -> Result<String, SpecError> {
        match self.text_of(key) {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(self.error(key, "text")),
        }
    }

    /// One of several words.
    pub(super) fn choice(&self, key: &str, words: &[&str]) -> Result<&'a str, SpecError> {
        match self.text_of(key) {
            Some(word) if words.contains(&word) => Ok(word),
            _ => Err(self.error(key, format_args!("\"{}\"", words.join("\" or \"")))),
        }
    }

    fn text_of(&self, key: &str) -> Option<&'a str> {
        self.values.get(key)?.get_ref().as_str()
    }

    /// A flag; false if it is missing.
    pub(super) fn flag(&self, key: &str) -> Result<bool, SpecError> {
        match self.values.get(key).map(Spanned::get_ref) {
            None => Ok(false),
            Some(DeValue::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(self.error(key, "true or false")),
        }
    }

    /// A number in this range.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64, SpecError> {
        match self.values.get(key).and_then(number) {
            Some(value) if range.contains(&value) => Ok(value),
            _ => Err(self.error(key, Range(range))),
        }
    }

    /// A number in this range, or `default` if it is missing.
    pub(super) fn number_or(
        &self,
        key: &str,
        range: RangeInclusive<f64>,
        default: f64,
    ) -> Result<f64, SpecError> {
        if self.has(key) {
            self.number(key, range)
        } else {
            Ok(default)
        }
    }

    /// A whole number in this range, or 1 if it is missing.
    pub(super) fn whole_or_one(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Result<u32, SpecError> {
        if self.has(key) {
            self.whole(key, range)
        } else {
            Ok(1)
        }
    }

    /// A whole number in this range.
    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u32>) -> Result<u32, SpecError> {
        let range = f64::from(*range.start())..=f64::from(*range.end());
        let value = self.number(key, range.clone())?;
        if value.fract() == 0.0 {
            return Ok(value as u32);
        }
        let expected = format!("a whole number, {}", Range(range));
        Err(self.error(key, expected))
    }

    /// A list of pairs of numbers, at least one. `follows`: whether a pair may follow the previous one.
    pub(super) fn pairs(
        &self,
        key: &str,
        expected: &str,
        follows: impl Fn(Option<(f64, f64)>, (f64, f64)) -> bool,
    ) -> Result<Vec<(f64, f64)>, SpecError> {
        let mut pairs = Vec::new();
        for value in self.list(key) {
            match pair(value) {
                Some(pair) if follows(pairs.last().copied(), pair) => pairs.push(pair),
                _ => return Err(self.error_of(key, value, expected)),
            }
        }
        if pairs.is_empty() {
            return Err(self.error(key, expected));
        }
        Ok(pairs)
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+-".contains(c)
}

/// A number, whole or not. A whole one may have any size, so that the range refuses one that is too large.
fn number(value: &Spanned<DeValue>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        _ => None,
    }
}

fn pair(value: &Spanned<DeValue>) -> Option<(f64, f64)> {
    match &value.get_ref().as_array()?[..] {
        [x, y] => Some((number(x)?, number(y)?)),
        _ => None,
    }
}

/// Prints a range, with large numbers in short form: 1e15.
struct Range(RangeInclusive<f64>);

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.0.start(), self.0.end());
        if *most >= 1e6 {
            write!(f, "{least} to {most:e}")
        } else {
            write!(f, "{least} to {most}")
        }
    }
}
