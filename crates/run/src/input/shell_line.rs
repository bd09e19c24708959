//! A shell line with replacement strings: values go in as quoted words.
//!
//! `sort {} > {}.out` becomes `sort 'a b' > 'a b'.out`. Quoting is safe only where the shell reads plain words. So a
//! replacement string in quotes, a substitution, a comment or a here-document is refused. Where shells may disagree on
//! the end of such a construct, every replacement string after it is refused, too.

use super::command::{Command, is_bare, is_plain_byte, os, quote_for_sh};
use super::replacement::{Replacement, Row};
use super::word::Word;
use crate::exit::usage;
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
    pub(crate) fn new(line: &[u8]) -> anyhow::Result<ShellTemplate> {
        let mut words = vec![Word::default()];
        let mut in_word = false;
        let mut at = 0;
        while at < line.len() {
            if in_word == b" \t\n;&|()<>".contains(&line[at]) {
                in_word = !in_word;
                words.push(Word::default());
            }
            let word = words.last_mut().expect("there is always one");
            if let Some((what, length)) = Replacement::at(&line[at..])? {
                word.push(what);
                at += length;
            } else {
                let end = end_of_text(line, at, word.is_empty())?;
                word.push_text(&line[at..end]);
                at = end;
            }
        }
        let line = line.to_vec();
        Ok(ShellTemplate { line, words })
    }

    /// Its replacement strings.
    pub(crate) fn replacements(&self) -> impl Iterator<Item = Replacement> {
        self.words.iter().flat_map(Word::replacements)
    }

    /// The same line with `{}` as its last argument.
    ///
    /// # Errors
    /// The line is more than a program with plain arguments.
    pub(crate) fn with_values_at_end(self) -> anyhow::Result<ShellTemplate> {
        let is_plain = self
            .line
            .iter()
            .all(|&byte| is_plain_byte(byte) || byte == b' ' || byte == b'\t');
        let mut words = self.line.split(u8::is_ascii_whitespace);
        if is_plain && words.find(|word| !word.is_empty()).is_some_and(is_bare) {
            return ShellTemplate::new(&[&self.line, &b" {}"[..]].concat());
        }
        Err(usage(format!(
            "the shell line has no {{}}: {}; write {{}} where the value belongs, as in `sort {{}} > {{}}.out`",
            cosched_report::visible_bytes(&self.line)
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

/// The end of a construct, or of the plain byte, that begins at `at`.
fn end_of_text(line: &[u8], at: usize, starts_word: bool) -> anyhow::Result<usize> {
    let Some(construct) = Construct::at(line, at, starts_word) else {
        let is_here_string = line[at..].starts_with(b"<<<");
        return Ok(at + if is_here_string { 3 } else { 1 });
    };
    let end = construct.length.map_or(line.len(), |length| at + length);
    construct.refuse_replacement(line, at..end)?;
    Ok(end)
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
        let before = line[..at].last();
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
            [b'=', b'(', ..] => ("an array", None),
            [b'<', b'<', b'<', ..] => return None,
            [b'<', b'<', ..] => ("a here-document", None),
            [b'[', b' ' | b'\t', ..] if starts_word => return None,
            [b'[', ..] => ("[...]", length_to(text, 1, b']', b" \t\n;&|()<>'\"\\`$[#")),
            [b'#', ..] if starts_word => ("a comment", comment(text, before)),
            [b'\\', b'\n', rest @ ..] => {
                let is_apart = matches!(before, Some(b' ' | b'\t')) && !rest.starts_with(b"#");
                ("a continued line", is_apart.then_some(2))
            }
            [b'\\', _, ..] => ("text after a backslash", Some(2)),
            _ => return None,
        };
        Some(Construct { name, length })
    }

    /// Refuses a replacement string within this construct, which takes a part of the line.
    fn refuse_replacement(&self, line: &[u8], part: Range<usize>) -> anyhow::Result<()> {
        for at in part {
            let Some((what, length)) = Replacement::at(&line[at..])? else {
                continue;
            };
            if what.is_shell_parameter() && follows_lone_dollar(&line[..at]) {
                continue;
            }
            let place = if self.length.is_some() {
                "in"
            } else {
                "in or after"
            };
            return Err(usage(format!(
                "column {} of the shell line: {} stands {place} {}; write it outside, where each value is one word, as \
                 in 'v={{}}; echo \"$v\"', or give lines that need {{}} as it is in a file (-f)",
                String::from_utf8_lossy(&line[..at]).chars().count() + 1,
                cosched_report::visible_bytes(&line[at..at + length]),
                self.name,
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

/// The length of a `` `...` ``, `${...}` or `$(...)` that holds no quotes or the like.
fn substitution(text: &[u8]) -> Option<usize> {
    match text {
        [b'`', ..] => length_to(text, 1, b'`', b"'\"\\#"),
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
            let is_odd = contains(inside, b"case") || contains(inside, b"<<");
            return (!is_odd).then_some(ix + 1);
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
