//! A shell line with replacement strings: values go in as quoted words.
//!
//! `sort {} > {}.out` becomes `sort 'a b' > 'a b'.out`. Between quotes the value goes in with that kind of quotes, so
//! `"to {}"` becomes `"to "'$x'""`. Quoting is safe only where the shell reads plain words or quotes. So a replacement
//! string in a [construct](super::construct) is refused.

use super::command::{Command, is_bare, is_plain_byte, os, quote_at, quote_for_sh};
use super::construct::{Construct, column, follows_lone_dollar, refuse_replacement};
use super::replacement::{Replacement, Row, Strings};
use super::word::{Quotes, Word};
use crate::exit::usage;
use anyhow::Result;
use cosched_report::visible_bytes;

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
    /// A replacement string stands where the shell reads neither a plain word nor quotes.
    pub(crate) fn new(line: &[u8], strings: &Strings) -> Result<ShellTemplate> {
        let words = LineReader::new(line, strings).words()?;
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

/// Divides a line into words, from its beginning to its end.
struct LineReader<'a> {
    line: &'a [u8],
    strings: &'a Strings<'a>,
    words: Vec<Word>,
    /// The byte that is read next.
    at: usize,
    /// The text just before is `$` or `$$`.
    is_after_dollar: bool,
    /// These quotes have a `$` before the next value, whose first letters could belong to a name.
    has_dollar: bool,
}

impl<'a> LineReader<'a> {
    fn new(line: &'a [u8], strings: &'a Strings<'a>) -> LineReader<'a> {
        LineReader {
            line,
            strings,
            words: vec![Word::default()],
            at: 0,
            is_after_dollar: false,
            has_dollar: false,
        }
    }

    fn words(mut self) -> Result<Vec<Word>> {
        let mut in_word = false;
        while let Some(&byte) = self.line.get(self.at) {
            if in_word == b" \t\n;&|()<>".contains(&byte) {
                in_word = !in_word;
                self.words.push(Word::default());
            }
            if self.takes_replacement(Quotes::None)? {
                continue;
            }
            match byte {
                b'\'' => self.take_quotes(Quotes::Single)?,
                b'"' => self.take_quotes(Quotes::Double)?,
                _ => self.take_plain()?,
            }
        }
        Ok(self.words)
    }

    fn word(&mut self) -> &mut Word {
        self.words.last_mut().expect("there is always one")
    }

    fn take_text(&mut self, length: usize) {
        let text = &self.line[self.at..self.at + length];
        self.word().push_text(text);
        self.at += length;
        // In zsh the second of `$$` begins a construct as well.
        self.is_after_dollar = text == b"$" || text == b"$$";
        self.has_dollar |= text.contains(&b'$');
    }

    /// Takes the replacement string that stands here, if there is one.
    fn takes_replacement(&mut self, quotes: Quotes) -> Result<bool> {
        let (before, rest) = self.line.split_at(self.at);
        let Some((what, length)) = self.strings.at(rest)? else {
            return Ok(false);
        };
        if quotes == Quotes::Single {
            // A parameter of a script that another shell reads.
            if what.is_shell_parameter() && follows_lone_dollar(before) {
                return Ok(false);
            }
        } else if self.is_after_dollar {
            return Err(after_dollar(self.line, self.at, length));
        } else if quotes == Quotes::Double && self.has_dollar {
            self.word().push_text(b"\"\"");
        }
        self.word().push(what, quotes);
        self.at += length;
        self.is_after_dollar = false;
        self.has_dollar = false;
        Ok(true)
    }

    /// Takes a byte, or a construct as a whole.
    fn take_plain(&mut self) -> Result<()> {
        if self.line[self.at..].starts_with(b"<<<") {
            self.take_text(3);
            return Ok(());
        }
        let starts_word = self.word().is_empty();
        match Construct::at(self.line, self.at, starts_word) {
            Some(construct) => self.take_construct(construct)?,
            None => self.take_text(1),
        }
        Ok(())
    }

    /// Takes a construct, or the rest of the line where shells may disagree on its end.
    fn take_construct(&mut self, construct: &Construct) -> Result<()> {
        let length = construct.length_at(self.line, self.at);
        let end = length.map_or(self.line.len(), |length| self.at + length);
        let place = if length.is_some() {
            "in"
        } else {
            "in or after"
        };
        let place = format!("{place} {}", construct.name);
        refuse_replacement(self.line, self.at..end, &place, self.strings)?;
        self.take_text(end - self.at);
        Ok(())
    }

    /// Takes a text in quotes.
    fn take_quotes(&mut self, quotes: Quotes) -> Result<()> {
        let opening = self.at;
        let close = self.line[opening];
        self.take_text(1);
        self.has_dollar = false;
        while let Some(&byte) = self.line.get(self.at) {
            if self.takes_replacement(quotes)? {
                continue;
            }
            if byte == close {
                self.take_text(1);
                return Ok(());
            }
            let construct = match quotes {
                Quotes::Double => Construct::in_double_quotes(&self.line[self.at..]),
                _ => None,
            };
            match construct {
                Some(construct) => self.take_construct(construct)?,
                None => self.take_text(1),
            }
        }
        let name = match quotes {
            Quotes::Double => "double quotes",
            _ => "single quotes",
        };
        let place = format!("in {name} without an end");
        refuse_replacement(self.line, opening..self.line.len(), &place, self.strings)
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

#[cfg(test)]
#[path = "shell_line_tests.rs"]
mod tests;
