//! A shell line with replacement strings: values go in as quoted words.
//!
//! `sort {} > {}.out` becomes `sort 'a b' > 'a b'.out`. Quoting is safe only where the shell reads plain words. So a
//! replacement string in quotes, a substitution, a comment or a here-document is refused. Where shells may disagree on
//! the end of such a construct, every replacement string after it is refused, too.

use super::command::{Command, is_bare, is_plain_byte, os, quote_at, quote_for_sh};
use super::replacement::{Replacement, Row, Strings};
use super::word::Word;
use crate::exit::usage;
use anyhow::Result;
use cosched_report::visible_bytes;
use std::ops::Range;

/// A shell line with replacement strings.
#[derive(Clone, Debug)]
pub(crate) struct ShellTemplate {
    line: Vec<u8>,
    /// The words of the line, and the texts between them.
    words: Vec<Word>,
}

impl ShellTemplate {
    /// Divides a line into words.
    ///
    /// # Errors
    /// A replacement string stands where the shell reads no plain word.
    pub(crate) fn new(line: &[u8], strings: &Strings) -> Result<ShellTemplate> {
        let mut words = vec![Word::default()];
        let mut in_word = false;
        let mut is_after_dollar = false;
        let mut at = 0;
        while at < line.len() {
            if in_word == b" \t\n;&|()<>".contains(&line[at]) {
                in_word = !in_word;
                words.push(Word::default());
            }
            let word = words.last_mut().expect("there is always one");
            if let Some((what, length)) = strings.at(&line[at..])? {
                if is_after_dollar {
                    return Err(after_dollar(line, at, length));
                }
                word.push(what);
                at += length;
            } else {
                let end = end_of_text(line, at, word.is_empty(), strings)?;
                word.push_text(&line[at..end]);
                is_after_dollar = line[at..end] == *b"$";
                at = end;
            }
        }
        let line = line.to_vec();
        Ok(ShellTemplate { line, words })
    }

    /// The line of a program with these arguments.
    pub(crate) fn of_words(arguments: Vec<Word>) -> ShellTemplate {
        let mut words = Vec::new();
        for (ix, word) in arguments.into_iter().enumerate() {
            let mut blank = Word::default();
            blank.push_text(b" ");
            words.extend([word.quoted(quote_at(ix)), blank]);
        }
        words.pop();
        let line = Vec::new();
        ShellTemplate { line, words }
    }

    /// Its replacement strings.
    pub(crate) fn replacements(&self) -> impl Iterator<Item = Replacement> {
        self.words.iter().flat_map(Word::replacements)
    }

    /// The same line with the values as its last arguments.
    ///
    /// # Errors
    /// The line is more than a program with plain arguments.
    pub(crate) fn with_values_at_end(self, strings: &Strings) -> Result<ShellTemplate> {
        let is_plain = self
            .line
            .iter()
            .all(|&byte| is_plain_byte(byte) || byte == b' ' || byte == b'\t');
        let mut words = self.line.split(u8::is_ascii_whitespace);
        if is_plain && words.find(|word| !word.is_empty()).is_some_and(is_bare) {
            let line = [&self.line, &b" {}"[..]].concat();
            return ShellTemplate::new(&line, &Strings::default());
        }
        let line = visible_bytes(&self.line);
        let what = strings.told();
        Err(usage(format!(
            "the shell line has no {what}: {line}; write {what} where the value belongs, as in `sort {what} > {what}.out`"
        )))
    }

    /// The command of one job. With `repeats` a word is written once for each of several values.
    pub(crate) fn fill(&self, row: &Row, repeats: bool) -> Command {
        let mut script = Vec::new();
        for (ix, word) in self.words.iter().enumerate() {
            let after = self.words.get(ix + 1).and_then(|word| word.texts().next());
            // `2>f` and `f()` differ from `'2'>f` and `'f'()`.
            let needs_quotes = after.is_some_and(|text| b"<>(".contains(&text[0]));
            let bare = word.fill(row, repeats, <[u8]>::to_vec);
            let words = if !needs_quotes && bare.iter().all(|word| is_bare(word)) {
                bare
            } else {
                word.fill(row, repeats, quote_for_sh)
            };
            script.extend(words.join(&b' '));
        }
        Command::shell(os(&script))
    }
}

/// The error for a value right after a `$`: bash reads `$'...'` in its own way, and the value could end the quotes.
fn after_dollar(line: &[u8], at: usize, length: usize) -> anyhow::Error {
    let column = column(line, at);
    let what = visible_bytes(&line[at..at + length]);
    usage(format!(
        "column {column} of the shell line: {what} stands right after $; write \\${what} for a dollar sign before the value"
    ))
}

/// The column of a byte, counted in characters from 1.
fn column(line: &[u8], at: usize) -> usize {
    String::from_utf8_lossy(&line[..at]).chars().count() + 1
}

/// The end of a construct, or of the plain byte, that begins at `at`.
fn end_of_text(line: &[u8], at: usize, starts_word: bool, strings: &Strings) -> Result<usize> {
    if line[at..].starts_with(b"<<<") {
        return Ok(at + 3);
    }
    let Some(construct) = Construct::at(line, at, starts_word) else {
        return Ok(at + 1);
    };
    let length = construct.length_at(line, at);
    let end = length.map_or(line.len(), |length| at + length);
    construct.refuse_replacement(line, at..end, length.is_some(), strings)?;
    Ok(end)
}

/// A part of a line in which no value can stand.
struct Construct {
    opening: &'static [u8],
    name: &'static str,
    /// The length of the construct that begins a text; `None` where shells may find different ends.
    length: fn(&[u8]) -> Option<usize>,
}

/// All constructs. The first whose opening fits is meant.
const CONSTRUCTS: &[Construct] = &[
    Construct {
        opening: b"'",
        name: "single quotes",
        length: single_quotes,
    },
    Construct {
        opening: b"\"",
        name: "double quotes",
        length: double_quotes,
    },
    Construct {
        opening: b"`",
        name: "backquotes",
        length: backquotes,
    },
    Construct {
        opening: b"$$",
        name: "$$",
        length: two_bytes,
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
    fn at(line: &[u8], at: usize, starts_word: bool) -> Option<&'static Construct> {
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

    fn length_at(&self, line: &[u8], at: usize) -> Option<usize> {
        // Not every shell sees a comment here.
        let is_after_sign = matches!(line[..at].last(), Some(b'(' | b')' | b'<' | b'>'));
        if self.opening == b"#" && is_after_sign {
            return None;
        }
        (self.length)(&line[at..])
    }

    /// Refuses a replacement string in a part of the line that this construct takes. `has_end` says that its end is known.
    fn refuse_replacement(
        &self,
        line: &[u8],
        part: Range<usize>,
        has_end: bool,
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
            let place = if has_end { "in" } else { "in or after" };
            let name = self.name;
            return Err(usage(format!(
                "column {column} of the shell line: {what} stands {place} {name}; write it outside, as in \
                 'v={what}; echo \"$v\"', or give the line in a file (-f) to keep {what} as it is"
            )));
        }
        Ok(())
    }
}

/// Whether a text ends with a `$` that begins a parameter, as in `${1}`, unlike `\${1}` and `$${1}`.
fn follows_lone_dollar(before: &[u8]) -> bool {
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

fn single_quotes(text: &[u8]) -> Option<usize> {
    length_to(text, 1, b'\'', b"")
}

fn double_quotes(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = &text[at..];
        at += match rest {
            [] | [b'\\', b'\n', ..] => return None,
            [b'"', ..] => return Some(at + 1),
            [b'\\', _, ..] => 2,
            [b'`' | b'$', ..] => match Construct::opened_by(rest) {
                Some(inner) => (inner.length)(rest)?,
                None => 1,
            },
            _ => 1,
        };
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

#[cfg(test)]
#[path = "shell_line_tests.rs"]
mod tests;
