//! Standard error as a terminal: a progress line that is redrawn in place, and lines that stay.

use crate::stderr;
use rustix::fd::AsFd;
use rustix::termios::tcgetwinsize;
use std::io::IsTerminal;

/// Standard error with at most one progress line.
pub(crate) struct Terminal {
    /// Only a terminal gets a progress line.
    is_terminal: bool,
    shown: String,
    /// A job's output ends here in the middle of a line.
    in_line: bool,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        Terminal {
            is_terminal: std::io::stderr().is_terminal(),
            shown: String::new(),
            in_line: false,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Redraws the progress line. An error is nobody's concern: the files have all that matters.
    pub(crate) fn progress(&mut self, line: &str) {
        if self.is_terminal && line != self.shown {
            self.end_line();
            stderr::write(&format!("\r\x1b[K{line}"));
            line.clone_into(&mut self.shown);
        }
    }

    /// Removes the progress line.
    pub(crate) fn erase(&mut self) {
        if !self.shown.is_empty() {
            self.shown.clear();
            stderr::write("\r\x1b[K");
        }
    }

    /// Removes the progress line and ends a job's last line, so that something else can be written.
    pub(crate) fn clear(&mut self) {
        self.erase();
        self.end_line();
    }

    /// Notes what a job has just written to a terminal.
    pub(crate) fn beside(&mut self, bytes: &[u8]) {
        self.in_line = self.is_terminal && !bytes.ends_with(b"\n");
    }

    /// A progress line would erase an unfinished line.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            stderr::write("\n");
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        stderr::say(line);
    }
}

/// Columns of a terminal that does not report them, and of anything else.
const USUAL_WIDTH: usize = 80;

/// Columns of a terminal; 80 for anything else.
pub fn width_of(stream: impl AsFd) -> usize {
    terminal_width(stream).unwrap_or(USUAL_WIDTH)
}

/// Columns of a terminal; `None` for anything else.
pub fn terminal_width(stream: impl AsFd) -> Option<usize> {
    match tcgetwinsize(stream).ok()?.ws_col {
        0 => Some(USUAL_WIDTH),
        columns => Some(columns.into()),
    }
}
