//! `cosched compare`: what it runs, what it says, and that it leaves nothing behind.

mod ending;
mod support;
mod verdicts;
