//! A world in a process of its own: a machine and its jobs, simulated by somebody else's program. `cosched.world/1`;
//! `docs/schema/world-line.json` has the lines.
//!
//! - `line`: the questions, and the answers as they come
//! - `machine`: what a world says of its machine, and what it lacks
//! - `error`: why a world can't go on
//! - `backend`: a world as a backend of the loop
//! - `solo`: a job alone in a fresh world

mod backend;
mod error;
mod line;
mod machine;
mod solo;
#[cfg(test)]
mod tests;

pub use backend::ForeignWorld;
pub use error::WorldError;
pub use line::WorldJob;
pub use solo::run_alone;
