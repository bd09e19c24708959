//! The pure part of cosched.

pub mod model;
