//! A line for the shell with replacement strings: values go in as quoted words.
//!
//! `sort {} > {}.out` becomes `sort 'a b' > 'a b'.out`. Quoting is safe only where the shell reads plain words. So a
//! replacement string in quotes, a substitution, a comment or a here-document is refused. Where shells may disagree on
//! the end of such a construct, every replacement string after it is refused, too.

use super::command::{Command, is_plain_byte, is_special_first, os, quote_for_sh};
use super::replacement::{Piece, Replacement, Row};
use crate::exit::usage;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// A line for the shell with replacement strings.
#[derive(Clone, Debug)]
pub(crate) struct ShellTemplate {
    line: Vec<u8>,
    /// The words of the line, and the text between them.
    words: Vec<Vec<Piece>>,
}

impl ShellTemplate {
    /// Divides a line into words.
    ///
    /// # Errors
    /// A replacement string stands where the shell reads no plain word.
    pub(crate) fn new(line: &[u8]) -> anyhow::Result<ShellTemplate> {
        Ok(ShellTemplate {
            line: line.to_vec(),
            words: Scanner::new(line).scan()?,
        })
    }

    /// Its replacement strings.
    pub(crate) fn replacements(&self) -> impl Iterator<Item = Replacement> {
        self.words.iter().flatten().filter_map(Piece::replacement)
    }

    /// The same line with `{}` as its last argument.
    ///
    /// # Errors
    /// The line is more than a program with plain arguments.
    pub(crate) fn with_values_at_end(self) -> anyhow::Result<ShellTemplate> {
        let mut words = self.line.split(|byte| b" \t".contains(byte));
        let first = words.find(|word| !word.is_empty()).unwrap_or_default();
        let is_plain = |byte: &u8| is_plain_byte(*byte) || b" \t".contains(byte);
        if !first.is_empty() && !is_special_first(first) && self.line.iter().all(is_plain) {
            return ShellTemplate::new(&[&self.line, &b" {}"[..]].concat());
        }
        Err(usage(format!(
            "the line for the shell has no {{}}: {}; write {{}} where the value belongs, as in `sort {{}} > {{}}.out`",
            cosched_report::visible_bytes(&self.line)
        )))
    }

    /// The command of one job. With `repeats` a word is written once for each of several values.
    pub(crate) fn fill(&self, row: &Row, repeats: bool) -> Command {
        let mut script = Vec::new();
        for (ix, word) in self.words.iter().enumerate() {
            let next = self.words.get(ix + 1).and_then(|word| word.first());
            // `2>f` and `f()` differ from `'2'>f` and `'f'()`.
            let can_be_bare = !next.is_some_and(|piece| piece.begins_with_any(b"<>("));
            script.extend(write_word(word, row, repeats, can_be_bare));
        }
        Command::shell(os(&script))
    }
}

/// Writes a word with the values of a job, without quotes where that means the same.
fn write_word(word: &[Piece], row: &Row, repeats: bool, can_be_bare: bool) -> Vec<u8> {
    if can_be_bare && word.iter().all(|piece| is_plain(piece, row)) {
        let bare = join_word(word, row, repeats, <[u8]>::to_vec);
        if !bare.split(|&byte| byte == b' ').any(is_special_first) {
            return bare;
        }
    }
    join_word(word, row, repeats, quote_for_sh)
}

/// Whether the shell takes a piece as it is, with or without quotes.
fn is_plain(piece: &Piece, row: &Row) -> bool {
    let values = match piece {
        Piece::Text(text) => vec![text.clone()],
        Piece::Replacement(what) => what.of(row),
    };
    values.iter().all(|value| {
        !value.is_empty() && value.as_bytes().iter().all(|&byte| is_plain_byte(byte))
    })
}

/// Joins the pieces of a word, each value written by `write`; several values stand side by side.
fn join_word(word: &[Piece], row: &Row, repeats: bool, write: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let has_all = word
        .iter()
        .any(|piece| matches!(piece, Piece::Replacement(Replacement::All(_))));
    if !(repeats && has_all) {
        return join_pieces(word, row, None, write);
    }
    let copies: Vec<Vec<u8>> = (0..row.values.len())
        .map(|nth| join_pieces(word, row, Some(nth), write))
        .collect();
    copies.join(&b' ')
}

/// Joins the pieces of a word, with all values of the job or with the `nth` alone.
fn join_pieces(
    word: &[Piece],
    row: &Row,
    nth: Option<usize>,
    write: fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let mut joined = Vec::new();
    for piece in word {
        let what = match piece {
            Piece::Text(text) => {
                joined.extend_from_slice(text.as_bytes());
                continue;
            }
            Piece::Replacement(what) => what,
        };
        let mut values = what.of(row);
        if let (Replacement::All(_), Some(nth)) = (what, nth) {
            values = vec![values.swap_remove(nth)];
        }
        let written: Vec<Vec<u8>> = values.iter().map(|value| write(value.as_bytes())).collect();
        joined.extend(written.join(&b' '));
    }
    joined
}

/// Finds the words and the replacement strings of a line.
struct Scanner<'a> {
    line: &'a [u8],
    at: usize,
    /// End of the text that is in a piece.
    copied: usize,
    /// Pieces of the current word, or of the text between two words.
    word: Vec<Piece>,
    words: Vec<Vec<Piece>>,
    in_word: bool,
}

impl<'a> Scanner<'a> {
    fn new(line: &'a [u8]) -> Scanner<'a> {
        Scanner {
            line,
            at: 0,
            copied: 0,
            word: Vec::new(),
            words: Vec::new(),
            in_word: false,
        }
    }

    fn scan(mut self) -> anyhow::Result<Vec<Vec<Piece>>> {
        while self.at < self.line.len() {
            self.step()?;
        }
        self.end_piece();
        self.words.push(self.word);
        Ok(self.words)
    }

    fn step(&mut self) -> anyhow::Result<()> {
        let rest = &self.line[self.at..];
        self.set_in_word(!b" \t\n;&|()<>".contains(&rest[0]));
        if let Some((what, length)) = Replacement::at(rest)? {
            self.end_piece();
            self.word.push(Piece::Replacement(what));
            self.at += length;
            self.copied = self.at;
            return Ok(());
        }
        let starts_word = self.at == self.copied && self.word.is_empty();
        let Some(construct) = Construct::at(self.line, self.at, starts_word) else {
            self.at += if rest.starts_with(b"<<<") { 3 } else { 1 };
            return Ok(());
        };
        let end = construct
            .length
            .map_or(self.line.len(), |length| self.at + length);
        self.refuse(self.at..end, &construct)?;
        self.at = end;
        Ok(())
    }

    /// Begins a word, or the text between two words.
    fn set_in_word(&mut self, in_word: bool) {
        if in_word != self.in_word {
            self.end_piece();
            self.words.push(std::mem::take(&mut self.word));
            self.in_word = in_word;
        }
    }

    fn end_piece(&mut self) {
        if self.copied < self.at {
            let text = os(&self.line[self.copied..self.at]);
            self.word.push(Piece::Text(text));
            self.copied = self.at;
        }
    }

    /// Refuses a replacement string within a part of the line.
    fn refuse(&self, part: Range<usize>, construct: &Construct) -> anyhow::Result<()> {
        for at in part {
            let Some((what, length)) = Replacement::at(&self.line[at..])? else {
                continue;
            };
            let is_parameter = at > 0 && self.line[at - 1] == b'$' && what.is_shell_parameter();
            if is_parameter {
                continue;
            }
            let after = if construct.length.is_some() {
                ""
            } else {
                " or after"
            };
            return Err(usage(format!(
                "column {} of the line for the shell: {} stands in{after} {}; write it outside, where each value is one word, as \
                 in 'v={{}}; echo \"$v\"', or give lines that need {{}} as it is in a file (-f)",
                String::from_utf8_lossy(&self.line[..at]).chars().count() + 1,
                cosched_report::visible_bytes(&self.line[at..at + length]),
                construct.name,
            )));
        }
        Ok(())
    }
}

/// A part of a line in which no value can stand.
struct Construct {
    name: &'static str,
    /// In bytes; `None` where shells may find different ends.
    length: Option<usize>,
}

impl Construct {
    /// The construct that begins at this byte; `None` for plain text.
    fn at(line: &[u8], at: usize, starts_word: bool) -> Option<Construct> {
        let text = &line[at..];
        let (name, length) = match text {
            [b'\'', ..] => ("single quotes", length_to(text, 1, b'\'', b"")),
            [b'"', ..] => ("double quotes", double_quotes(text)),
            [b'`', ..] => ("backquotes", substitution(text)),
            [b'$', b'$', ..] => ("$$", Some(2)),
            [b'$', b'(', ..] => ("$(...)", substitution(text)),
            [b'$', b'{', ..] => ("${...}", substitution(text)),
            [b'$', b'\'', ..] => ("$'...'", None),
            [b'$', b'[', ..] => ("$[...]", None),
            [b'(', b'(', ..] => ("((...))", None),
            [b'<', b'<', b'<', ..] => return None,
            [b'<', b'<', ..] => ("a here-document", None),
            [b'[', b'[', ..] if starts_word => ("[[...]]", None),
            [b'[', b' ' | b'\t' | b'\n', ..] | [b'['] if starts_word => return None,
            [b'[', ..] => ("[...]", length_to(text, 1, b']', b"'\"\\`$[")),
            [b'#', ..] if starts_word => ("a comment", comment(text, line[..at].last())),
            [b'\\', b'\n', rest @ ..] => {
                let is_apart = starts_word && !rest.starts_with(b"#");
                ("a continued line", is_apart.then_some(2))
            }
            [b'\\', _, ..] => ("text after a backslash", Some(2)),
            _ => return None,
        };
        Some(Construct { name, length })
    }
}

/// The length up to and with the first `close`; `None` where one of the `odd` bytes comes before.
fn length_to(text: &[u8], from: usize, close: u8, odd: &[u8]) -> Option<usize> {
    let inside = text[from..].iter().position(|&byte| byte == close)?;
    let has_odd = text[from..from + inside]
        .iter()
        .any(|byte| odd.contains(byte));
    (!has_odd).then_some(from + inside + 1)
}

/// The length of a comment; `None` where a shell may not see one.
fn comment(text: &[u8], before: Option<&u8>) -> Option<usize> {
    let is_certain = before.is_none_or(|byte| b" \t\n;&|".contains(byte));
    let length = text.iter().position(|&byte| byte == b'\n');
    is_certain.then_some(length.unwrap_or(text.len()))
}

/// The length of a text in double quotes.
fn double_quotes(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at..)? {
            [b'"', ..] => return Some(at + 1),
            [b'\\', b'\n', ..] | [b'$', b'[', ..] | [] => return None,
            [b'\\', _, ..] | [b'$', b'$', ..] => at += 2,
            rest @ ([b'`', ..] | [b'$', b'(' | b'{', ..]) => at += substitution(rest)?,
            _ => at += 1,
        }
    }
}

/// The length of a `` `...` ``, `${...}` or `$(...)` without quotes and the like in it.
fn substitution(text: &[u8]) -> Option<usize> {
    match text {
        [b'`', ..] => length_to(text, 1, b'`', b"'\"\\"),
        [b'$', b'{', b' ' | b'\t' | b'\n' | b'|', ..] => None,
        [b'$', b'{', ..] => length_to(text, 2, b'}', b"'\"\\`{(\n"),
        _ => parentheses(text),
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
            let has_odd = has(inside, b"case") || has(inside, b"<<");
            return (!has_odd).then_some(ix + 1);
        }
    }
    None
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
#[path = "shell_line_tests.rs"]
mod tests;
