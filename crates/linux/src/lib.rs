//! The Linux back-end of cosched.

pub mod events;
pub mod processor;
pub mod root;
pub mod topology;
