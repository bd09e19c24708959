//! Values, commands and names as users of GNU parallel know them, with the built binary.

mod commands;
mod counters;
mod input;
mod limits;
mod names;
mod output;
mod parallel;
mod retries;
mod support;
