//! Runs in allocations of a real Slurm cluster, one for all of these tests. They wait long for Slurm, so the tests that compute
//! run meanwhile.

mod batch;
mod cluster;
mod nodes;
