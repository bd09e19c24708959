//! Programs that must succeed.

use anyhow::{Context as _, Result, ensure};
use std::process::{Command, Stdio};

/// Runs a program. What it prints goes to standard error.
///
/// # Errors
/// The program is missing or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdout(std::io::stderr())
        .status()
        .with_context(|| missing(command))?;
    ensure!(status.success(), "failed with {status}: {command:?}");
    Ok(())
}

/// Runs a program, and returns what it printed.
///
/// # Errors
/// The program is missing or fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| missing(command))?;
    ensure!(
        output.status.success(),
        "failed with {}: {command:?}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn missing(command: &Command) -> String {
    format!(
        "cannot start {}; install it",
        command.get_program().display()
    )
}
