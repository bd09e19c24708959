//! Standard error. It may be closed or full; the run continues then, with the same exit code. So nothing here fails, and
//! macros that panic, such as `eprintln!`, are not used.

use std::fmt::Display;
use std::io::Write as _;

/// Writes a line.
pub fn say(line: impl Display) {
    write(&format!("{line}\n"));
}

/// Writes a text as it is, at once.
pub fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
