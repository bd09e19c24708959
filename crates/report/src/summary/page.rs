//! The lines of a summary.

use crate::text::wrap;

/// How a summary is shown.
#[derive(Clone, Copy, Debug)]
pub struct SummaryOptions {
    /// Characters in a line.
    pub width: usize,
    /// Whether to use terminal colours.
    pub colour: bool,
    /// Whether the record is kept, so that the reader can look there.
    pub has_record: bool,
    /// Whether to add what is absent and why, what was in use, and the overhead of cosched.
    pub verbose: bool,
    /// Whether the last error line of a failed job has not been shown yet.
    pub last_errors: bool,
}

impl Default for SummaryOptions {
    fn default() -> SummaryOptions {
        SummaryOptions {
            width: 80,
            colour: false,
            has_record: true,
            verbose: false,
            last_errors: true,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Style {
    Plain,
    Title,
    Bad,
}

pub(super) struct Page {
    pub options: SummaryOptions,
    pub text: String,
}

impl Page {
    pub(super) fn line(&mut self, line: &str, style: Style) {
        let (on, off) = match (self.options.colour, style) {
            (false, _) | (_, Style::Plain) => ("", ""),
            (true, Style::Title) => ("\u{1b}[1m", "\u{1b}[0m"),
            (true, Style::Bad) => ("\u{1b}[31m", "\u{1b}[0m"),
        };
        self.text.push_str(on);
        self.text.push_str(line);
        self.text.push_str(off);
        self.text.push('\n');
    }

    /// Adds a paragraph; all lines but the first are indented.
    pub(super) fn paragraph(&mut self, text: &str, style: Style) {
        let width = self.options.width.saturating_sub(2).max(20);
        for line in wrap(text, width).join("\n  ").lines() {
            self.line(line, style);
        }
    }

    /// Adds a paragraph without colour.
    pub(super) fn plain(&mut self, text: &str) {
        self.paragraph(text, Style::Plain);
    }

    /// Adds an empty line, unless nothing stands before it.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }
}
