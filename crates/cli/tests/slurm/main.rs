//! Runs in allocations of Slurm. They have a program of their own, which starts one cluster for all of them.

// The suite uses the rest of it.
#[allow(dead_code)]
#[path = "../suite/common/mod.rs"]
mod common;

mod batch;
mod cluster;
mod nodes;
