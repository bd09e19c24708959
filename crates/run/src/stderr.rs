//! Standard error. It may be closed or full, which is no reason to end otherwise than without it: the exit code tells what
//! happened. So nothing here fails, and the macros that panic then (`eprintln!` and the like) are not used.

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
