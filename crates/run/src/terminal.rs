//! Standard error as a terminal: a progress line that is redrawn in place, and lines that stay.

use crate::stderr;
use std::io::IsTerminal;

/// Standard error with at most one progress line.
pub(crate) struct Terminal {
    /// Only a terminal gets a progress line.
    is_terminal: bool,
    shown: String,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        Terminal {
            is_terminal: std::io::stderr().is_terminal(),
            shown: String::new(),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Redraws the progress line. An error is nobody's concern: the files have all that matters.
    pub(crate) fn progress(&mut self, line: &str) {
        if self.is_terminal && line != self.shown {
            stderr::write(&format!("\r\x1b[K{line}"));
            line.clone_into(&mut self.shown);
        }
    }

    /// Removes the progress line, so that something else can be written.
    pub(crate) fn clear(&mut self) {
        if !self.shown.is_empty() {
            self.shown.clear();
            stderr::write("\r\x1b[K");
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        stderr::say(line);
    }
}

/// Columns of a terminal; 80 for anything else.
pub fn width_of(stream: impl rustix::fd::AsFd) -> usize {
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    if columns == 0 {
        80
    } else {
        usize::from(columns)
    }
}
