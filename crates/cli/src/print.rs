//! Answers on standard output.

use anyhow::Result;
use cosched_run::width_of;
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;

/// Prints a text.
pub fn print(text: impl AsRef<[u8]>) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> Result<ExitCode> {
    let text = serde_json::to_string_pretty(value)?;
    print(text + "\n")
}

/// Columns of the terminal; 80 for anything else.
pub fn width() -> usize {
    width_of(std::io::stdout())
}
