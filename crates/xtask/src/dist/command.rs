//! Programs that must succeed.

use anyhow::{Context as _, Result, ensure};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A program with words that contain no spaces.
pub fn command(program: impl AsRef<OsStr>, words: &str) -> Command {
    let mut command = Command::new(program);
    command.args(words.split_whitespace());
    command
}

/// Runs a program. What it prints goes to standard error.
///
/// # Errors
/// The program is missing or fails.
pub fn run(command: &mut Command) -> Result<()> {
    output(command.stdout(std::io::stderr())).map(drop)
}

/// Runs a program, and returns what it printed.
///
/// # Errors
/// The program is missing or fails.
pub fn output(command: &mut Command) -> Result<String> {
    let child = command.stderr(Stdio::inherit()).output();
    let missing = || format!("cannot start {:?}; install it", command.get_program());
    let output = child.with_context(missing)?;
    ensure!(
        output.status.success(),
        "failed with {}: {command:?}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}
