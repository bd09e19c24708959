//! The tests of the policies and of the loop, as one program, which builds sooner than many.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod contention;
mod core_types;
mod efs;
mod efs_domains;
mod efs_moments;
mod even;
mod expected;
mod memory;
mod oracle;
mod policies;
mod random;
mod restart;
mod retries;
mod run_loop;
mod selection;
mod traffic;
mod watched;
mod width;
