//! What the readers of all formats share: a file's text, its tables, and the ranges of numbers.

use super::error::SpecError;
use crate::source::Source;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use std::fmt;
use std::ops::Range;
use toml::Spanned;

/// A number of a file, if it is there.
pub(super) type Number = Option<Spanned<Real>>;
/// A text of a file, if it is there.
pub(super) type Words = Option<Spanned<String>>;
/// A table of a file, if it is there.
pub(super) type Table<T> = Option<Spanned<T>>;
/// A list of pairs of numbers, if it is there.
pub(super) type Pairs = Option<Spanned<Vec<Spanned<Vec<Real>>>>>;

/// A number, whole or not. A whole one may be of any size, so that one that is too large is told as such.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real(pub(super) f64);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Real, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Real;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_f64<E>(self, value: f64) -> Result<Real, E> {
                Ok(Real(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }
            fn visit_i128<E>(self, value: i128) -> Result<Real, E> {
                Ok(Real(value as f64))
            }
            fn visit_u128<E>(self, value: u128) -> Result<Real, E> {
                Ok(Real(value as f64))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A pair of numbers, and where it is in the file.
pub(super) type Placed = (Range<usize>, (f64, f64));

/// The range of a number, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) key: &'static str,
    pub(super) least: f64,
    pub(super) greatest: f64,
    /// An allowed value, shown in errors.
    pub(super) example: &'static str,
}

impl Limits {
    pub(super) const fn new(
        key: &'static str,
        least: f64,
        greatest: f64,
        example: &'static str,
    ) -> Limits {
        Limits {
            key,
            least,
            greatest,
            example,
        }
    }

    /// An allowed line of the file.
    pub(super) fn example(&self) -> String {
        format!("{} = {}", self.key, self.example)
    }

    fn holds(&self, value: f64) -> bool {
        (self.least..=self.greatest).contains(&value)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", Short(self.least), Short(self.greatest))
    }
}

/// Prints large numbers as people write them: 1e15, not fifteen zeros.
pub(super) struct Short(pub(super) f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() && self.0.abs() >= 1e6 {
            write!(f, "{:e}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// A file's text.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    /// The file's name in messages.
    pub(super) file: &'a str,
    /// The page that documents its format.
    pub(super) page: &'static str,
}

impl<'a> Text<'a> {
    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// Parses the text as TOML of type `T`.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        toml::from_str(self.text).map_err(|error| SpecError::Form {
            file: self.file.into(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            message: error.message().trim().replace('\n', "; ").into(),
            page: self.page,
        })
    }

    /// The top of the file as a group of keys.
    pub(super) fn top(&self) -> Group<'a> {
        Group {
            text: *self,
            title: String::new(),
            at: 0,
        }
    }

    /// A table that must be there.
    pub(super) fn table<T>(
        &self,
        title: &str,
        table: Table<T>,
    ) -> Result<(Group<'a>, T), SpecError> {
        match table {
            Some(table) => Ok(self.group(title, table)),
            None => Err(self.top().value(
                0,
                title,
                "missing",
                "the table".to_owned(),
                format!("{title}, with its keys"),
            )),
        }
    }

    /// A table.
    pub(super) fn group<T>(&self, title: &str, table: Spanned<T>) -> (Group<'a>, T) {
        let at = table.span().start;
        (
            Group {
                text: *self,
                title: title.to_owned(),
                at,
            },
            table.into_inner(),
        )
    }
}

/// A table of a file. Its keys share a source.
pub(super) struct Group<'a> {
    text: Text<'a>,
    /// Its name in messages; empty for the top of the file.
    title: String,
    at: usize,
}

impl Group<'_> {
    fn value(
        &self,
        at: usize,
        key: &str,
        found: impl fmt::Display,
        expected: String,
        example: String,
    ) -> SpecError {
        SpecError::Value {
            file: self.text.file.into(),
            line: self.text.line(at),
            key: if self.title.is_empty() {
                key.into()
            } else {
                format!("{} {key}", self.title).into()
            },
            found: found.to_string().into(),
            expected: expected.into(),
            example: example.into(),
        }
    }

    /// An error at a value.
    pub(super) fn wrong(
        &self,
        span: Range<usize>,
        key: &str,
        found: impl fmt::Display,
        expected: impl Into<String>,
        example: impl Into<String>,
    ) -> SpecError {
        self.value(span.start, key, found, expected.into(), example.into())
    }

    /// An error about a value that is missing.
    pub(super) fn missing(
        &self,
        key: &str,
        expected: impl Into<String>,
        example: impl Into<String>,
    ) -> SpecError {
        self.value(self.at, key, "missing", expected.into(), example.into())
    }

    /// Checks the schema's line.
    pub(super) fn schema(&self, schema: &Words, ours: &str) -> Result<(), SpecError> {
        let (expected, example) = (format!("`{ours}`"), format!("schema = \"{ours}\""));
        match schema {
            None => Err(self.missing("schema", expected, example)),
            Some(found) if found.as_ref() != ours => Err(self.wrong(
                found.span(),
                "schema",
                format!("`{}`", found.as_ref()),
                expected,
                example,
            )),
            Some(_) => Ok(()),
        }
    }

    /// A name of letters, digits and a few signs, as in mix files.
    pub(super) fn name(&self, name: Words, example: &str) -> Result<String, SpecError> {
        let expected = "letters, digits, `.`, `_`, `+` and `-`, at most 100";
        let example = format!("name = \"{example}\"");
        let Some(name) = name else {
            return Err(self.missing("name", expected, example));
        };
        let length = 1..=100;
        if length.contains(&name.as_ref().len()) && name.as_ref().chars().all(is_name_char) {
            return Ok(name.into_inner());
        }
        Err(self.wrong(
            name.span(),
            "name",
            format!("`{}`", name.as_ref()),
            expected,
            example,
        ))
    }

    /// A line of text.
    pub(super) fn words(
        &self,
        words: Words,
        key: &str,
        example: &str,
    ) -> Result<String, SpecError> {
        let example = format!("{key} = \"{example}\"");
        match words {
            None => Err(self.missing(key, "text", example)),
            Some(text) if text.as_ref().trim().is_empty() => {
                Err(self.wrong(text.span(), key, "empty", "text", example))
            }
            Some(text) => Ok(text.into_inner()),
        }
    }

    /// A number within its limits.
    pub(super) fn number(&self, number: Number, limits: &Limits) -> Result<f64, SpecError> {
        match number {
            None => Err(self.missing(limits.key, limits.to_string(), limits.example())),
            Some(found) if !limits.holds(found.as_ref().0) => Err(self.wrong(
                found.span(),
                limits.key,
                Short(found.as_ref().0),
                limits.to_string(),
                limits.example(),
            )),
            Some(found) => Ok(found.into_inner().0),
        }
    }

    /// A number within its limits, or `absent` if it is missing.
    pub(super) fn number_or(
        &self,
        number: Number,
        limits: &Limits,
        absent: f64,
    ) -> Result<f64, SpecError> {
        if number.is_none() {
            Ok(absent)
        } else {
            self.number(number, limits)
        }
    }

    /// A whole number within its limits.
    pub(super) fn whole(&self, number: Number, limits: &Limits) -> Result<u32, SpecError> {
        let span = number.as_ref().map_or(0..0, Spanned::span);
        let value = self.number(number, limits)?;
        if value.fract() == 0.0 {
            return Ok(value as u32);
        }
        let expected = format!("a whole number, {limits}");
        Err(self.wrong(span, limits.key, value, expected, limits.example()))
    }

    /// Pairs of numbers, each within its limits and in ascending order of the first. Each pair comes with its place in
    /// the file, for further checks.
    pub(super) fn pairs(
        &self,
        pairs: Pairs,
        (first, second): (&Limits, &Limits),
        example: &str,
    ) -> Result<Vec<Placed>, SpecError> {
        let key = second.key;
        let example = format!("{key} = {example}");
        let expected = format!(
            "pairs of {}, {first}, ascending, and {}, {second}",
            first.example, second.example
        );
        let Some(pairs) = pairs else {
            return Err(self.missing(key, expected, example));
        };
        if pairs.as_ref().is_empty() {
            return Err(self.wrong(pairs.span(), key, "empty", expected, example));
        }
        let mut before = f64::NEG_INFINITY;
        let mut found = Vec::new();
        for pair in pairs.into_inner() {
            let numbers: Vec<f64> = pair.as_ref().iter().map(|number| number.0).collect();
            let (x, y) = match numbers[..] {
                [x, y] if first.holds(x) && second.holds(y) => (x, y),
                _ => {
                    return Err(self.wrong(
                        pair.span(),
                        key,
                        format!("{numbers:?}"),
                        expected,
                        example,
                    ));
                }
            };
            if x <= before {
                let found = format!("[{}, {}] after {}", Short(x), Short(y), Short(before));
                return Err(self.wrong(pair.span(), key, found, expected, example));
            }
            before = x;
            found.push((pair.span(), (x, y)));
        }
        Ok(found)
    }

    /// The source of the group's figures: exactly one of the two keys must be there.
    pub(super) fn source(&self, source: Words, assumed: Words) -> Result<Source, SpecError> {
        let expected = "exactly one of `source` (who measured or published the figures) and `assumed` (why they were chosen)";
        let example = "source = \"the processor's data sheet\"";
        match (source, assumed) {
            (Some(source), None) => self
                .words(Some(source), "source", "the processor's data sheet")
                .map(Source::Cited),
            (None, Some(why)) => self
                .words(
                    Some(why),
                    "assumed",
                    "nobody measured it; typical of its time",
                )
                .map(Source::Assumed),
            (None, None) => Err(self.missing("source", expected, example)),
            (Some(_), Some(why)) => Err(self.wrong(
                why.span(),
                "assumed",
                "given beside `source`",
                expected,
                example,
            )),
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._+-".contains(c)
}

/// Collects the sources of a file's groups.
#[derive(Default)]
pub(super) struct Sources(Vec<(usize, String, Source)>);

impl Sources {
    /// Checks and records the source of a group.
    pub(super) fn add(
        &mut self,
        group: &Group<'_>,
        source: Words,
        assumed: Words,
    ) -> Result<(), SpecError> {
        self.add_named(group, "", source, assumed)
    }

    /// As `add`, for one of several tables of a kind; `which` tells them apart.
    pub(super) fn add_named(
        &mut self,
        group: &Group<'_>,
        which: &str,
        source: Words,
        assumed: Words,
    ) -> Result<(), SpecError> {
        let title = format!("{} {which}", group.title.replace(['[', ']'], ""));
        self.0.push((
            group.at,
            title.trim().to_owned(),
            group.source(source, assumed)?,
        ));
        Ok(())
    }

    /// All sources, in the order of the file.
    pub(super) fn in_order(mut self) -> Vec<(String, Source)> {
        self.0.sort_by_key(|(at, _, _)| *at);
        self.0
            .into_iter()
            .map(|(_, title, source)| (title, source))
            .collect()
    }
}
