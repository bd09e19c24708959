//! What a run shows: a progress line, lines that stay, and the jobs' output. It goes to a console of its own while jobs run,
//! else straight to the terminal.

use super::console::{Console, Finished, Order, Showing, show_message};
use super::signals::Signals;
use super::terminal::{Terminal, width_of};
use cosched_nodes::OutputPiece;
use cosched_nodes::protocol::WorkerFrame;
use cosched_report::{RunWarning, visible_lines};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a run shows. Cheap to clone; all clones are one screen.
#[derive(Clone)]
pub struct Screen {
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    quiet: bool,
    /// Warnings go into frames.
    frames: bool,
    is_terminal: bool,
    to: To,
    last: Option<Instant>,
    /// When a line that stays was written last.
    said: Instant,
    /// Kept until the record takes them, each once, with how often it came.
    warnings: Vec<(RunWarning, u64)>,
    /// Where each is in the list, by its text.
    told: HashMap<String, usize>,
}

enum To {
    Terminal(Terminal),
    Console(Box<Console>),
}

/// Where no progress line can be drawn, one is written after so long a silence.
const SILENCE: Duration = Duration::from_secs(300);
/// The progress line is redrawn at most this often.
const REDRAW: Duration = Duration::from_millis(100);

impl Screen {
    /// A screen on standard error. With `quiet` it shows only answers.
    pub fn new(quiet: bool) -> Screen {
        let terminal = Terminal::new();
        let is_terminal = terminal.is_terminal();
        let to = To::Terminal(terminal);
        let inner = Inner {
            quiet,
            frames: false,
            is_terminal,
            to,
            last: None,
            said: Instant::now(),
            warnings: Vec::new(),
            told: HashMap::new(),
        };
        Screen {
            inner: Rc::new(RefCell::new(inner)),
        }
    }

    /// From now on everything goes to a console, until [`Screen::leave_console`].
    pub(crate) fn use_console(&self, showing: &Showing, folder: &Path) {
        if let Err(error) = self.try_console(showing, folder) {
            let why = error.to_string();
            self.warn(RunWarning::NoConsole { why });
        }
    }

    /// The same, for one that may have to write frames.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn try_console(&self, showing: &Showing, folder: &Path) -> io::Result<()> {
        self.clear();
        let console = Console::start(showing, folder)?;
        let mut inner = self.inner.borrow_mut();
        inner.frames = showing.frames;
        inner.to = To::Console(Box::new(console));
        Ok(())
    }

    /// Waits until the console has shown all or a signal comes, and goes back to the terminal. Returns what was cut off the
    /// jobs' files.
    pub(crate) fn leave_console(&self, signals: &Signals) -> Finished {
        if !self.inner.borrow().quiet {
            self.clear();
        }
        let mut inner = self.inner.borrow_mut();
        inner.frames = false;
        let before = std::mem::replace(&mut inner.to, To::Terminal(Terminal::new()));
        drop(inner);
        match before {
            To::Console(console) => console.finish(signals),
            To::Terminal(_) => Finished::default(),
        }
    }

    /// Redraws the progress line.
    pub fn progress(&self, line: impl FnOnce(usize) -> String) {
        if !self.inner.borrow().is_due() {
            return;
        }
        let width = width_of(std::io::stderr());
        let mut inner = self.inner.borrow_mut();
        inner.last = Some(Instant::now());
        drop(inner);
        self.send(Order::Progress(line(width.saturating_sub(1))));
    }

    /// Where no progress line can be drawn, writes it now and then while nothing else is written: whoever looks into a
    /// log wants to see that the run goes on.
    pub fn sign_of_life(&self, line: impl FnOnce() -> String) {
        let is_silent = {
            let inner = self.inner.borrow();
            !inner.quiet && !inner.is_terminal && inner.said.elapsed() >= SILENCE
        };
        if is_silent {
            self.say(&format!("cosched: {}", line()));
        }
    }

    /// Removes the progress line, so that something else can be written.
    pub fn clear(&self) {
        self.inner.borrow_mut().last = None;
        self.send(Order::Clear);
    }

    /// Writes a line that stays.
    pub fn say(&self, line: &str) {
        if !self.inner.borrow().quiet {
            self.answer(line);
        }
    }

    /// Writes a line that the user has asked for, so that `--quiet` does not hide it.
    pub fn answer(&self, line: &str) {
        let mut inner = self.inner.borrow_mut();
        inner.last = None;
        inner.said = Instant::now();
        drop(inner);
        self.send(Order::Say(visible_lines(line)));
    }

    /// A piece of a job's output has come, and lies in this file of its node.
    pub(crate) fn piece(&self, piece: OutputPiece) {
        self.send(Order::Piece {
            job: piece.task.0,
            stream: piece.stream,
            file: piece.file,
            offset: piece.offset,
            bytes: piece.bytes,
        });
    }

    /// Sends an order to the console. Without one, orders about messages are carried out here.
    pub(crate) fn send(&self, order: Order) {
        match &mut self.inner.borrow_mut().to {
            To::Terminal(terminal) => show_message(terminal, order),
            To::Console(console) => console.send(&order),
        }
    }

    /// Shows a warning on a line that stays, and keeps it for the record. One that comes again and again is shown ever more
    /// rarely: at the second, fourth, eighth time and so on.
    pub(crate) fn warn(&self, warning: RunWarning) {
        let text = warning.text();
        let times = self.inner.borrow_mut().count(warning, &text);
        if times == 1 {
            self.show_warning(&text);
        } else if times.is_power_of_two() {
            self.show_warning(&format!("{text} ({times} times so far)"));
        }
    }

    /// Shows the text of a warning.
    pub(crate) fn show_warning(&self, text: &str) {
        if self.inner.borrow().frames {
            let text = text.to_owned();
            self.send(Order::Frame(Box::new(WorkerFrame::Warning { text })));
        } else {
            self.say(&format!("cosched: {text}"));
        }
    }

    /// Takes the warnings shown so far.
    pub(crate) fn take_warnings(&self) -> Vec<RunWarning> {
        let mut inner = self.inner.borrow_mut();
        inner.told.clear();
        std::mem::take(&mut inner.warnings)
            .into_iter()
            .map(|(warning, times)| warning.repeated(times))
            .collect()
    }
}

impl Inner {
    /// Whether the progress line is to be drawn again.
    fn is_due(&self) -> bool {
        let is_old = self.last.is_none_or(|last| last.elapsed() >= REDRAW);
        !self.quiet && self.is_terminal && is_old
    }

    /// Enters a warning, whose text is `text`; how often it has come.
    fn count(&mut self, warning: RunWarning, text: &str) -> u64 {
        if let Some(&at) = self.told.get(text) {
            self.warnings[at].1 += 1;
            return self.warnings[at].1;
        }
        self.told.insert(text.to_owned(), self.warnings.len());
        self.warnings.push((warning, 1));
        1
    }
}
