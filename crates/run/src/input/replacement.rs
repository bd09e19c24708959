//! GNU parallel's replacement strings: `{}`, `{.}`, `{2/}`, `{#}` and so on.

use super::command::{os, told};
use crate::exit::usage;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// What stands in a replacement string's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// All values of the job, each changed in the same way.
    All(Part),
    /// One of its values, counted from 1, or from the end with a negative number.
    Nth(i32, Part),
    /// The number of the job, counted from 1.
    Number,
    /// The slot that the job runs in, counted from 1. It is known when the job starts, so the shell fills it in.
    Slot,
}

/// What the shell reads in place of `{%}`.
const SLOT: &[u8] = b"${PARALLEL_JOBSLOT}";

/// The replacement strings of a command line: GNU parallel's, as the user changed them.
#[derive(Debug, Default)]
pub(crate) struct Strings<'a> {
    /// `-I`: what stands in the place of `{}`.
    pub(crate) whole: Option<&'a OsStr>,
    /// `--header`: the names of the columns, from the first.
    pub(crate) columns: Vec<OsString>,
}

/// The part of a value that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Without its extension: `{.}`.
    NoExtension,
    /// Without its folders: `{/}`.
    Name,
    /// Its folder: `{//}`.
    Folder,
    /// Without folders and extension: `{/.}`.
    Stem,
}

/// The values of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its values, those of the first list first.
    pub(crate) values: Vec<OsString>,
    /// Its number, from 1.
    pub(crate) number: u64,
}

impl Row {
    /// A value by its position, from 1; a negative one counts from the end.
    fn nth(&self, n: i32) -> Option<&OsString> {
        let distance = n.unsigned_abs() as usize;
        let ix = if n > 0 {
            distance.checked_sub(1)
        } else {
            self.values.len().checked_sub(distance)
        };
        self.values.get(ix?)
    }
}

impl Strings<'_> {
    /// What stands for the values, for messages.
    pub(crate) fn told(&self) -> String {
        told(self.whole.unwrap_or(OsStr::new("{}")))
    }

    /// The replacement string at the beginning of `text`, with its length; `None` for other braces, which stay.
    ///
    /// # Errors
    /// It is one of GNU parallel's that has no meaning here.
    pub(crate) fn at(&self, text: &[u8]) -> anyhow::Result<Option<(Replacement, usize)>> {
        if let Some(whole) = self.whole
            && text.starts_with(whole.as_bytes())
        {
            return Ok(Some((Replacement::All(Part::Whole), whole.len())));
        }
        if !text.starts_with(b"{") {
            return Ok(None);
        }
        if text.starts_with(b"{=") && text.windows(2).any(|pair| pair == b"=}") {
            return Err(usage(
                "{= ... =} is a program in Perl, which cosched does not run; change the values beforehand",
            ));
        }
        // Names of columns are shorter.
        let Some(length) = text.iter().take(256).position(|&byte| byte == b'}') else {
            return Ok(None);
        };
        let found = self.inside(&text[1..length]);
        Ok(found.map(|found| (found, length + 1)))
    }

    /// The replacement string with this text between its braces.
    fn inside(&self, text: &[u8]) -> Option<Replacement> {
        if text.is_empty() && self.whole.is_some() {
            return None;
        }
        self.column(text).or_else(|| Replacement::inside(text))
    }

    /// The replacement string of a column that the text begins with.
    fn column(&self, text: &[u8]) -> Option<Replacement> {
        for (nth, name) in (1..).zip(&self.columns) {
            if let Some(part) = text.strip_prefix(name.as_bytes())
                && !name.is_empty()
                && let Some(part) = Part::of_suffix(part)
            {
                return Some(Replacement::Nth(nth, part));
            }
        }
        None
    }
}

impl Replacement {
    /// The replacement string with this text between its braces, where columns have no names.
    fn inside(text: &[u8]) -> Option<Replacement> {
        match text {
            b"#" => return Some(Replacement::Number),
            b"%" => return Some(Replacement::Slot),
            _ => {}
        }
        let text = std::str::from_utf8(text).ok()?;
        let part = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        let number = &text[..text.len() - part.len()];
        let part = Part::of_suffix(part.as_bytes())?;
        if number.is_empty() {
            return Some(Replacement::All(part));
        }
        match number.parse() {
            Ok(0) | Err(_) => None,
            Ok(n) => Some(Replacement::Nth(n, part)),
        }
    }

    /// Its values in a job: none, one, or all; with `nth` only that one where it stands for all.
    pub(crate) fn values(self, row: &Row, nth: Option<usize>) -> Vec<OsString> {
        let (part, values) = match self {
            Replacement::Number => return vec![row.number.to_string().into()],
            Replacement::Slot => return vec![os(SLOT)],
            Replacement::Nth(n, part) => (part, row.nth(n).into_iter().collect()),
            Replacement::All(part) => match nth {
                None => (part, row.values.iter().collect()),
                Some(nth) => (part, vec![&row.values[nth]]),
            },
        };
        let values: Vec<&OsString> = values;
        values.into_iter().map(|value| part.of(value)).collect()
    }

    /// Whether it is a parameter of the shell's own after a `$`: `${1}` or `${#}`.
    pub(crate) fn is_shell_parameter(self) -> bool {
        match self {
            Replacement::Number => true,
            Replacement::Nth(n, part) => n > 0 && part == Part::Whole,
            Replacement::All(_) | Replacement::Slot => false,
        }
    }
}

impl Part {
    /// The part that these signs mean at the end of a replacement string.
    fn of_suffix(signs: &[u8]) -> Option<Part> {
        Some(match signs {
            b"" => Part::Whole,
            b"." => Part::NoExtension,
            b"/" => Part::Name,
            b"//" => Part::Folder,
            b"/." => Part::Stem,
            _ => return None,
        })
    }

    /// This part of a value.
    fn of(self, value: &OsString) -> OsString {
        let bytes = value.as_encoded_bytes();
        match self {
            Part::Whole => value.clone(),
            Part::NoExtension => os(without_extension(bytes)),
            Part::Name => os(name(bytes)),
            Part::Folder => os(folder(bytes)),
            Part::Stem => os(without_extension(name(bytes))),
        }
    }
}

/// Everything before the last dot of the last part of a path, if something follows that dot.
fn without_extension(path: &[u8]) -> &[u8] {
    let start = path.len() - name(path).len();
    match path.iter().rposition(|&byte| byte == b'.') {
        Some(dot) if dot >= start && dot + 1 < path.len() => &path[..dot],
        _ => path,
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map_or(path, |slash| &path[slash + 1..])
}

fn without_end_slashes(path: &[u8]) -> &[u8] {
    let last = path.iter().rposition(|&byte| byte != b'/');
    &path[..last.map_or(0, |last| last + 1)]
}

/// The folder of a path, as `dirname` gives it.
fn folder(path: &[u8]) -> &[u8] {
    let whole = without_end_slashes(path);
    if whole.is_empty() {
        return if path.is_empty() { b"." } else { b"/" };
    }
    match whole.iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(slash) => match without_end_slashes(&path[..slash]) {
            b"" => b"/",
            folder => folder,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, values: &[&str]) -> Option<String> {
        let (found, length) = Strings::default().at(text.as_bytes()).unwrap()?;
        assert_eq!(length, text.len());
        let row = Row {
            values: values.iter().map(OsString::from).collect(),
            number: 7,
        };
        Some(
            found
                .values(&row, None)
                .iter()
                .map(|text| text.to_string_lossy())
                .collect::<Vec<_>>()
                .join("|"),
        )
    }

    /// The values are those that GNU parallel 20221122 printed.
    #[test]
    fn parts_are_those_of_gnu_parallel() {
        let check = |value: &str, expected: [&str; 4]| {
            let found = ["{.}", "{/}", "{//}", "{/.}"].map(|text| filled(text, &[value]).unwrap());
            assert_eq!(found, expected, "{value}");
        };
        check("d/a.b.c", ["d/a.b", "a.b.c", "d", "a.b"]);
        check("/x.", ["/x.", "x.", "/", "x."]);
        check("y/", ["y/", "", ".", ""]);
        check(".hid", ["", ".hid", ".", ""]);
        check("a.b/c", ["a.b/c", "c", "a.b", "c"]);
        check("", ["", "", ".", ""]);
        check("/", ["/", "", "/", ""]);
    }

    #[test]
    fn positions_count_from_either_end() {
        let values = ["d/a.b", "z/q.x"];
        assert_eq!(filled("{}", &values).unwrap(), "d/a.b|z/q.x");
        assert_eq!(filled("{/.}", &values).unwrap(), "a|q");
        assert_eq!(
            ["{-1}", "{1/.}", "{2//}", "{#}"].map(|text| filled(text, &values).unwrap()),
            ["z/q.x", "a", "z", "7"]
        );
        assert_eq!(
            (
                filled("{3}", &values).unwrap(),
                filled("{-3}", &values).unwrap()
            ),
            (String::new(), String::new())
        );
        for other in ["{print}", "{0}", "{a.}", "{1,2}", "{1..}", "{", "{x"] {
            assert_eq!(filled(other, &values), None, "{other}");
        }
    }

    #[test]
    fn what_has_no_meaning_here_is_told() {
        let error = Strings::default().at(b"{= s/a/b/ =}").unwrap_err();
        assert!(error.to_string().contains("Perl"), "{error}");
    }

    #[test]
    fn users_choose_strings() {
        let strings = Strings {
            whole: Some(OsStr::new(",,")),
            columns: vec!["file".into(), "n".into()],
        };
        let at = |text: &str| strings.at(text.as_bytes()).unwrap();
        assert_eq!(at(",,x"), Some((Replacement::All(Part::Whole), 2)));
        assert_eq!(at("{}"), None);
        assert_eq!(at("{/.}"), Some((Replacement::All(Part::Stem), 4)));
        assert_eq!(at("{file/}"), Some((Replacement::Nth(1, Part::Name), 7)));
        assert_eq!(at("{n}"), Some((Replacement::Nth(2, Part::Whole), 3)));
        assert_eq!(at("{nn}"), None);
    }

    #[test]
    fn values_are_bytes() {
        let row = Row {
            values: vec![os(b"\xff/\xfe.x")],
            number: 1,
        };
        assert_eq!(
            Replacement::All(Part::Stem).values(&row, None),
            [os(b"\xfe")]
        );
    }
}
