//! Finds the replacement strings in a line for the shell, and the quoting in which each stands.
//!
//! A value never becomes a part of what the shell parses: the script refers to it by a variable, and this reader only
//! decides how to write that reference. So a mistake here can't execute a value; at worst the shell would split it.
//! Where it can't be known for certain how a shell reads a place, the replacement string there is refused.

use super::code_word::CodeWords;
use super::replacement::Replacement;
use crate::exit::usage;
use std::ops::Range;

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
    };
    lexer.run()?;
    let no_more = lexer.why_no_more();
    if lexer.copied < line.len() {
        lexer.pieces.push(Piece::Text(lexer.copied..line.len()));
    }
    Ok(Lexed { pieces: lexer.pieces, no_more })
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

/// The simple command that is being read: whether a word at its end would be an argument.
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    /// It has a word that is its program or an argument.
    has_program: bool,
    /// The next word is the file of a redirection.
    redirects: bool,
    /// The word before ends a construct such as `done`, after which no argument can stand.
    closed: bool,
    /// Which of its words are code.
    code: CodeWords,
}

/// A here-document whose content has not come yet.
struct Here {
    delimiter: Vec<u8>,
    quoted: bool,
    strip_tabs: bool,
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
}

const ARGUMENT: &str = "make the value an argument: put {} outside, as in `sh -c 'echo \"$1\"' sh {}`";

impl Lexer<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        while let Some(&byte) = self.line.get(self.at) {
            match self.frames.last() {
                Some(Frame::Double) => self.double(byte)?,
                _ => self.commands(byte)?,
            }
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
                let left = if self.frames.len() > 1 { self.frames.pop() } else { None };
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
                let is_number = !self.word.is_empty() && self.line[self.word.clone()].iter().all(u8::is_ascii_digit);
                if is_number {
                    (self.word, self.at_word_start) = (self.at..self.at, true);
                }
                self.end_word();
                self.redirection();
            }
            b'#' if self.at_word_start => {
                let end = self.find(self.at, b'\n');
                self.refuse_inside(self.at..end, "in a comment", "leave it out there, or end the line before it")?;
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
                    self.refuse_at(self.at + 1, "after a backslash", "leave the backslash out, or write two")?;
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
        let Some((what, length)) = Replacement::at(&self.line[self.at..])? else { return Ok(false) };
        if let Some(why) = self.opaque {
            return Err(self.refusal(self.at, why, ARGUMENT));
        }
        if self.copied < self.at {
            self.pieces.push(Piece::Text(self.copied..self.at));
        }
        if quoting == Quoting::None && self.at_word_start {
            self.word = self.at..self.at;
        }
        let is_code = self.command.code.is_code();
        self.pieces.push(Piece::Place(Place { what, quoting, is_code, at: self.at..self.at + length }));
        self.at += length;
        self.copied = self.at;
        Ok(true)
    }

    /// A `$` and what belongs to it.
    fn dollar(&mut self) -> anyhow::Result<()> {
        let in_double = self.in_double();
        let rest = &self.line[self.at + 1..];
        let skip = |lexer: &mut Self, to: usize| if in_double { lexer.at = to } else { lexer.in_word(to - lexer.at) };
        if rest.starts_with(b"((") {
            let end = self.closing(self.at + 1, b'(', b')');
            self.refuse_inside(self.at..end, "in arithmetic", "set a variable first, as in `n={}; echo $((n+1))`")?;
            skip(self, end);
        } else if rest.starts_with(b"(") {
            skip(self, self.at + 2);
            self.frames.push(Frame::Substitution(std::mem::take(&mut self.command)));
            (self.word, self.at_word_start) = (self.at..self.at, true);
        } else if rest.starts_with(b"{") {
            // `${1}` and `${#}` are the shell's own.
            if rest.starts_with(b"{}") {
                return Err(self.refusal(self.at + 1, "directly after a `$`", "write \\$ for a dollar sign"));
            }
            let end = self.closing(self.at + 1, b'{', b'}');
            let inside = self.at + 2..end;
            self.refuse_inside(
                inside.clone(),
                "inside ${...}",
                "set a variable first, as in `v={}; echo \"${v%.txt}\"`",
            )?;
            if self.line[inside].iter().any(|byte| b"'\"`(".contains(byte)) {
                self.opaque = Some("after ${...} with quotes or commands in it");
            }
            skip(self, end);
        } else if rest.starts_with(b"'") && !in_double {
            // Some shells know this form and others do not, so they see different ends of the quoted text.
            self.opaque = Some("after $'...', which not every shell knows");
            self.in_word(1);
        } else if rest.starts_with(b"$") {
            skip(self, self.at + 2);
            self.refuse_at(self.at, "directly after a `$`", "put a space or quotes between them")?;
        } else {
            skip(self, self.at + 1);
        }
        Ok(())
    }

    /// The bytes up to the next backquote.
    fn backquotes(&mut self) -> anyhow::Result<()> {
        let mut end = self.at + 1;
        while end < self.line.len() && self.line[end] != b'`' {
            end += if self.line[end] == b'\\' { 2 } else { 1 };
        }
        let end = self.line.len().min(end + 1);
        self.refuse_inside(self.at..end, "between backquotes", "write $(...) instead of `...`")?;
        if self.in_double() {
            self.at = end;
        } else {
            self.in_word(end - self.at);
        }
        Ok(())
    }

    /// A `<` or `>` and its companions, outside of quotes.
    fn redirection(&mut self) {
        let rest = &self.line[self.at..];
        self.command.redirects = true;
        if rest.starts_with(b"<<") && !rest.starts_with(b"<<<") {
            let strip_tabs = rest.starts_with(b"<<-");
            let mut at = self.at + if strip_tabs { 3 } else { 2 };
            while matches!(self.line.get(at), Some(b' ' | b'\t')) {
                at += 1;
            }
            let word = self.line[at..].iter().take_while(|byte| !b" \t\n;&|<>()".contains(byte)).count();
            let raw = &self.line[at..at + word];
            let quoted = raw.iter().any(|byte| b"'\"\\".contains(byte));
            let delimiter = raw.iter().copied().filter(|byte| !b"'\"\\".contains(byte)).collect();
            let is_odd = raw.is_empty() || raw.iter().any(|byte| b"$`{".contains(byte));
            if is_odd || self.frames.len() > 1 {
                self.opaque = Some("after a here-document inside a command or with an unusual delimiter");
            }
            self.heres.push(Here { delimiter, quoted, strip_tabs });
            self.command.redirects = false;
            self.at = at + word;
        } else {
            self.at += rest.iter().take(3).take_while(|byte| b"<>&|".contains(byte)).count();
        }
        self.at_word_start = true;
    }

    /// The contents of the here-documents that were announced on the line that has just ended.
    fn read_heres(&mut self) -> anyhow::Result<()> {
        for here in std::mem::take(&mut self.heres) {
            let start = self.at;
            let mut end = start;
            loop {
                let line_end = self.find(end, b'\n');
                let line = &self.line[end..line_end];
                let tabs = if here.strip_tabs { line.iter().take_while(|&&byte| byte == b'\t').count() } else { 0 };
                if line[tabs..] == here.delimiter || line_end == self.line.len() {
                    let body = start..if line[tabs..] == here.delimiter { end } else { line_end };
                    self.here(&here, body)?;
                    self.at = self.line.len().min(line_end + 1);
                    break;
                }
                end = line_end + 1;
            }
            self.ends_with_here = true;
        }
        Ok(())
    }

    fn here(&mut self, here: &Here, body: Range<usize>) -> anyhow::Result<()> {
        if here.quoted {
            let remedy = "write the delimiter without quotes, as in `<< END`";
            return self.refuse_inside(body, "in a here-document with a quoted delimiter", remedy);
        }
        let text = &self.line[body.clone()];
        if [&b"`"[..], b"$(", b"${"].iter().any(|odd| text.windows(odd.len()).any(|part| part == *odd)) {
            let remedy = "set a variable before the here-document, as in `v={}; cat << END`";
            return self.refuse_inside(body, "in a here-document with `...`, $(...) or ${...} in it", remedy);
        }
        while self.at < body.end {
            if self.line[self.at] == b'{' && self.at > body.start && b"\\$".contains(&self.line[self.at - 1]) {
                self.refuse_at(self.at, "after a backslash or `$`", "put a space between them")?;
            }
            if !self.place(Quoting::Here)? {
                self.at += 1;
            }
        }
        Ok(())
    }

    fn end_word(&mut self) {
        if !self.at_word_start {
            let word = &self.line[self.word.clone()];
            if word == b"case" && self.frames.len() > 1 {
                self.opaque = Some("after `case` in parentheses");
            }
            let is_assignment = word.iter().position(|&byte| byte == b'=').is_some_and(|at| {
                at > 0 && word[..at].iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
            let redirects = std::mem::take(&mut self.command.redirects);
            if !redirects {
                self.command.code.word(word);
            }
            // Neither the file of a redirection nor an assignment is a program or an argument.
            if !redirects && !self.command.has_program && !is_assignment {
                match word {
                    b"!" | b"if" | b"then" | b"elif" | b"else" | b"do" | b"while" | b"until" | b"{" | b"time" => {}
                    b"}" | b"fi" | b"done" | b"esac" => self.command.closed = true,
                    _ => self.command.has_program = true,
                }
            }
        }
        (self.word, self.at_word_start) = (self.at..self.at, true);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.command = Command::default();
    }

    /// Why a word that is added to the end would be no argument; `None` if it would be one.
    fn why_no_more(&self) -> Option<&'static str> {
        let Command { has_program, redirects, closed, .. } = self.command;
        if self.frames.len() > 1 || self.is_unclosed {
            Some("it ends inside quotes or parentheses")
        } else if self.ends_with_here || !self.heres.is_empty() {
            Some("it ends with a here-document")
        } else if closed || !has_program || redirects || self.line.ends_with(b"\\") {
            Some("no argument can stand at its end")
        } else if self.has_comment_at_end() {
            Some("it ends with a comment")
        } else {
            None
        }
    }

    /// Whether the last line has a `#` that could begin a comment.
    fn has_comment_at_end(&self) -> bool {
        let start = self.line.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = &self.line[start..];
        line.first() == Some(&b'#') || line.windows(2).any(|pair| b" \t;&|()".contains(&pair[0]) && pair[1] == b'#')
    }

    /// The position of the next `byte`, or the end of the line.
    fn find(&self, from: usize, byte: u8) -> usize {
        let from = from.min(self.line.len());
        self.line[from..].iter().position(|&other| other == byte).map_or(self.line.len(), |at| from + at)
    }

    /// The position behind the bracket that closes the one at `from`.
    fn closing(&self, from: usize, open: u8, close: u8) -> usize {
        let mut depth = 0usize;
        let mut at = from;
        while let Some(&byte) = self.line.get(at) {
            match byte {
                b'\\' => at += 1,
                byte if byte == open => depth += 1,
                byte if byte == close => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.line.len()
    }

    fn in_double(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Double))
    }

    fn has_places(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Place(_)))
    }

    fn refuse_inside(&self, range: Range<usize>, why: &str, remedy: &str) -> anyhow::Result<()> {
        range.into_iter().try_for_each(|at| self.refuse_at(at, why, remedy))
    }

    /// Refuses a replacement string at this position, if there is one.
    fn refuse_at(&self, at: usize, why: &str, remedy: &str) -> anyhow::Result<()> {
        match Replacement::at(self.line.get(at..).unwrap_or_default()) {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self.refusal(at, why, remedy)),
        }
    }

    fn refusal(&self, at: usize, why: &str, remedy: &str) -> anyhow::Error {
        let column = String::from_utf8_lossy(&self.line[..at]).chars().count() + 1;
        let length = self.line[at..].iter().position(|&byte| byte == b'}').map_or(1, |end| end + 1);
        let found = cosched_report::visible_bytes(&self.line[at..at + length]);
        usage(format!(
            "column {column} of the line for the shell: {found} stands {why}, where a value could not be kept in one \
             piece: {}; {remedy}",
            self.shown()
        ))
    }

    fn shown(&self) -> String {
        cosched_report::visible_bytes(self.line)
    }
}
