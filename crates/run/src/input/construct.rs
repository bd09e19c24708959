//! The parts of a shell line in which no value can stand: substitutions, comments, here-documents and the like.
//!
//! Where shells may disagree on the end of such a construct, no value can stand after it either.

use super::replacement::Strings;
use crate::exit::usage;
use anyhow::Result;
use cosched_report::visible_bytes;
use std::ops::Range;

/// A part of a line in which no value can stand.
pub(super) struct Construct {
    opening: &'static [u8],
    pub(super) name: &'static str,
    /// The length of the construct that begins a text; `None` where shells may find different ends.
    length: fn(&[u8]) -> Option<usize>,
}

/// All constructs. The first whose opening fits is meant.
const CONSTRUCTS: &[Construct] = &[
    Construct {
        opening: b"`",
        name: "backquotes",
        length: backquotes,
    },
    Construct {
        opening: b"$$",
        name: "$$",
        length: process_id,
    },
    Construct {
        opening: b"$(",
        name: "$(...)",
        length: parentheses,
    },
    Construct {
        opening: b"${",
        name: "${...}",
        length: braces,
    },
    Construct {
        opening: b"$'",
        name: "$'...'",
        length: unknown,
    },
    Construct {
        opening: b"$[",
        name: "$[...]",
        length: unknown,
    },
    Construct {
        opening: b"((",
        name: "((...))",
        length: unknown,
    },
    Construct {
        opening: b"=(",
        name: "an array",
        length: unknown,
    },
    Construct {
        opening: b"<<",
        name: "a here-document",
        length: unknown,
    },
    Construct {
        opening: b"[",
        name: "[...]",
        length: brackets,
    },
    Construct {
        opening: b"#",
        name: "a comment",
        length: comment,
    },
    Construct {
        opening: b"\\\n",
        name: "a continued line",
        length: unknown,
    },
    Construct {
        opening: b"\\",
        name: "text after a backslash",
        length: two_bytes,
    },
];

impl Construct {
    /// The construct that begins at this byte; `None` for plain text.
    pub(super) fn at(line: &[u8], at: usize, starts_word: bool) -> Option<&'static Construct> {
        let text = &line[at..];
        let is_plain = match text {
            [b'[', b' ' | b'\t', ..] => starts_word,
            [b'#', ..] => !starts_word,
            // Between blanks it divides words as a blank does.
            [b'\\', b'\n', next, ..] => *next != b'#' && line[..at].ends_with(b" "),
            [b'\\'] => true,
            _ => false,
        };
        if is_plain {
            return None;
        }
        Construct::opened_by(text)
    }

    fn opened_by(text: &[u8]) -> Option<&'static Construct> {
        let mut all = CONSTRUCTS.iter();
        all.find(|construct| text.starts_with(construct.opening))
    }

    /// The construct that begins a text between double quotes.
    pub(super) fn in_double_quotes(text: &[u8]) -> Option<&'static Construct> {
        match text {
            [b'`' | b'$', ..] | [b'\\', _, ..] => Construct::opened_by(text),
            _ => None,
        }
    }

    /// The length of the construct at this byte; `None` where shells may find different ends.
    pub(super) fn length_at(&self, line: &[u8], at: usize) -> Option<usize> {
        // Not every shell sees a comment here.
        let is_after_sign = matches!(line[..at].last(), Some(b'(' | b')' | b'<' | b'>'));
        if self.opening == b"#" && is_after_sign {
            return None;
        }
        (self.length)(&line[at..])
    }
}

/// Refuses a replacement string in a part of the line.
///
/// # Errors
/// There is one.
pub(super) fn refuse_replacement(
    line: &[u8],
    part: Range<usize>,
    place: &str,
    strings: &Strings,
) -> Result<()> {
    for at in part {
        let Some((what, length)) = strings.at(&line[at..])? else {
            continue;
        };
        if what.is_shell_parameter() && follows_lone_dollar(&line[..at]) {
            continue;
        }
        let column = column(line, at);
        let what = visible_bytes(&line[at..at + length]);
        return Err(usage(format!(
            "column {column} of the shell line: {what} stands {place}; write it outside, as in \
             'v={what}; echo \"$v\"', or give the line in a file (-f) to keep {what} as it is"
        )));
    }
    Ok(())
}

/// The column of a byte, counted in characters from 1.
pub(super) fn column(line: &[u8], at: usize) -> usize {
    String::from_utf8_lossy(&line[..at]).chars().count() + 1
}

/// Whether a text ends with a `$` that begins a parameter, as in `${1}`, unlike `\${1}` and `$${1}`.
pub(super) fn follows_lone_dollar(before: &[u8]) -> bool {
    match before {
        [.., b'\\' | b'$', b'$'] => false,
        [.., last] => *last == b'$',
        [] => false,
    }
}

/// The length up to and with the first `close`; `None` where one of the `odd` bytes comes before.
fn length_to(text: &[u8], from: usize, close: u8, odd: &[u8]) -> Option<usize> {
    for (at, byte) in text.iter().enumerate().skip(from) {
        if *byte == close {
            return Some(at + 1);
        }
        if odd.contains(byte) {
            return None;
        }
    }
    None
}

fn unknown(_: &[u8]) -> Option<usize> {
    None
}

fn two_bytes(_: &[u8]) -> Option<usize> {
    Some(2)
}

/// The length of a `$$`. In zsh its second sign can begin a construct.
fn process_id(text: &[u8]) -> Option<usize> {
    match text.get(2) {
        Some(b'\'' | b'"' | b'(' | b'{' | b'[') => None,
        _ => Some(2),
    }
}

fn comment(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|&byte| byte == b'\n');
    Some(end.unwrap_or(text.len()))
}

fn backquotes(text: &[u8]) -> Option<usize> {
    length_to(text, 1, b'`', b"'\"\\#")
}

fn brackets(text: &[u8]) -> Option<usize> {
    length_to(text, 1, b']', b" \t\n;&|()<>'\"\\`$[#")
}

fn braces(text: &[u8]) -> Option<usize> {
    match text.get(2) {
        Some(b' ' | b'\t' | b'|') => None,
        _ => length_to(text, 2, b'}', b"'\"\\`{(\n"),
    }
}

/// The length of a `$(...)` or `$((...))`.
fn parentheses(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    for (ix, byte) in text.iter().enumerate() {
        match byte {
            b'\'' | b'"' | b'\\' | b'`' | b'#' | b'{' | b'[' => return None,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            let inside = &text[..ix];
            // A pattern of `case` ends with a parenthesis that has no partner.
            if contains(inside, b"case") || contains(inside, b"<<") {
                return None;
            }
            return Some(ix + 1);
        }
    }
    None
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
