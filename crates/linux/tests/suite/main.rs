//! The tests on processes and file trees, as one program.

mod group;
mod topology;
