//! The terminal: a progress line that is redrawn in place, and lines that stay.

use cosched_report::RunWarning;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Standard error as a screen. Cheap to clone; all clones are one screen.
#[derive(Clone)]
pub(crate) struct Screen {
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    /// Only a terminal gets a progress line.
    is_terminal: bool,
    quiet: bool,
    shown: String,
    last: Option<Instant>,
    /// Kept until the record takes them.
    warnings: Vec<RunWarning>,
}

/// The progress line is redrawn at most this often.
const REDRAW: Duration = Duration::from_millis(100);

impl Screen {
    pub(crate) fn new(quiet: bool) -> Screen {
        let is_terminal = std::io::stderr().is_terminal();
        let inner = Inner { is_terminal, quiet, shown: String::new(), last: None, warnings: Vec::new() };
        Screen { inner: Rc::new(RefCell::new(inner)) }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.inner.borrow().is_terminal
    }

    /// Columns that a line may have.
    pub(crate) fn width(&self) -> usize {
        width_of(std::io::stderr())
    }

    /// Redraws the progress line.
    pub(crate) fn progress(&self, line: impl FnOnce(usize) -> String) {
        let width = self.width();
        let mut inner = self.inner.borrow_mut();
        if inner.quiet || !inner.is_terminal || inner.last.is_some_and(|last| last.elapsed() < REDRAW) {
            return;
        }
        inner.last = Some(Instant::now());
        let line = line(width.saturating_sub(1));
        if line != inner.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
            inner.shown = line;
        }
    }

    /// Removes the progress line, so that something else can be written.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner.borrow_mut();
        if !inner.shown.is_empty() {
            inner.shown.clear();
            inner.last = None;
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Writes a line that stays.
    pub(crate) fn say(&self, line: &str) {
        if self.inner.borrow().quiet {
            return;
        }
        self.clear();
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Shows a warning on a line that stays, and keeps it for the record.
    pub(crate) fn warn(&self, warning: RunWarning) {
        self.say(&format!("cosched: {}", warning.text()));
        self.inner.borrow_mut().warnings.push(warning);
    }

    /// Takes the warnings shown so far.
    pub(crate) fn take_warnings(&self) -> Vec<RunWarning> {
        std::mem::take(&mut self.inner.borrow_mut().warnings)
    }
}

/// Columns of a terminal; 80 for anything else.
pub(crate) fn width_of(stream: impl rustix::fd::AsFd) -> usize {
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    if columns == 0 { 80 } else { usize::from(columns) }
}
