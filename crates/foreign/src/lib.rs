//! Policies and worlds of other people, each in a process of its own, in any language.
//!
//! The process is started by a command, and speaks JSON Lines: it reads questions from its standard input, and writes
//! answers to its standard output, one a line. Its standard error goes where that of cosched goes. It sees nothing but the
//! questions, and it ends when its standard input does.
//!
//! - `process`: such a process, and the lines
//! - `policy`: a policy behind it, `cosched.policy/1`
//! - `world`: a simulated machine with its jobs behind it, `cosched.world/1`

mod policy;
mod process;
mod world;

pub use policy::{PolicyPatience, describe};
pub use process::{Command, ForeignError};
pub use world::{ForeignWorld, WorldError, WorldJob, run_alone};
