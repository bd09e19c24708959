//! The pure part of cosched.
