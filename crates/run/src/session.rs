//! What the solo runs and the run of one command share.

use super::folder::Folder;
use super::memory::Memory;
use super::options::RunOptions;
use super::screen::Screen;
use super::signals::Signals;
use super::watch::Watch;
use std::cell::RefCell;
use std::path::Path;

/// What the batches of one command share.
pub(crate) struct Session<'a, P> {
    pub(crate) options: &'a RunOptions,
    pub(crate) platform: &'a P,
    pub(crate) screen: &'a Screen,
    pub(crate) signals: &'a Signals,
    /// The history of commands.
    pub(crate) memory: &'a RefCell<Memory>,
    /// Shows the run to `cosched status` and `cosched top`; `None` in a simulation.
    pub(crate) watch: Option<&'a Watch>,
    /// The log folder's path.
    pub(crate) logs: &'a Path,
    /// The log folder; `None` if there is none.
    pub(crate) folder: &'a RefCell<Option<Folder>>,
}
