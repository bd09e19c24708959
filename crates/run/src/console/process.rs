//! The console's own process. It may wait for the terminal as long as it likes.

use super::Showing;
use super::gathered::Gathered;
use super::message::{Order, Report, line};
use super::output::{Output, PIECE, Target};
use super::source::Source;
use crate::folder::{output_files, remove_folder};
use crate::terminal::Terminal;
use cosched_nodes::protocol::{JobStream, WorkerFrame, write_frame};
use cosched_report::{MOST_READ, visible};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read as _, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time between two reads of the jobs' output.
const LOOK: Duration = Duration::from_millis(50);

/// Time between two checks for a reader, while whole jobs are shown and none has ended.
const LOOK_FOR_READER: Duration = Duration::from_millis(500);

/// Longest time without a frame.
const BEAT: Duration = Duration::from_secs(3);

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
    let mut console = Console::new(showing, folder)?;
    let mut text = Vec::new();
    let mut looked = Instant::now();
    loop {
        orders.get_ref().set_read_timeout(console.patience())?;
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
            console.beat();
        }
        console.write_frames_in_time();
    }
    console.show(Output::finish_all);
    console.tell_rewritten(&mut answers);
    console.write_frames();
    if console.showing.frames {
        // A killed run leaves it.
        remove_folder(folder);
    }
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

/// A piece of a job's output: its stream, file, offset and length.
type Early = (JobStream, Rc<File>, u64, u64);

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
    errors: BTreeMap<u32, Source>,
    /// Pieces that came before the start of their job was told: a node tells both at once.
    early: BTreeMap<u32, Vec<Early>>,
    /// The open files of nodes.
    nodes: BTreeMap<PathBuf, Rc<File>>,
    /// When something was written to standard output last.
    written: Instant,
    /// Standard output, if it gets frames.
    frames: Option<Gathered>,
}

impl Console {
    fn new(showing: Showing, folder: &Path) -> io::Result<Console> {
        let frames = showing.frames.then(Gathered::new).transpose()?;
        Ok(Console {
            terminal: RefCell::new(Terminal::new()),
            is_terminal: showing.to_stderr || io::stdout().is_terminal(),
            output: output(&showing),
            lost: None,
            folder: folder.to_owned(),
            errors: BTreeMap::new(),
            early: BTreeMap::new(),
            nodes: BTreeMap::new(),
            written: Instant::now(),
            frames,
            showing,
        })
    }

    /// How long to wait for an order: until something else is due.
    fn patience(&self) -> Option<Duration> {
        let frames = self.frames.as_ref().and_then(Gathered::wait);
        let all = [self.look_again(), frames];
        // A timeout of zero would be none.
        let least = all.into_iter().flatten().min();
        least.map(|least| least.max(Duration::from_millis(1)))
    }

    /// How long until the jobs' output is read again, or the reader is checked.
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
                    self.errors.insert(job, Source::new(err));
                }
                for (stream, file, offset, bytes) in self.early.remove(&job).unwrap_or_default() {
                    self.piece(job, stream, &file, offset, bytes);
                }
            }
            Order::Piece {
                job,
                stream,
                file,
                offset,
                bytes,
            } => match self.node_file(file) {
                Ok(file) if self.knows(job) => self.piece(job, stream, &file, offset, bytes),
                Ok(file) => {
                    let early = self.early.entry(job).or_default();
                    early.push((stream, file, offset, bytes));
                }
                Err(error) => self.lost = Some(error.to_string()),
            },
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
                let errors = self.errors.remove(&job);
                if let Some(line) = errors.and_then(|mut errors| errors.last_line(MOST_OF_ERROR)) {
                    let line = visible(&line);
                    self.terminal.get_mut().say(&format!("    {line}"));
                }
            }
            Order::Frame(frame) => self.write(&frame),
            Order::File { name, path } => {
                self.show(|_, to| send_file(&name, &path, to.out));
            }
            message => show_message(self.terminal.get_mut(), message),
        }
    }

    /// The file of a node, which stays open.
    fn node_file(&mut self, path: PathBuf) -> io::Result<Rc<File>> {
        if let Some(file) = self.nodes.get(&path) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(File::open(&path)?);
        self.nodes.insert(path, Rc::clone(&file));
        Ok(file)
    }

    /// Whether the start of a job was told.
    fn knows(&self, job: u32) -> bool {
        match &self.output {
            Some(output) => output.knows(job),
            None => self.errors.contains_key(&job),
        }
    }

    fn piece(&mut self, job: u32, stream: JobStream, file: &Rc<File>, offset: u64, bytes: u64) {
        if let Some(output) = &mut self.output {
            output.piece(job, stream, file, offset, bytes);
        } else if stream == JobStream::Err
            && let Some(errors) = self.errors.get_mut(&job)
        {
            let pieces = errors.pieces();
            pieces.add(file, offset, bytes);
            pieces.forget(pieces.end().saturating_sub(MOST_READ as u64));
        }
    }

    /// Writes a frame.
    fn write(&mut self, frame: &WorkerFrame) {
        self.show(|_, to| write_frame(to.out, frame, &[]));
    }

    /// Shows the coordinator that the node lives.
    fn beat(&mut self) {
        if self.showing.frames && self.written.elapsed() >= BEAT {
            self.write(&WorkerFrame::Beat);
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
        let stdout: Box<dyn Write + '_> = match &mut self.frames {
            Some(frames) => Box::new(frames),
            None if self.showing.to_stderr => Box::new(io::stderr()),
            None => Box::new(io::stdout().lock()),
        };
        let mut err = Beside {
            terminal,
            to: Box::new(io::stderr()),
            is_terminal: true,
            has_written: false,
        };
        let mut out = Beside {
            terminal,
            to: stdout,
            is_terminal: self.is_terminal,
            has_written: false,
        };
        let mut target = Target {
            out: &mut out,
            err: &mut err,
        };
        let called = call(output, &mut target);
        if out.has_written {
            self.written = Instant::now();
        }
        drop((out, err));
        self.end_if_failed(called);
    }

    /// Shows nothing more if output can't be written.
    fn end_if_failed(&mut self, written: io::Result<()>) {
        let Err(error) = written else { return };
        self.output = None;
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.tell_that_nobody_reads();
        } else {
            self.lost = Some(error.to_string());
        }
    }

    /// Writes the frames that have waited long enough.
    fn write_frames_in_time(&mut self) {
        let wait = self.frames.as_ref().and_then(Gathered::wait);
        if wait == Some(Duration::ZERO) {
            self.write_frames();
        }
    }

    /// Writes all frames, unless nobody reads them.
    fn write_frames(&mut self) {
        if self.output.is_none() {
            return;
        }
        if let Some(frames) = &mut self.frames {
            let written = frames.write_out();
            self.end_if_failed(written);
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

fn output(showing: &Showing) -> Option<Output> {
    let how = showing.output?;
    Some(if showing.frames {
        Output::framed(how)
    } else {
        Output::new(how, showing.keep_order)
    })
}

/// Writes a file in frames. One that can't be read is left out.
fn send_file(name: &str, path: &Path, to: &mut dyn Write) -> io::Result<()> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let mut piece = vec![0; PIECE];
    loop {
        let got = file.read(&mut piece).unwrap_or(0);
        if got == 0 {
            return to.flush();
        }
        let frame = WorkerFrame::File {
            name: name.to_owned(),
            bytes: got as u64,
        };
        write_frame(to, &frame, &piece[..got])?;
    }
}

/// A stream beside the progress line, which makes room for it.
struct Beside<'a> {
    terminal: &'a RefCell<Terminal>,
    to: Box<dyn Write + 'a>,
    /// It may be the terminal of the progress line.
    is_terminal: bool,
    has_written: bool,
}

impl Write for Beside<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.terminal.borrow_mut().erase();
        let written = self.to.write(bytes)?;
        self.has_written = true;
        if self.is_terminal && written > 0 {
            self.terminal.borrow_mut().beside(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
