//! A process that answers questions, a line of JSON each.

use cosched_linux::settle_child;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longest line of a foreign process, in bytes.
const LONGEST_LINE: usize = 16 << 20;

/// Time in which a process has to answer where nothing else is said. Starting an interpreter with its libraries takes a while, and
/// so may a simulation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Time that a process gets to end after its standard input has ended.
const PARTING: Duration = Duration::from_millis(500);

/// The command that starts a foreign process, as a POSIX shell reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

impl Command {
    /// What marks a command where a name could stand.
    pub const MARK: &'static str = "cmd:";

    /// The command behind the mark; `None` if the word has none, and is a name.
    pub fn of(word: &str) -> Option<Command> {
        let command = word.strip_prefix(Command::MARK)?.trim();
        Some(Command(command.to_owned()))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

/// What went wrong with a foreign process.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// It could not be started.
    #[error("{command} can't be started: {why}")]
    Start {
        /// The command.
        command: Command,
        /// The reason.
        why: std::io::Error,
    },
    /// It ended, or closed its standard input or output.
    #[error("{command} has ended without an answer")]
    Ended {
        /// The command.
        command: Command,
    },
    /// It did not answer in time.
    #[error("{command} has not answered within {} s", within.as_secs_f64())]
    Late {
        /// The command.
        command: Command,
        /// The time that it had.
        within: Duration,
    },
    /// A line is not what is expected.
    #[error("{command}, line {line} of its output: {problem}")]
    Line {
        /// The command.
        command: Command,
        /// The number of the line, from 1.
        line: u64,
        /// The field and what is wrong with it.
        problem: String,
    },
    /// It says itself that something is wrong.
    #[error("{command} reports an error: {text}")]
    Reported {
        /// The command.
        command: Command,
        /// What it says.
        text: String,
    },
}

/// An answer that no question expects: the process can't go on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    error: String,
}

/// A running foreign process. It is ended when this is dropped.
pub(crate) struct ForeignProcess {
    command: Command,
    /// Refers to this process even if something else has waited for it.
    handle: OwnedFd,
    input: Option<OwnedFd>,
    output: OwnedFd,
    /// Bytes of questions that its standard input has not accepted yet.
    unsent: Vec<u8>,
    /// Bytes of its output behind the last line that was read.
    unread: Vec<u8>,
    /// Lines read so far.
    lines: u64,
}

impl ForeignProcess {
    pub(crate) fn start(command: &Command) -> Result<ForeignProcess, ForeignError> {
        let failed = |why: std::io::Error| ForeignError::Start {
            command: command.clone(),
            why,
        };
        // The shell becomes the program, so that no shell is left in between.
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(format!("exec {}", command.0));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        settle_child(&mut shell);
        let mut child = shell.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|why| failed(why.into()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (input, output) = (OwnedFd::from(input), OwnedFd::from(output));
        for end in [&input, &output] {
            ioctl_fionbio(end, true).map_err(|why| failed(why.into()))?;
        }
        Ok(ForeignProcess {
            command: command.clone(),
            handle,
            input: Some(input),
            output,
            unsent: Vec::new(),
            unread: Vec::new(),
            lines: 0,
        })
    }

    /// Sends a question, which needs no answer. What it does not accept now is sent with the next one.
    pub(crate) fn tell(&mut self, question: &impl Serialize) {
        self.put(question);
        self.send();
    }

    /// Sends a question, and waits for the next line.
    pub(crate) fn ask<A: DeserializeOwned>(
        &mut self,
        question: &impl Serialize,
        within: Duration,
    ) -> Result<A, ForeignError> {
        self.tell(question);
        self.answer(Instant::now(), within)
    }

    /// The next line, which has to come within a time from `since`.
    pub(crate) fn answer<A: DeserializeOwned>(
        &mut self,
        since: Instant,
        within: Duration,
    ) -> Result<A, ForeignError> {
        let line = self.line(since, within)?;
        self.parse(&line)
    }

    /// The error that the last line is not what is expected.
    pub(crate) fn wrong(&self, problem: impl fmt::Display) -> ForeignError {
        ForeignError::Line {
            command: self.command.clone(),
            line: self.lines,
            problem: problem.to_string(),
        }
    }

    fn put(&mut self, question: &impl Serialize) {
        // Our own types can be written; a failure would be a line that is not JSON, and the process says so.
        let written = serde_json::to_writer(&mut self.unsent, question);
        debug_assert!(written.is_ok(), "{written:?}");
        self.unsent.push(b'\n');
    }

    /// Sends what its standard input accepts now. Whoever reads no more may still have said something.
    fn send(&mut self) {
        while let Some(input) = self.input.as_ref().filter(|_| !self.unsent.is_empty()) {
            match write(input, &self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.input = None,
            }
        }
    }

    /// Reads a line, and goes on sending meanwhile.
    fn line(&mut self, since: Instant, within: Duration) -> Result<Vec<u8>, ForeignError> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.unread[looked..].iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=looked + end).collect();
                line.pop();
                self.lines += 1;
                return Ok(line);
            }
            looked = self.unread.len();
            if looked > LONGEST_LINE {
                self.lines += 1;
                return Err(self.wrong(format_args!("it is longer than {LONGEST_LINE} bytes")));
            }
            let left = within.saturating_sub(since.elapsed());
            // One that says much, but not what was asked for, is late, too.
            if left.is_zero() || !self.wait(left)? {
                return Err(ForeignError::Late {
                    command: self.command.clone(),
                    within,
                });
            }
            self.send();
            self.receive()?;
        }
    }

    /// Waits until it can be read or written to; returns whether it can.
    fn wait(&self, at_most: Duration) -> Result<bool, ForeignError> {
        let mut fds = vec![PollFd::new(&self.output, PollFlags::IN)];
        if let Some(input) = self.input.as_ref().filter(|_| !self.unsent.is_empty()) {
            fds.push(PollFd::new(input, PollFlags::OUT));
        }
        let timeout = Timespec::try_from(at_most).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(_) => Err(self.ended()),
        }
    }

    fn receive(&mut self) -> Result<(), ForeignError> {
        let mut buffer = [0; 64 << 10];
        match read(&self.output, &mut buffer) {
            Ok(0) => Err(self.ended()),
            Ok(length) => {
                self.unread.extend_from_slice(&buffer[..length]);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(self.ended()),
        }
    }

    fn ended(&self) -> ForeignError {
        ForeignError::Ended {
            command: self.command.clone(),
        }
    }

    fn parse<A: DeserializeOwned>(&self, line: &[u8]) -> Result<A, ForeignError> {
        let parsed = self.parse_answer(line);
        if parsed.is_err()
            && let Ok(Report { error }) = serde_json::from_slice(line)
        {
            return Err(ForeignError::Reported {
                command: self.command.clone(),
                text: error,
            });
        }
        parsed
    }

    fn parse_answer<A: DeserializeOwned>(&self, line: &[u8]) -> Result<A, ForeignError> {
        let mut from = serde_json::Deserializer::from_slice(line);
        let answer = serde_path_to_error::deserialize(&mut from).map_err(|error| {
            let path = error.path().to_string();
            let problem = without_place(&error.into_inner());
            match path.as_str() {
                "." => self.wrong(problem),
                path => self.wrong(format_args!("{path}: {problem}")),
            }
        })?;
        from.end()
            .map_err(|error| self.wrong(without_place(&error)))?;
        Ok(answer)
    }
}

/// The problem without its place, which is always line 1 of a line.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let problem = text.split(" at line ").next();
    problem.unwrap_or_default().to_owned()
}

impl Drop for ForeignProcess {
    fn drop(&mut self) {
        self.input = None;
        if !has_ended(self.handle.as_fd(), PARTING) {
            // It may have ended in this moment.
            let _ = pidfd_send_signal(&self.handle, Signal::KILL);
            has_ended(self.handle.as_fd(), PARTING);
        }
        // Something else may have waited for it.
        let _ = rustix::process::waitid(
            rustix::process::WaitId::PidFd(self.handle.as_fd()),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOHANG,
        );
    }
}

/// Waits for the end of a process; returns whether it has ended.
fn has_ended(handle: BorrowedFd<'_>, at_most: Duration) -> bool {
    let since = Instant::now();
    loop {
        let left = at_most.saturating_sub(since.elapsed());
        let mut fds = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const LONG: Duration = Duration::from_secs(60);

    fn start(command: &str) -> ForeignProcess {
        let command = Command::of(&format!("cmd:{command}")).expect("a command");
        ForeignProcess::start(&command).expect("a shell starts")
    }

    fn ask(process: &mut ForeignProcess, within: Duration) -> Result<Value, String> {
        let answer = process.ask(&json!({"question": 1}), within);
        answer.map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_marked_word_is_a_command() {
        assert_eq!(Command::of("even"), None);
        assert_eq!(Command::of("cmd: cat"), Some(Command("cat".to_owned())));
    }

    #[test]
    fn it_answers_line_by_line() {
        let mut process = start("cat");
        for _ in 0..3 {
            assert_eq!(ask(&mut process, LONG), Ok(json!({"question": 1})));
        }
    }

    #[test]
    fn questions_larger_than_a_pipe_are_sent_while_the_answer_is_read() {
        let mut process = start("cat");
        let large = json!(["x".repeat(1 << 20)]);
        let answer: Value = process.ask(&large, LONG).expect("an answer");
        assert_eq!(answer, large);
    }

    #[test]
    fn one_that_hangs_is_late_and_is_ended() {
        let mut process = start("sleep 1000");
        let late = ask(&mut process, Duration::from_millis(10));
        assert_eq!(
            late,
            Err("`sleep 1000` has not answered within 0.01 s".to_owned())
        );
        let handle = process.handle.try_clone().expect("a descriptor");
        drop(process);
        assert!(has_ended(handle.as_fd(), Duration::ZERO));
    }

    #[test]
    fn one_that_ends_or_does_not_exist_has_ended() {
        for command in ["true", "/nonexistent 2>/dev/null"] {
            let mut process = start(command);
            assert_eq!(
                ask(&mut process, LONG),
                Err(format!("`{command}` has ended without an answer"))
            );
        }
    }

    #[test]
    fn a_wrong_line_is_told_with_its_number_and_field() {
        let mut process = start("sh -c 'echo [1,2]; echo [1,true]; echo [1,2] 3; cat'");
        let mut answer = || {
            let answer: Result<Vec<u8>, _> = process.answer(Instant::now(), LONG);
            answer.map_err(|error| error.to_string())
        };
        assert_eq!(answer(), Ok(vec![1, 2]));
        let wrong = answer().expect_err("no number");
        assert!(
            wrong.contains("line 2 of its output: [1]: invalid type"),
            "{wrong}"
        );
        let more = answer().expect_err("more than one value");
        assert!(
            more.contains("line 3 of its output: trailing characters"),
            "{more}"
        );
    }
}
