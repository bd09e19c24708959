//! Machines, programs and latency curves as files: their formats, and those that come with the simulator.
//!
//! Nothing here opens a file: readers take text, and a name for messages. Each format refuses keys that it does not have,
//! numbers out of their range, and groups of figures without a source.

mod builtin;
mod counters_table;
mod curve_file;
mod error;
mod machine_file;
mod params;
mod program_file;
#[cfg(test)]
mod tests;
mod text;

pub use builtin::{BuiltIn, CURVES, MACHINES, PROGRAMS, builtin_curve, builtin_machine, builtin_program};
pub use curve_file::parse_curve;
pub use error::SpecError;
pub use machine_file::parse_machine;
pub use program_file::parse_program;
