//! A word of a command with replacement strings, such as `{.}.out`.

use super::command::{in_double_quotes, in_single_quotes};
use super::replacement::{Replacement, Row, Strings};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A word: texts and replacement strings in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Replacement(Replacement, Quotes),
}

/// The quotes of a shell around a replacement string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// It is a part of a plain word: several values become several words.
    None,
    /// Several values become one text, with blanks between them.
    Single,
    /// As in single quotes.
    Double,
}

impl Quotes {
    /// What stands for the values of a replacement string between these quotes; `None` outside.
    fn write(self, what: Replacement, row: &Row, nth: Option<usize>) -> Option<Vec<u8>> {
        let text = || what.values(row, nth).join(OsStr::new(" "));
        Some(match (self, what) {
            (Quotes::None, _) => return None,
            // The shell itself reads the slot.
            (Quotes::Single, Replacement::Slot) => [b"'\"", text().as_bytes(), b"\"'"].concat(),
            (Quotes::Double, Replacement::Slot) => text().into_vec(),
            (Quotes::Single, _) => in_single_quotes(text().as_bytes()),
            (Quotes::Double, _) => in_double_quotes(text().as_bytes()),
        })
    }
}

impl Word {
    /// Finds the replacement strings of a word.
    ///
    /// # Errors
    /// It has one of GNU parallel's that has no meaning here.
    pub(crate) fn parse(text: &[u8], strings: &Strings) -> anyhow::Result<Word> {
        let mut word = Word::default();
        let mut at = 0;
        while at < text.len() {
            if let Some((what, length)) = strings.at(&text[at..])? {
                word.push(what, Quotes::None);
                at += length;
            } else {
                word.push_text(&text[at..=at]);
                at += 1;
            }
        }
        if word.is_empty() {
            word.push_text(b"");
        }
        Ok(word)
    }

    /// Whether it has no piece, not even an empty text.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, what: Replacement, quotes: Quotes) {
        self.0.push(Piece::Replacement(what, quotes));
    }

    pub(crate) fn push_text(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.extend(text),
            _ => self.0.push(Piece::Text(text.to_vec())),
        }
    }

    /// The texts without the replacement strings.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(&text[..]),
            Piece::Replacement(..) => None,
        })
    }

    /// The word as a shell reads it, its texts quoted by `quote`.
    pub(crate) fn quoted(mut self, quote: fn(&[u8]) -> Vec<u8>) -> Word {
        for piece in &mut self.0 {
            if let Piece::Text(text) = piece {
                *text = quote(text);
            }
        }
        self
    }

    /// Whether it has `{%}`.
    pub(crate) fn has_slot(&self) -> bool {
        self.replacements().any(|what| what == Replacement::Slot)
    }

    pub(crate) fn replacements(&self) -> impl Iterator<Item = Replacement> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Replacement(what, _) => Some(*what),
        })
    }

    /// The words that it becomes for one job, each value written by `write`.
    ///
    /// Several values of `{}` become several words: `x{}y` becomes `xa by`. With `repeats` it becomes `xay xby`. A word
    /// of nothing but values that the job lacks becomes no word.
    pub(crate) fn fill(
        &self,
        row: &Row,
        repeats: bool,
        write: fn(&[u8]) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let has_all = self
            .replacements()
            .any(|what| matches!(what, Replacement::All(_)));
        if !(repeats && has_all) {
            return self.fill_once(row, None, write);
        }
        (0..row.values.len())
            .flat_map(|nth| self.fill_once(row, Some(nth), write))
            .collect()
    }

    /// Whether the word goes on behind this piece.
    fn goes_on_after(&self, place: usize) -> bool {
        match self.0.get(place + 1) {
            Some(Piece::Text(text)) => !text.first().is_none_or(u8::is_ascii_whitespace),
            Some(Piece::Replacement(..)) => true,
            None => false,
        }
    }

    /// Fills in all values of the job, or for `{}` the `nth` alone.
    fn fill_once(
        &self,
        row: &Row,
        nth: Option<usize>,
        write: fn(&[u8]) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        let mut word: Option<Vec<u8>> = None;
        for (place, piece) in self.0.iter().enumerate() {
            let (what, quotes) = match piece {
                Piece::Text(text) => {
                    word.get_or_insert_default().extend(text);
                    continue;
                }
                Piece::Replacement(what, quotes) => (what, quotes),
            };
            if let Some(text) = quotes.write(*what, row, nth) {
                word.get_or_insert_default().extend(text);
                continue;
            }
            // The shell itself reads the slot.
            let write = match what {
                Replacement::Slot => <[u8]>::to_vec,
                _ => write,
            };
            let values = what.values(row, nth);
            if values.is_empty() && self.goes_on_after(place) {
                // Else what follows could mean something else at the begin of a word, as `#` does to a shell.
                word.get_or_insert_default().extend(write(b""));
            }
            for (ix, value) in values.iter().enumerate() {
                if ix > 0 {
                    words.extend(word.take());
                }
                word.get_or_insert_default().extend(write(value.as_bytes()));
            }
        }
        words.extend(word);
        words
    }
}
