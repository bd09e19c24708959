//! The console's own process. It may wait for the terminal as long as it likes.

use super::Showing;
use super::message::{Order, Report, line};
use super::output::{Output, Target};
use crate::folder::output_files;
use crate::terminal::Terminal;
use cosched_report::{last_line, visible};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two reads of the jobs' output.
const LOOK: Duration = Duration::from_millis(50);

/// Time between two checks for a reader, while whole jobs are shown and none has ended.
const LOOK_FOR_READER: Duration = Duration::from_millis(500);

/// Characters of a failed job's last error line that are shown.
const MOST_OF_ERROR: usize = 200;

/// Carries out the orders of a run, which come through standard input until the run closes it. `showing` is JSON, and
/// `folder` has the jobs' output.
///
/// # Errors
/// The run did not start this process, or the line to it is broken.
pub fn main(showing: &str, folder: &Path) -> anyhow::Result<()> {
    let showing = serde_json::from_str(showing)?;
    // Signals are meant for the run. When it ends, it closes the line.
    cosched_linux::become_helper(c"cosched-console");
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = stream.try_clone()?;
    let mut orders = BufReader::new(stream);
    let mut console = Console::new(showing, folder);
    let mut text = Vec::new();
    let mut looked = Instant::now();
    loop {
        orders.get_ref().set_read_timeout(console.look_again())?;
        match orders.read_until(b'\n', &mut text) {
            Ok(0) => break,
            Ok(_) => {
                let order = serde_json::from_slice(&text);
                text.clear();
                if let Ok(order) = order {
                    console.obey(order);
                }
            }
            // What has come of a line stays in `text`.
            Err(error) if PASSING.contains(&error.kind()) => {}
            Err(_) => break,
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            console.notice_who_left();
            console.show(|output, to| output.follow(to));
            console.tell_rewritten(&mut answers);
        }
    }
    console.show(Output::finish_all);
    console.tell_rewritten(&mut answers);
    console.terminal.borrow_mut().erase();
    let _ = answers.write_all(&line(&Report::Done { lost: console.lost }));
    Ok(())
}

/// Errors of reading after which reading goes on.
const PASSING: [io::ErrorKind; 3] = [
    io::ErrorKind::WouldBlock,
    io::ErrorKind::TimedOut,
    io::ErrorKind::Interrupted,
];

/// Carries out an order about messages. Without a console the run does so itself.
pub(crate) fn show_message(terminal: &mut Terminal, order: Order) {
    match order {
        Order::Progress(line) => terminal.progress(&line),
        Order::Clear => terminal.clear(),
        Order::Say(line) => terminal.say(&line),
        _ => {}
    }
}

struct Console {
    showing: Showing,
    terminal: RefCell<Terminal>,
    /// The jobs' standard output may be shown on the terminal of the progress line.
    is_terminal: bool,
    output: Option<Output>,
    /// Why output could not be shown.
    lost: Option<String>,
    /// The folder of the jobs' files.
    folder: PathBuf,
    /// The error output of each job that has started, unless the output is shown.
    errors: BTreeMap<u32, PathBuf>,
}

impl Console {
    fn new(showing: Showing, folder: &Path) -> Console {
        Console {
            terminal: RefCell::new(Terminal::new()),
            is_terminal: showing.to_stderr || io::stdout().is_terminal(),
            output: showing
                .output
                .map(|how| Output::new(how, showing.keep_order)),
            lost: None,
            folder: folder.to_owned(),
            errors: BTreeMap::new(),
            showing,
        }
    }

    /// How long to wait for an order: until the jobs' output is read again, or the reader is checked.
    fn look_again(&self) -> Option<Duration> {
        let output = self.output.as_ref()?;
        Some(if output.is_following() {
            LOOK
        } else {
            LOOK_FOR_READER
        })
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Started { job, tag, name } => {
                let files = output_files(&self.folder, &name);
                if let Some(output) = &mut self.output {
                    output.started(job, tag, files);
                } else {
                    let [_, err] = files;
                    self.errors.insert(job, err);
                }
            }
            Order::Again { job, lengths } => {
                if let Some(output) = &mut self.output {
                    output.started_again(job, lengths);
                }
            }
            Order::Ended { job, failed } => {
                if !failed {
                    self.errors.remove(&job);
                }
                self.show(|output, to| output.ended(job, to));
            }
            Order::LastError { job } => {
                let file = self.errors.remove(&job);
                if let Some(line) = file.and_then(|file| last_line(&file, MOST_OF_ERROR)) {
                    let line = visible(&line);
                    self.terminal.get_mut().say(&format!("    {line}"));
                }
            }
            message => show_message(self.terminal.get_mut(), message),
        }
    }

    fn tell_rewritten(&mut self, answers: &mut UnixStream) {
        for (job, file) in self.output.as_mut().into_iter().flat_map(Output::rewritten) {
            // A run that has ended does not listen any more.
            let _ = answers.write_all(&line(&Report::Rewritten { job, file }));
        }
    }

    /// Shows output of jobs. When nobody reads it any more, the run is told, and nothing more is shown.
    fn show(&mut self, call: impl FnOnce(&mut Output, &mut Target<'_>) -> io::Result<()>) {
        let Some(output) = &mut self.output else {
            return;
        };
        let terminal = &self.terminal;
        let stdout: Box<dyn Write> = if self.showing.to_stderr {
            Box::new(io::stderr())
        } else {
            Box::new(io::stdout().lock())
        };
        let mut err = Beside {
            terminal,
            to: Box::new(io::stderr()),
            is_terminal: true,
        };
        let mut out = Beside {
            terminal,
            to: stdout,
            is_terminal: self.is_terminal,
        };
        let mut target = Target {
            out: &mut out,
            err: &mut err,
        };
        if let Err(error) = call(output, &mut target) {
            self.output = None;
            if error.kind() == io::ErrorKind::BrokenPipe {
                self.tell_that_nobody_reads();
            } else {
                self.lost = Some(error.to_string());
            }
        }
    }

    /// Checks whether standard output still has a reader. A job may write nothing for long.
    fn notice_who_left(&mut self) {
        if self.output.is_none() || self.showing.to_stderr {
            return;
        }
        let stdout = io::stdout();
        let mut looked = [PollFd::new(&stdout, PollFlags::empty())];
        if poll(&mut looked, Some(&Timespec::default())).is_err() {
            return;
        }
        let told = looked[0].revents();
        // A closed terminal has both: then the run continues.
        if told.contains(PollFlags::ERR) && !told.contains(PollFlags::HUP) {
            self.output = None;
            self.tell_that_nobody_reads();
        }
    }

    /// Sends SIGPIPE to the run, as the kernel does to a process that writes to a pipe without a reader.
    fn tell_that_nobody_reads(&self) {
        let run = Pid::from_raw(self.showing.run.cast_signed());
        if let Some(run) = run
            && getppid() == Some(run)
        {
            let _ = kill_process(run, Signal::PIPE);
        }
    }
}

/// A stream beside the progress line, which makes room for it.
struct Beside<'a> {
    terminal: &'a RefCell<Terminal>,
    to: Box<dyn Write>,
    /// It may be the terminal of the progress line.
    is_terminal: bool,
}

impl Write for Beside<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.terminal.borrow_mut().erase();
        let written = self.to.write(bytes)?;
        if self.is_terminal && written > 0 {
            self.terminal.borrow_mut().beside(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
