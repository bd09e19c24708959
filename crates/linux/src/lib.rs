//! The Linux back-end of cosched.

pub mod processor;
pub mod root;
pub mod topology;
