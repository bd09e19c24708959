//! The screen of `cosched top`. Everything here is a pure function of the state of a run, of what the user has chosen to see,
//! and of the size of the terminal; it reads no clock, no terminal and no file.
//!
//! `keys` parses the keys; `view` is what the user has chosen, and what keys change; `rows` selects and sorts the jobs;
//! `scene` is all of this together, and `screen` draws it, with `header` and `panel` as its parts. `lines` is a screen of
//! plain text.

mod header;
pub mod keys;
mod lines;
mod panel;
mod rows;
mod scene;
mod screen;
mod style;
#[cfg(test)]
mod tests;
mod view;

pub use lines::{draw_lines, lines_on, pressed};
pub use rows::{Sort, rows};
pub use scene::TopScene;
pub use screen::{draw, page};
pub use view::{KeyEffect, Panel, TopView};
