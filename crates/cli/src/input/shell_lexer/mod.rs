//! Finds the replacement strings in a line for the shell, and the quoting in which each stands.
//!
//! A value never becomes a part of what the shell parses: the script refers to it by a variable, and this reader only
//! decides how to write that reference. So a mistake here can't execute a value; at worst the shell would split it.
//! Where it can't be known for certain how a shell reads a place, the replacement string there is refused.

mod expansion;
mod here;
mod refusal;
mod simple_command;
mod unit;

use super::replacement::Replacement;
use crate::exit::usage;
use here::Here;
use simple_command::Command;
use std::ops::Range;
use unit::Mark;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the line, which stay as they are.
    Text(Range<usize>),
    /// A replacement string.
    Place(Place),
}

/// A replacement string in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) what: Replacement,
    pub(crate) quoting: Quoting,
    /// The word that it is in is code for the program that gets it.
    pub(crate) is_code: bool,
    /// Its bytes in the line.
    pub(crate) at: Range<usize>,
    /// The bytes that `-N` repeats for each value; `None` if that can't be done.
    pub(crate) unit: Option<Range<usize>>,
}

/// The quoting in which a place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// None.
    None,
    /// Between double quotes.
    Double,
    /// Between single quotes.
    Single,
    /// In a here-document whose content is expanded.
    Here,
}

/// A line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lexed {
    pub(crate) pieces: Vec<Piece>,
    /// Why no word can be added at the end; `None` if one can.
    pub(crate) no_more: Option<&'static str>,
}

/// Takes a line apart.
///
/// # Errors
/// A replacement string stands where no value can be put safely. The message shows the column and a remedy.
pub(crate) fn lex(line: &[u8]) -> anyhow::Result<Lexed> {
    let mut lexer = Lexer {
        line,
        at: 0,
        copied: 0,
        pieces: Vec::new(),
        frames: vec![Frame::Commands],
        word: 0..0,
        at_word_start: true,
        heres: Vec::new(),
        opaque: None,
        command: Command::default(),
        ends_with_here: false,
        is_unclosed: false,
        marks: vec![Mark::default(); line.len()],
    };
    lexer.run()?;
    lexer.find_units();
    let no_more = lexer.why_no_more();
    if lexer.copied < line.len() {
        lexer.pieces.push(Piece::Text(lexer.copied..line.len()));
    }
    Ok(Lexed {
        pieces: lexer.pieces,
        no_more,
    })
}

/// What the reader is inside of.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// Commands: the line itself, or what stands in parentheses.
    Commands,
    /// The commands of a `$(...)`, with the command that it is a part of.
    Substitution(Command),
    /// Double quotes.
    Double,
}

struct Lexer<'a> {
    line: &'a [u8],
    at: usize,
    /// How much of the line is in `pieces`.
    copied: usize,
    pieces: Vec<Piece>,
    frames: Vec<Frame>,
    /// The word that is being read, outside of quotes.
    word: Range<usize>,
    at_word_start: bool,
    heres: Vec<Here>,
    /// From here on it is not certain how a shell reads the line, and why.
    opaque: Option<&'static str>,
    command: Command,
    ends_with_here: bool,
    /// A single quote has no partner.
    is_unclosed: bool,
    /// One for each byte of the line.
    marks: Vec<Mark>,
}

const ARGUMENT: &str =
    "make the value an argument: put {} outside, as in `sh -c 'echo \"$1\"' sh {}`";

impl Lexer<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        while let Some(&byte) = self.line.get(self.at) {
            let (from, outer, frame) = (self.at, self.frames.len(), self.frames.last().copied());
            let frame = frame.unwrap_or(Frame::Commands);
            match frame {
                Frame::Double => self.double(byte)?,
                _ => self.commands(byte)?,
            }
            self.mark(from, outer, frame);
        }
        self.end_word();
        if self.in_double() && self.has_places() {
            return Err(usage(format!(
                "the line for the shell has a double quote without its partner: {}",
                self.shown()
            )));
        }
        Ok(())
    }

    /// One step outside of quotes.
    fn commands(&mut self, byte: u8) -> anyhow::Result<()> {
        self.ends_with_here = false;
        match byte {
            b' ' | b'\t' => {
                self.end_word();
                self.at += 1;
            }
            b'\n' => {
                self.end_command();
                self.at += 1;
                self.read_heres()?;
            }
            b';' | b'&' | b'|' => {
                self.end_command();
                self.at += 1;
            }
            b'(' => {
                self.end_command();
                self.frames.push(Frame::Commands);
                self.at += 1;
            }
            b')' => {
                self.end_command();
                self.at += 1;
                let left = if self.frames.len() > 1 {
                    self.frames.pop()
                } else {
                    None
                };
                if let Some(Frame::Substitution(outer)) = left {
                    // The word that it is a part of goes on.
                    self.command = outer;
                    (self.word, self.at_word_start) = (self.at..self.at, false);
                } else {
                    self.command.closed = true;
                    self.word = self.at..self.at;
                }
            }
            b'<' | b'>' => {
                // A number directly before belongs to the redirection.
                let is_number = !self.word.is_empty()
                    && self.line[self.word.clone()].iter().all(u8::is_ascii_digit);
                if is_number {
                    (self.word, self.at_word_start) = (self.at..self.at, true);
                }
                self.end_word();
                self.redirection();
            }
            b'#' if self.at_word_start => {
                let end = self.find(self.at, b'\n');
                self.refuse_inside(
                    self.at..end,
                    "in a comment",
                    "leave it out there, or end the line before it",
                )?;
                self.at = end;
            }
            b'\\' => {
                self.in_word(2);
            }
            b'\'' => {
                let from = self.at + 1;
                let end = self.find(from, b'\'');
                if end == self.line.len() {
                    self.is_unclosed = true;
                    self.opaque = Some("after a single quote without its partner");
                }
                self.in_word(1);
                while self.at < end {
                    if !self.place(Quoting::Single)? {
                        self.at += 1;
                    }
                }
                self.in_word(1);
            }
            b'"' => {
                self.in_word(1);
                self.frames.push(Frame::Double);
            }
            b'`' => self.backquotes()?,
            b'$' => self.dollar()?,
            b'{' => {
                if self.place(Quoting::None)? {
                    self.word.end = self.at;
                    self.at_word_start = false;
                } else {
                    let list = self.at + 1..self.braces_end();
                    if is_range(&self.line[list.clone()]) {
                        let remedy = "use seq, as in `for i in $(seq {}); do echo $i; done`";
                        self.refuse_inside(
                            list,
                            "in braces that are expanded before there is a value",
                            remedy,
                        )?;
                    }
                    self.in_word(1);
                }
            }
            _ => self.in_word(1),
        }
        Ok(())
    }

    /// One step between double quotes, in which only a few characters are special.
    fn double(&mut self, byte: u8) -> anyhow::Result<()> {
        match byte {
            b'"' => {
                self.frames.pop();
                self.in_word(1);
            }
            b'\\' => {
                if self.line.get(self.at + 1) == Some(&b'{') {
                    self.refuse_at(
                        self.at + 1,
                        "after a backslash",
                        "leave the backslash out, or write two",
                    )?;
                    self.at += 1;
                } else {
                    self.at = self.line.len().min(self.at + 2);
                }
            }
            b'`' => self.backquotes()?,
            b'$' => self.dollar()?,
            b'{' if self.place(Quoting::Double)? => {}
            _ => self.at += 1,
        }
        Ok(())
    }

    /// Goes on by `n` bytes, which are part of a word.
    fn in_word(&mut self, n: usize) {
        if self.at_word_start {
            (self.word, self.at_word_start) = (self.at..self.at, false);
        }
        self.at = self.line.len().min(self.at + n);
        self.word.end = self.at;
    }

    /// Puts the replacement string here, if there is one, among the pieces, and goes behind it.
    fn place(&mut self, quoting: Quoting) -> anyhow::Result<bool> {
        let Some((what, length)) = Replacement::at(&self.line[self.at..])? else {
            return Ok(false);
        };
        if let Some(why) = self.opaque {
            return Err(self.refusal(self.at, why, ARGUMENT));
        }
        if self.copied < self.at {
            self.pieces.push(Piece::Text(self.copied..self.at));
        }
        if quoting == Quoting::None && self.at_word_start {
            self.word = self.at..self.at;
        }
        let begun = if self.at_word_start {
            &[][..]
        } else {
            &self.line[self.word.start..self.at]
        };
        let is_code = self.command.code.is_code_in(begun);
        self.pieces.push(Piece::Place(Place {
            what,
            quoting,
            is_code,
            at: self.at..self.at + length,
            unit: None,
        }));
        self.at += length;
        self.copied = self.at;
        Ok(true)
    }

    /// The position of the brace that closes the one here, or of the end of its word.
    fn braces_end(&self) -> usize {
        let mut open = 0;
        let is_end = |&byte: &u8| {
            open += opened(byte);
            open == 0 || b" \t\n;&|()<>'\"`".contains(&byte)
        };
        let rest = &self.line[self.at..];
        self.at + rest.iter().position(is_end).unwrap_or(rest.len()).max(1)
    }

    /// The position of the next `byte`, or the end of the line.
    fn find(&self, from: usize, byte: u8) -> usize {
        let from = from.min(self.line.len());
        self.line[from..]
            .iter()
            .position(|&other| other == byte)
            .map_or(self.line.len(), |at| from + at)
    }

    fn in_double(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Double))
    }

    fn has_places(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Place(_)))
    }
}

/// Whether what is between braces is a range, as `1..9`, which the shell expands before there is a value. In a list with
/// commas two dots are text.
fn is_range(braces: &[u8]) -> bool {
    let mut depth = 0;
    let is_comma = |&byte: &u8| {
        depth += opened(byte);
        byte == b',' && depth == 0
    };
    !braces.iter().any(is_comma) && braces.windows(2).any(|pair| pair == b"..")
}

/// How many more braces are open behind a byte.
fn opened(byte: u8) -> i32 {
    i32::from(byte == b'{') - i32::from(byte == b'}')
}
