//! The latest interval of a session, in the user's runtime folder, for `cosched top` and `cosched status`.

use crate::root::Root;
use crate::run_id::{Fate, RunId};
use crate::runtime::{Folder, NoFolder};
use std::io;

/// Prefix of the file; the identity of the session's process follows.
const ATTACHED: &str = "attached-";
/// The next interval, while it is being written.
const NEXT: &str = "next-attached-";

/// The file of this process's session. It is removed when this is dropped.
pub struct Published {
    folder: Folder,
    session: RunId,
}

/// Another process's session.
pub struct LiveSession {
    /// Its process number.
    pub pid: i32,
    /// Its user.
    pub owner: u32,
    session: RunId,
    folder: Folder,
}

impl Published {
    /// Prepares the file of this process's session, and removes those of dead ones.
    ///
    /// # Errors
    /// There is no folder for it.
    pub fn make(root: &Root) -> Result<Published, NoFolder> {
        forget_dead(root);
        let session = RunId::own(root).ok_or(NoFolder::Missing)?;
        let folder = Folder::own(root)?;
        Ok(Published { folder, session })
    }

    /// Replaces the interval.
    ///
    /// # Errors
    /// An error of the system. The last interval stays.
    pub fn write(&self, text: &[u8]) -> Result<(), NoFolder> {
        let next = format!("{NEXT}{}", self.session);
        self.folder.replace(&next, &self.name(), text)
    }

    fn name(&self) -> String {
        format!("{ATTACHED}{}", self.session)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.folder.remove(self.name());
    }
}

impl LiveSession {
    /// Reads its latest interval, and the age of that in seconds.
    ///
    /// # Errors
    /// An error of the system; `NotFound` if the session has ended.
    pub fn read(&self) -> io::Result<(Vec<u8>, f64)> {
        self.folder.read(&format!("{ATTACHED}{}", self.session))
    }

    /// Whether its process lives.
    pub fn is_live(&self, root: &Root) -> bool {
        self.session.fate(root) != Fate::Dead
    }
}

/// The sessions that the caller can find: its own, and for root all users'.
pub fn sessions(root: &Root) -> Vec<LiveSession> {
    let mut all = Vec::new();
    for folder in Folder::all(root) {
        for name in folder.names(ATTACHED) {
            let session = RunId::in_name(&name, ATTACHED);
            let live = session.filter(|session| {
                session.fate(root) != Fate::Dead && !session.is_forged(root, folder.owner)
            });
            if let (Some(session), Some(folder)) = (live, folder.again()) {
                all.push(LiveSession {
                    pid: session.pid,
                    owner: folder.owner,
                    session,
                    folder,
                });
            }
        }
    }
    all
}

/// Removes the files of sessions whose processes have ended.
fn forget_dead(root: &Root) {
    for folder in Folder::all(root) {
        for prefix in [ATTACHED, NEXT] {
            for name in folder.names(prefix) {
                let session = RunId::in_name(&name, prefix);
                if session.is_some_and(|session| session.fate(root) == Fate::Dead) {
                    folder.remove(&name);
                }
            }
        }
    }
}
