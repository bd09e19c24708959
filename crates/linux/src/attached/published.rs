//! The latest interval of a session, in the user's runtime folder, for `cosched top` and `cosched status`.

use crate::root::Root;
use crate::runtime::NoFolder;
use crate::watch::{ATTACHED, LiveRun, PublishedState, forget_dead, live};

/// Prepares the file of this process, and removes those of dead ones.
///
/// # Errors
/// There is no folder for it.
pub fn publish(root: &Root) -> Result<PublishedState, NoFolder> {
    forget_dead(root);
    PublishedState::make(root, ATTACHED)
}

/// The sessions that the caller can find: its own, and for root all users'.
pub fn sessions(root: &Root) -> Vec<LiveRun> {
    live(root, ATTACHED, &[ATTACHED])
}
