//! What the solo runs and the run of one command share.

use super::memory::Memory;
use super::options::RunOptions;
use super::screen::Screen;
use super::window::Window;
use std::cell::RefCell;
use std::path::Path;

/// What the batches of one command share.
pub(crate) struct Session<'a, P> {
    pub(crate) options: &'a RunOptions,
    pub(crate) platform: &'a P,
    pub(crate) screen: &'a Screen,
    /// The history of commands.
    pub(crate) memory: &'a RefCell<Memory>,
    /// Serves `cosched top` and other watchers.
    pub(crate) window: Option<&'a Window>,
    /// The log folder.
    pub(crate) logs: &'a Path,
}
