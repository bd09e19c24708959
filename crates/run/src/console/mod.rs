//! A separate process that shows messages, the progress line and the jobs' output.
//!
//! A terminal can block for as long as its user likes (Ctrl-S, a pager), and a job can write gigabytes. The run must not
//! wait for either, because it has jobs to freeze, thaw and end. So it sends orders through a socket that never blocks, and
//! a second process carries them out. Orders that the socket does not accept at once are buffered. Beyond a limit, messages
//! are dropped and counted. Starts and ends of jobs are never dropped: the jobs' output would be lost with them.
//!
//! With `--frames` it writes frames instead. A coordinator that does not read does not hold up the jobs either.

mod gathered;
mod message;
mod output;
mod process;
mod source;

pub(crate) use message::Order;
pub use process::main;
pub(crate) use process::show_message;

use super::options::Show;
use super::signals::Signals;
use message::{Report, line};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// Limit of buffered messages, in bytes.
const MOST_KEPT: usize = 8 << 20;

/// What a console shows beside messages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Showing {
    /// The process of the run. It gets SIGPIPE when nobody reads standard output any more.
    pub(crate) run: u32,
    /// The jobs' output.
    pub(crate) output: Option<Show>,
    /// Whole jobs in the order of their numbers.
    pub(crate) keep_order: bool,
    /// The jobs' standard output goes to standard error.
    pub(crate) to_stderr: bool,
    /// Standard output gets frames. The folder of the jobs' files is removed at the end.
    pub(crate) frames: bool,
}

/// The last reports of a console.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    /// Files of output that their jobs have cut off, by job and number.
    pub(crate) rewritten: BTreeSet<(u32, usize)>,
    /// Why the jobs' output was not shown completely, if it was not.
    pub(crate) lost: Option<String>,
}

/// The run's end of the line to its console.
pub(crate) struct Console {
    child: Child,
    line: UnixStream,
    /// Buffered orders. The first may have been written in part.
    kept: VecDeque<Vec<u8>>,
    kept_bytes: usize,
    /// Bytes of the first kept order that were written.
    written: usize,
    /// Dropped lines.
    left_out: u64,
    /// The console has ended.
    is_gone: bool,
    shows_output: bool,
}

impl Console {
    /// Starts a console for jobs whose files are in a folder.
    ///
    /// # Errors
    /// No process or no socket could be made.
    pub(crate) fn start(showing: &Showing, folder: &Path) -> io::Result<Console> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("cosched").arg("console");
        command.arg(serde_json::to_string(showing)?).arg(folder);
        let child = command.stdin(OwnedFd::from(theirs)).spawn()?;
        Ok(Console {
            shows_output: showing.output.is_some(),
            ..Console::on(line, child)
        })
    }

    /// The end of a line that never blocks, to this process.
    fn on(line: UnixStream, child: Child) -> Console {
        Console {
            child,
            line,
            kept: VecDeque::new(),
            kept_bytes: 0,
            written: 0,
            left_out: 0,
            is_gone: false,
            shows_output: false,
        }
    }

    /// Sends an order. While older orders wait, a progress line is not worth keeping; what the jobs' output depends on is
    /// kept beyond the limit: some hundred bytes for each job.
    pub(crate) fn send(&mut self, order: &Order) {
        self.flush();
        let bytes = line(order);
        if order.is_progress() && !self.kept.is_empty() {
            return;
        }
        if order.is_message() && self.kept_bytes + bytes.len() > MOST_KEPT {
            self.left_out += 1;
            return;
        }
        self.keep(bytes);
        self.flush();
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        self.kept_bytes += bytes.len();
        self.kept.push_back(bytes);
    }

    /// Writes buffered orders until the line would block.
    fn flush(&mut self) {
        while let Some(first) = self.kept.front() {
            if self.is_gone {
                self.kept.clear();
                (self.kept_bytes, self.written) = (0, 0);
                return;
            }
            match (&self.line).write(&first[self.written..]) {
                Ok(written) => {
                    self.written += written;
                    if self.written == first.len() {
                        self.kept_bytes -= first.len();
                        self.written = 0;
                        self.kept.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_gone = true,
            }
        }
    }

    /// Waits until the console has shown everything or a signal comes, and returns its last reports. No job runs then, so a
    /// blocked terminal delays none.
    pub(crate) fn finish(mut self, signals: &Signals) -> Finished {
        if self.left_out > 0 {
            let lines = self.left_out;
            let text = format!("cosched: {lines} lines are missing: the terminal was too slow");
            self.keep(line(&Order::Say(text)));
        }
        let mut reports = Vec::new();
        let why = if self.hear(&mut reports, signals) {
            "the process that shows it has died"
        } else {
            // What it waits for could come when the run has long ended.
            let _ = self.child.kill();
            "a signal ended the run while its reader stood still"
        };
        // The back-end may have collected it already.
        let _ = self.child.wait();
        let mut finished = Finished {
            rewritten: BTreeSet::new(),
            lost: Some(why.to_owned()),
        };
        for report in reports.split(|&byte| byte == b'\n') {
            match serde_json::from_slice(report) {
                Ok(Report::Rewritten { job, file }) => {
                    finished.rewritten.insert((job, file));
                }
                Ok(Report::Done { lost }) => finished.lost = lost,
                Err(_) => {}
            }
        }
        if !self.shows_output {
            finished.lost = None;
        }
        finished
    }

    /// Sends what is left, and reads the reports to their end. Returns `false` if a signal comes before.
    fn hear(&mut self, reports: &mut Vec<u8>, signals: &Signals) -> bool {
        let mut piece = [0; 4096];
        loop {
            self.flush();
            if self.kept.is_empty() {
                let _ = self.line.shutdown(Shutdown::Write);
            }
            match self.line.read(&mut piece) {
                Ok(0) => return true,
                Ok(read) => {
                    reports.extend_from_slice(&piece[..read]);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return true,
            }
            if signals.has_come() {
                return false;
            }
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, !self.kept.is_empty());
            let line = PollFd::new(&self.line, wanted);
            let _ = poll(&mut [line, PollFd::new(signals, PollFlags::IN)], None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunOptions;
    use cosched_nodes::protocol::WorkerFrame;

    /// A console whose process does nothing, and the other end of its line.
    fn deaf() -> (Console, UnixStream) {
        let (line, theirs) = UnixStream::pair().unwrap();
        line.set_nonblocking(true).unwrap();
        let child = Command::new("true").spawn().unwrap();
        (Console::on(line, child), theirs)
    }

    fn no_signals() -> Signals {
        Signals::hold(&RunOptions {
            leaves_signals: true,
            ..RunOptions::default()
        })
        .unwrap()
    }

    /// Finishes a console, and returns all orders that it has sent.
    fn finish(console: Console, mut theirs: UnixStream) -> Vec<Order> {
        let reader = std::thread::spawn(move || {
            let mut all = String::new();
            theirs.read_to_string(&mut all).unwrap();
            all
        });
        console.finish(&no_signals());
        let all = reader.join().unwrap();
        all.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_console_that_takes_nothing_costs_little_memory_and_what_is_left_out_is_told() {
        let (mut console, theirs) = deaf();
        let text = "x".repeat(1 << 10);
        let lines = 3 * (MOST_KEPT >> 10) as u64;
        for _ in 0..lines {
            console.send(&Order::Say(text.clone()));
            console.send(&Order::Progress("50 %".to_owned()));
            assert!(console.kept_bytes <= MOST_KEPT);
        }
        assert!(console.left_out > 0 && console.left_out < lines);
        let left_out = console.left_out;
        let orders = finish(console, theirs);
        let said = orders
            .iter()
            .filter(|order| matches!(order, Order::Say(said) if *said == text))
            .count() as u64;
        assert_eq!(said + left_out, lines, "each line is whole, or counted");
        let Some(Order::Say(last)) = orders.last() else {
            panic!("{:?}", orders.last())
        };
        assert!(
            last.contains(&format!("{left_out} lines are missing")),
            "{last}"
        );
    }

    /// Whoever reads late still gets the output of every job.
    #[test]
    fn jobs_are_never_left_out() {
        let (mut console, theirs) = deaf();
        let text = "x".repeat(1 << 10);
        (0..2 * (MOST_KEPT >> 10)).for_each(|_| console.send(&Order::Say(text.clone())));
        assert!(console.left_out > 0);
        let before = console.kept_bytes;
        for job in 0..1_000 {
            console.send(&Order::Started {
                job,
                tag: "t".to_owned(),
                name: "name".to_owned(),
            });
            console.send(&Order::Ended { job, failed: false });
            console.send(&Order::Frame(Box::new(WorkerFrame::Beat)));
            for frame in [
                WorkerFrame::Progress(Default::default()),
                WorkerFrame::Warning { text: text.clone() },
            ] {
                console.send(&Order::Frame(Box::new(frame)));
            }
        }
        assert!(
            console.kept_bytes < before + 250 * 1_000,
            "{}",
            console.kept_bytes - before
        );
        let orders = finish(console, theirs);
        let ended = orders
            .iter()
            .filter(|order| matches!(order, Order::Ended { .. }))
            .count();
        let started = orders
            .iter()
            .filter(|order| matches!(order, Order::Started { .. }))
            .count();
        let frames = orders
            .iter()
            .filter(|order| matches!(order, Order::Frame { .. }))
            .count();
        assert_eq!((started, ended, frames), (1_000, 1_000, 1_000));
    }

    #[test]
    fn a_console_that_is_gone_is_no_trouble() {
        let (mut console, theirs) = deaf();
        drop(theirs);
        for _ in 0..100 {
            console.send(&Order::Say("x".to_owned()));
            assert_eq!(console.kept_bytes, 0);
        }
        console.shows_output = true;
        let finished = console.finish(&no_signals());
        assert!(finished.lost.is_some_and(|why| why.contains("has died")));
    }
}
