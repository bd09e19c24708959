//! GNU parallel's replacement strings: `{}`, `{.}`, `{2/}`, `{#}` and so on.

use super::command::os;
use crate::exit::usage;
use std::ffi::OsString;

/// What stands in a replacement string's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// All values of the job, each changed in the same way.
    All(Part),
    /// One of its values, counted from 1, or from the end with a negative number.
    Nth(i32, Part),
    /// The number of the job, counted from 1.
    Number,
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

impl Replacement {
    /// The replacement string at the beginning of `text`, with its length; `None` for other braces, which stay.
    ///
    /// # Errors
    /// It is one of GNU parallel's that has no meaning here.
    pub(crate) fn at(text: &[u8]) -> anyhow::Result<Option<(Replacement, usize)>> {
        if !text.starts_with(b"{") {
            return Ok(None);
        }
        if text.starts_with(b"{=") && text.windows(2).any(|pair| pair == b"=}") {
            return Err(usage(
                "{= ... =} is a program in Perl, which cosched does not run; change the values beforehand",
            ));
        }
        // The longest is a sign, some digits and two more.
        let Some(length) = text.iter().take(16).position(|&byte| byte == b'}') else {
            return Ok(None);
        };
        let inside = &text[1..length];
        if inside == b"%" {
            return Err(usage(
                "{%} has no meaning here: jobs have no slots; {#} is the job's number, and COSCHED_JOB holds its name",
            ));
        }
        let found = Replacement::inside(inside);
        Ok(found.map(|found| (found, length + 1)))
    }

    /// The replacement string with this text between its braces.
    fn inside(text: &[u8]) -> Option<Replacement> {
        let text = std::str::from_utf8(text).ok()?;
        if text == "#" {
            return Some(Replacement::Number);
        }
        let part = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        let number = &text[..text.len() - part.len()];
        let part = match part {
            "" => Part::Whole,
            "." => Part::NoExtension,
            "/" => Part::Name,
            "//" => Part::Folder,
            "/." => Part::Stem,
            _ => return None,
        };
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
            Replacement::All(_) => false,
        }
    }
}

impl Part {
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
        let (found, length) = Replacement::at(text.as_bytes()).unwrap()?;
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
            assert_eq!(Replacement::at(other.as_bytes()).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn what_has_no_meaning_here_is_told() {
        let error = |text: &str| Replacement::at(text.as_bytes()).unwrap_err().to_string();
        assert!(error("{%}").contains("COSCHED_JOB") && error("{= s/a/b/ =}").contains("Perl"));
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
