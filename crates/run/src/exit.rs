//! The exit codes, in one table. The documentation and `cosched run --help` repeat it.

use std::fmt;
use std::fmt::Display;
use std::process::ExitCode;

/// Why cosched exits as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything went well.
    Success,
    /// Some job failed, or cosched could not continue.
    Failure,
    /// The command line or an input file is wrong; nothing was started.
    Usage,
    /// This machine can't do what was required; nothing was started.
    Incapable,
    /// Permission is lacking; nothing was started.
    Permission,
    /// Jobs are left, because no more were to start.
    Left,
    /// Some job exceeded its `--timeout`, or the run its `--deadline`.
    TimedOut,
    /// A signal ended the run.
    Signal(i32),
    /// The only job of `cosched run -- CMD` ended with this code, as a shell reports it.
    OnlyJob(u8),
}

impl Exit {
    /// The exit code, 0 to 255.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Incapable => 3,
            Exit::Permission => 4,
            Exit::Left => 75,
            Exit::TimedOut => 124,
            Exit::Signal(signal) => 128u8.saturating_add(signal.clamp(0, 127) as u8),
            Exit::OnlyJob(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error with the exit code that it leads to.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong, where, and what to write instead.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error and its causes, in one line. Some errors show their cause themselves; it is not shown twice.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error in the command line or an input file.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure {
        exit: Exit::Usage,
        message: message.into(),
    }
    .into()
}

/// Errors that are the user's.
pub trait OrUsage<T> {
    /// Makes an error one in the command line or an input file.
    ///
    /// # Errors
    /// The same error.
    fn or_usage(self) -> anyhow::Result<T>;

    /// The same, with the name of the wrong option or file.
    ///
    /// # Errors
    /// The same error.
    fn or_usage_in(self, name: impl Display) -> anyhow::Result<T>;
}

impl<T, E: Display> OrUsage<T> for Result<T, E> {
    fn or_usage(self) -> anyhow::Result<T> {
        self.map_err(|error| usage(error.to_string()))
    }

    fn or_usage_in(self, name: impl Display) -> anyhow::Result<T> {
        self.map_err(|error| usage(format!("{name}: {error}")))
    }
}

/// An error in the command of a job: the exit code is a shell's if the command is the whole command line.
pub(crate) fn no_program(code: u8, is_all: bool, message: String) -> anyhow::Error {
    Failure {
        exit: if is_all {
            Exit::OnlyJob(code)
        } else {
            Exit::Usage
        },
        message,
    }
    .into()
}

/// An error for something that this machine can't do.
pub(crate) fn incapable(message: impl Into<String>) -> anyhow::Error {
    Failure {
        exit: Exit::Incapable,
        message: message.into(),
    }
    .into()
}

/// The table for `--help` and the manual.
pub const TABLE: &str = include_str!("exit_codes.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        let all = [
            Exit::Success,
            Exit::Failure,
            Exit::Usage,
            Exit::Incapable,
            Exit::Permission,
            Exit::Left,
            Exit::TimedOut,
        ];
        for exit in all {
            assert!(
                TABLE.contains(&format!("\n  {:<7}", exit.code())),
                "{exit:?}"
            );
        }
        assert_eq!(Exit::Signal(2).code(), 130);
        assert_eq!(Exit::Signal(15).code(), 143);
    }

    #[test]
    fn a_cause_that_an_error_shows_itself_is_shown_once() {
        let cause = || std::io::Error::from_raw_os_error(24);
        let plain = anyhow::Error::new(cause()).context("taking signals");
        assert_eq!(
            one_line(&plain),
            "taking signals: Too many open files (os error 24)"
        );
        let itself = anyhow::Error::new(cosched_linux::HostError::System {
            what: "taking signals",
            source: cause(),
        });
        assert_eq!(one_line(&itself), one_line(&plain));
        assert_eq!(
            one_line(&itself.context("a run")),
            "a run: taking signals: Too many open files (os error 24)"
        );
    }
}
