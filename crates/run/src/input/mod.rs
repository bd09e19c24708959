//! The jobs of a run: from a mix file, a list of commands, or the command line.
//!
//! Each file uses only files that stand before it:
//!
//! - `command`: commands and how they are quoted; `read`: files that users name;
//!   `job`: a job as it was given;
//! - `replacement`: `{}` and the like; `word`: words with them; `values`: where values come from;
//!   `construct`, `shell_line`: lines for the shell; `template`: a command and its values;
//! - `names`: the names of jobs, and their copies; `json_line`, `list`: a list of commands; `mix`: mix files;
//! - `lines`, `arriving`: lines and jobs that come while the run goes on;
//! - `mine`: the measured file of this machine; `spec`: machines and programs to simulate.

mod arriving;
mod command;
mod construct;
mod job;
mod json_line;
mod lines;
pub(crate) mod list;
pub mod mine;
pub mod mix;
mod names;
mod read;
mod replacement;
mod shell_line;
pub mod spec;
pub(crate) mod template;
mod values;
mod word;

pub use cosched_core::spelling;

/// The place of a job that is given on the command line.
pub(crate) const COMMAND_LINE: &str = "the command line";

pub(crate) use arriving::{Arrived, Arriving};
pub use command::path_text;
pub(crate) use command::{Command, Shell, ShellLine};
pub use command::{quote, quote_if_needed, told, unquote};
pub use job::absolute;
pub(crate) use job::{Job, JobInput, wrong};
pub use json_line::described;
pub(crate) use json_line::{Withdrawal, line as job_line};
pub use mix::WEIGHTS;
pub(crate) use names::{base, expand, is_name, program_name, program_words, script};
pub(crate) use read::{has_input, is_input, read_text};
pub use read::{read_bytes, read_mix, read_spec};
pub use template::is_shell_line;
pub(crate) use values::files as value_files;
pub use values::{Reading, Separator};
