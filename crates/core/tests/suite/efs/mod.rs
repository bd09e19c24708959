//! `efs` in the world in memory: which tasks run, which wait and why, and for how long at most.

mod bus;
mod demand;
mod devices;
mod fairness;
mod idle;
mod log;
mod refusals;
mod replay;
mod starvation;
