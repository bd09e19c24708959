//! Machines, programs and latency curves as files: the formats, and the built-in files.
//!
//! Nothing here opens a file: parsers take a text, and a name for messages. Each format refuses unknown keys, numbers
//! out of range, and tables of figures without a source.

mod builtin;
mod curve_file;
mod error;
mod machine_file;
mod params_table;
mod program_file;
mod table;
#[cfg(test)]
mod tests;

pub use builtin::{BuiltIn, CURVES, MACHINES, PROGRAMS};
pub use curve_file::{builtin_curve, parse_curve};
pub use error::SpecError;
pub use machine_file::{builtin_machine, parse_machine, parse_machine_with};
pub use program_file::{builtin_program, parse_program};
