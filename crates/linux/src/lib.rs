//! The Linux back-end of cosched.

pub mod counters;
pub mod energy;
pub mod events;
pub mod meminfo;
pub mod processor;
pub mod root;
pub mod topology;
