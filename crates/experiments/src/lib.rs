//! Experiments: which runs are made, what their figures say, and how sure that is.
//!
//! [`comparison`] holds policies and other programs against each other on any machine; the caller makes the runs.
//! [`reproduction`] repeats the experiments of the papers in the simulation. Both judge with `statistics`.

pub mod comparison;
pub mod reproduction;
mod statistics;
