//! Runs beside others. They have a program of their own: the runs of other tests would be their neighbours.

// The suite uses the rest of it.
#[allow(dead_code)]
#[path = "../suite/common/mod.rs"]
mod common;
mod neighbours;
mod polite;
