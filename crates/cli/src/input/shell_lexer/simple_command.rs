//! The words of a simple command, and whether it can have one more.

use super::Lexer;
use crate::input::code_word::CodeWords;

/// The simple command that is being read: whether a word at its end would be an argument.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Command {
    /// It has a word that is its program or an argument.
    pub(super) has_program: bool,
    /// The next word is the file of a redirection.
    pub(super) redirects: bool,
    /// The word before ends a construct such as `done`, after which no argument can stand.
    pub(super) closed: bool,
    /// Which of its words are code.
    pub(super) code: CodeWords,
}

impl Lexer<'_> {
    pub(super) fn end_word(&mut self) {
        if !self.at_word_start {
            let word = &self.line[self.word.clone()];
            if word == b"case" && self.frames.len() > 1 {
                self.opaque = Some("after `case` in parentheses");
            }
            let is_assignment = word
                .iter()
                .position(|&byte| byte == b'=')
                .is_some_and(|at| {
                    at > 0
                        && word[..at]
                            .iter()
                            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
                });
            let redirects = std::mem::take(&mut self.command.redirects);
            if !redirects {
                self.command.code.word(word);
            }
            // Neither the file of a redirection nor an assignment is a program or an argument.
            if !redirects && !self.command.has_program && !is_assignment {
                match word {
                    b"!" | b"if" | b"then" | b"elif" | b"else" | b"do" | b"while" | b"until"
                    | b"{" | b"time" => {}
                    b"}" | b"fi" | b"done" | b"esac" => self.command.closed = true,
                    _ => self.command.has_program = true,
                }
            }
        }
        (self.word, self.at_word_start) = (self.at..self.at, true);
    }

    pub(super) fn end_command(&mut self) {
        self.end_word();
        self.command = Command::default();
    }

    /// Why a word that is added to the end would be no argument; `None` if it would be one.
    pub(super) fn why_no_more(&self) -> Option<&'static str> {
        let Command {
            has_program,
            redirects,
            closed,
            ..
        } = self.command;
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
    pub(super) fn has_comment_at_end(&self) -> bool {
        let start = self
            .line
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = &self.line[start..];
        line.first() == Some(&b'#')
            || line
                .windows(2)
                .any(|pair| b" \t;&|()".contains(&pair[0]) && pair[1] == b'#')
    }
}
